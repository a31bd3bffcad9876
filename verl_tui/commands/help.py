"""`verl-tui help`: the manual, without a network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.commands.options import CONFIG, configuration
from verl_tui.commands.output import print_message
from verl_tui.config import Config, ConfigError

if TYPE_CHECKING:
    import argparse

HELP = "the manual: keys, formats, rules, metrics, configuration, commands"
EXAMPLES = ("verl-tui help keys", "verl-tui help kl-high", "verl-tui help export csv")
EXITS = "0 done"
OPTIONS = f"""
TOPIC...  topic, command, or the id of a finding or an indicator; none: the list of topics
{CONFIG}"""


def run(options: argparse.Namespace) -> int:
    """Show a page; return the exit code."""
    from verl_tui.commands.manual import manual, show

    try:
        config = configuration(options)
    except ConfigError as error:  # help is needed then
        print_message(str(error))
        config = Config()
    show(manual(options.topics, options.program, config), config)
    return 0

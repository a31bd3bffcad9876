"""`verl-tui get`: small answers on one run, for scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.commands import gets
from verl_tui.commands.discovery import commands_of

if TYPE_CHECKING:
    from verl_tui.commands.arguments import CommandParser

NAME = "get"
HELP = "small answers on one run for scripts: state, findings, metrics, samples, log"
EXAMPLES = ("verl-tui get state logs/run_7", "verl-tui get metrics logs/run_7 --json")


def options(parser: CommandParser) -> None:
    """Add what it answers, each a command of its own."""
    parser.add_commands(commands_of(gets))


run = None
"""One of its answers must be named."""

"""`verl-tui config`: where the configuration lies, and its defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.config import config_path, documented_defaults, load_config
from verl_tui.given_files import is_there

if TYPE_CHECKING:
    from verl_tui.commands.shared import Options

HELP = "where the configuration is read from, and all of its defaults"
EXAMPLES = ("verl-tui config", "verl-tui config --config mine.toml")
EXITS = "0 done"
OPTIONS = "--config FILE"


def run(options: Options) -> int:
    """Write it; return the exit code."""
    path = config_path(options.config)
    load_config(options.config)
    print(f"# {path}{'' if is_there(path) else ' (not there: these defaults hold)'}\n")
    print(documented_defaults(), end="")
    return 0

"""`verl-tui config`: where the configuration lies, and its defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.config import config_path, documented_defaults, load_config
from verl_tui.given_files import is_there

if TYPE_CHECKING:
    from verl_tui.commands.shared import Options

HELP = """
Where the configuration is read from, and all of its defaults.

--config FILE

for example:
    verl-tui config
    verl-tui config --config mine.toml

exit codes: 0 done
"""


def run(options: Options) -> int:
    """Write it; return the exit code."""
    path = config_path(options.config)
    load_config(options.config)
    print(f"# {path}{'' if is_there(path) else ' (not there: these defaults hold)'}\n")
    print(documented_defaults(), end="")
    return 0

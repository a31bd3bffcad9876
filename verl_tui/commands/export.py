"""`verl-tui export`: write runs for other programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.commands import exports
from verl_tui.commands.discovery import commands_of

if TYPE_CHECKING:
    from verl_tui.commands.arguments import CommandParser

NAME = "export"
HELP = "write the data as CSV, for TensorBoard or for Prometheus"
EXAMPLES = ("verl-tui export csv logs/run_7 -o run_7.csv",)


def options(parser: CommandParser) -> None:
    """Add its kinds, each a command of its own."""
    parser.add_commands(commands_of(exports))


run = None
"""One of its kinds must be named."""

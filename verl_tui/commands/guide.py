"""`verl-tui guide`: the rules in force."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.commands.asking import config_option, configuration

if TYPE_CHECKING:
    import argparse

    from verl_tui.commands.arguments import Parser

NAME = "guide"
HELP = "the rules in force, with their thresholds and sources"


def options(parser: Parser) -> None:
    """Add its options."""
    config_option(parser)


def run(options: argparse.Namespace) -> int:
    """Write the rules; return the exit code."""
    from verl_tui.guide import describe
    from verl_tui.health import load_guide

    for line in describe(load_guide(configuration(options).guide)):
        print(line)
    return 0

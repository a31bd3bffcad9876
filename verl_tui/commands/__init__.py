"""The commands, a module each: its name, what it is for, its options, and what it does.

A command imports what only it needs when it runs, so that each starts fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from verl_tui.commands import check, config, demo, export, guard, guide, replay, watch, web

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from verl_tui.commands.arguments import Parser


class Command(Protocol):
    """What a module of a command holds."""

    NAME: str
    HELP: str

    @property
    def run(self) -> Callable[[argparse.Namespace], int] | None:
        """Does it, and returns the exit code; None where it has commands of its own."""
        ...

    def options(self, parser: Parser, /) -> None:
        """Add its options and paths."""
        ...


COMMANDS: tuple[Command, ...] = (watch, web, check, guard, replay, export, demo, guide, config)
"""In the order of the help."""

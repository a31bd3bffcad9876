"""Finds the commands of a package: a command is a module with NAME, HELP, options and run."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable
    from types import ModuleType

    from verl_tui.commands.arguments import CommandParser


class CommandModule(Protocol):
    """A module that is a command. It may also say `EXITS`: its exit codes, where they are not just
    0 and 3.
    """

    NAME: str
    HELP: str
    """A line for the list of commands, without a full stop."""
    EXAMPLES: tuple[str, ...]
    """Command lines that its help shows."""

    @property
    def run(self) -> Callable[[argparse.Namespace], int] | None:
        """Run the command and return the exit code; None for a group of commands."""
        ...

    def options(self, parser: CommandParser, /) -> None:
        """Add its options and paths."""
        ...


def commands_of(package: ModuleType, first: str = "") -> list[CommandModule]:
    """Return the commands of a package by name, one of them first."""
    names = [module.name for module in iter_modules(package.__path__) if not module.ispkg]
    modules = [import_module(f"{package.__name__}.{name}") for name in names]
    found = [cast("CommandModule", module) for module in modules if hasattr(module, "NAME")]
    return sorted(found, key=lambda command: (first != command.NAME, command.NAME))

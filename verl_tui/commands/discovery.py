"""Finds the commands of a package: a command is a module with NAME, HELP, options and run."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Iterator
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
    found = _found(package, _modules(package))
    return sorted(found, key=lambda command: (first != command.NAME, command.NAME))


def command_of(package: ModuleType, name: str) -> list[CommandModule]:
    """Return the command with a name alone, none if its module is called otherwise or missing."""
    named = (module for module in _modules(package) if module == name)
    return [command for command in _found(package, named) if name == command.NAME]


def _modules(package: ModuleType) -> Iterator[str]:
    return (module.name for module in iter_modules(package.__path__) if not module.ispkg)


def _found(package: ModuleType, names: Iterable[str]) -> list[CommandModule]:
    modules = [import_module(f"{package.__name__}.{name}") for name in names]
    return [cast("CommandModule", module) for module in modules if hasattr(module, "NAME")]

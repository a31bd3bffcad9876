"""Finds the commands of a package: a command is a module with NAME, HELP, options and run."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import ModuleType

    from verl_tui.commands.arguments import CommandModule


def commands_of(package: ModuleType, first: str = "") -> list[CommandModule]:
    """Return the commands of a package by name, one of them first."""
    found = _found(package, _modules(package))
    return sorted(found, key=lambda command: (first != command.NAME, command.NAME))


def command_of(package: ModuleType, name: str) -> list[CommandModule]:
    """Return the command with a name alone, none if its module is called otherwise or missing."""
    named = (module for module in _modules(package) if module == name)
    return [command for command in _found(package, named) if name == command.NAME]


def _modules(package: ModuleType) -> Iterator[str]:
    return (
        module.name for module in iter_modules(package.__path__) if not module.ispkg
    )


def _found(package: ModuleType, names: Iterable[str]) -> list[CommandModule]:
    modules = [import_module(f"{package.__name__}.{name}") for name in names]
    return [
        cast("CommandModule", module) for module in modules if hasattr(module, "NAME")
    ]

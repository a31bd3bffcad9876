"""The screens that a key opens over the dashboard: each package here that says `SCREEN`."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from verl_tui.tui import screens

if TYPE_CHECKING:
    from verl_tui.tui.screens.spec import ScreenSpec


def _found() -> list[ScreenSpec]:
    names = [module.name for module in iter_modules(screens.__path__) if module.ispkg]
    packages = [import_module(f"{screens.__name__}.{name}") for name in names]
    return [package.SCREEN for package in packages if hasattr(package, "SCREEN")]


SCREENS = {
    spec.name: spec for spec in sorted(_found(), key=lambda one: (one.rank, one.name))
}
"""By name, in the order of the help."""

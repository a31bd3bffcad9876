"""The screens that a key opens over the dashboard: each module here that says `SCREEN`."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from verl_tui.tui import screens

if TYPE_CHECKING:
    from verl_tui.tui.screens import ScreenSpec


def _found() -> list[ScreenSpec]:
    names = [one.name for one in iter_modules(screens.__path__, f"{screens.__name__}.")]
    modules = [import_module(name) for name in names if name != __name__]
    return [module.SCREEN for module in modules if hasattr(module, "SCREEN")]


SCREENS = {
    spec.name: spec for spec in sorted(_found(), key=lambda one: (one.rank, one.name))
}
"""By name, in the order of the help."""

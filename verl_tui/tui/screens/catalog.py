"""The screens that a key opens over the dashboard: each package here, and each module in `rows`,
that says `SCREEN`.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from verl_tui.tui import screens
from verl_tui.tui.screens import rows

if TYPE_CHECKING:
    from verl_tui.tui.screens.spec import ScreenSpec


def _found() -> list[ScreenSpec]:
    packages = [one for one in iter_modules(screens.__path__) if one.ispkg]
    names = [f"{screens.__name__}.{one.name}" for one in packages]
    names += [f"{rows.__name__}.{one.name}" for one in iter_modules(rows.__path__)]
    modules = map(import_module, names)
    return [module.SCREEN for module in modules if hasattr(module, "SCREEN")]


SCREENS = {
    spec.name: spec for spec in sorted(_found(), key=lambda one: (one.rank, one.name))
}
"""By name, in the order of the help."""

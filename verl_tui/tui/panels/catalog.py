"""The panels of the dashboard: each class in a module here that says `PANEL`."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from verl_tui.tui import panels
from verl_tui.tui.panels.panel import Panel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from verl_tui.tui.panels.panel import PanelSpec


def _found() -> Iterator[tuple[PanelSpec, type[Panel]]]:
    for module in iter_modules(panels.__path__, f"{panels.__name__}."):
        for value in vars(import_module(module.name)).values():
            if (
                isinstance(value, type)
                and issubclass(value, Panel)
                and value.PANEL is not None
            ):
                yield value.PANEL, value


PANELS = dict(sorted(_found(), key=lambda one: (one[0].rank, one[0].name)))
"""In the reading order of the wide layout."""

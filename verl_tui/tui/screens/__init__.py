"""Whole screens, composed of panels.

A screen that a key opens over the dashboard says so: `SCREEN` of its module. All these modules are
imported at the start; what takes long to import, such as numpy, is imported where it is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from verl_tui.rendering.session.preferences import StateFile
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.tui.screens.dashboard import Dashboard


class ScreenContext(NamedTuple):
    """The state that a screen may need when it is opened."""

    dashboard: Dashboard
    view: View
    state_file: StateFile


class ScreenSpec(NamedTuple):
    """One screen that a key opens; its `HELP_SECTION` says what that is for, and its place."""

    kind: type[Any]
    """The screen, made by its method `opened`."""
    key: str
    id: str
    """Its name in the configuration of keys."""
    words: str
    """Its name in the help and in the command palette."""
    short: str = ""
    """The word for it in the last row of the dashboard; empty: the key is not named there."""

    @property
    def name(self) -> str:
        """The name of its module."""
        return str(self.kind.__module__.rpartition(".")[2])

"""Whole screens, composed of panels.

A screen that a key opens over the dashboard says so: `SCREEN` of its module. All these modules are
imported at the start; what takes long to import, such as numpy, is imported where it is needed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from verl_tui.tui.keys import HelpSection


class ScreenSpec(NamedTuple):
    """One screen that a key opens; its `HELP_SECTION` says what that is for, and its place."""

    kind: type[Any]
    """The screen, made for a dashboard."""
    key: str
    id: str
    """Its name in the configuration of keys."""
    words: str
    """Its name in the help and in the command palette."""
    short: str = ""
    """The word for it in the last row of the dashboard; empty: the key is not named there."""

    @property
    def section(self) -> HelpSection:
        """What the screen's key is for, and its place."""
        found: HelpSection = getattr(
            self.kind, "HELP_SECTION", HelpSection("", rank=10)
        )
        return found

    @property
    def name(self) -> str:
        """The name of its module."""
        return str(self.kind.__module__.rpartition(".")[2])

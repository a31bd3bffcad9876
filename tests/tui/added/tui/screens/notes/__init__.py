"""Notes: what was written down about the run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.tui.screens.spec import ScreenSpec, ScreenWithCallback

if TYPE_CHECKING:
    from verl_tui.tui.screens.spec import ScreenContext


def _open(context: ScreenContext) -> ScreenWithCallback:
    from verl_tui.tui.screens.notes.screen import NotesScreen

    return ScreenWithCallback(NotesScreen(context.view))


SCREEN = ScreenSpec(
    "notes", "B", "notes.open", "Notes about the run", _open, short="Notes"
)

"""Sources: how each file is doing, and every line that could not be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.tui.keys.tasks import WHY
from verl_tui.tui.screens.spec import ScreenSpec, ScreenWithCallback

if TYPE_CHECKING:
    from verl_tui.tui.screens.spec import ScreenContext


def _open(context: ScreenContext) -> ScreenWithCallback:
    from verl_tui.tui.screens.sources.screen import SourcesScreen

    return ScreenWithCallback(SourcesScreen(context.view))


SCREEN = ScreenSpec(
    "sources", "i", "sources", "Sources", _open, rank=90, short="Sources", task=WHY
)

"""Finding history: what was raised and cleared, at which steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.tui.keys.tasks import WHY
from verl_tui.tui.screens.spec import ScreenSpec, ScreenWithCallback

if TYPE_CHECKING:
    from verl_tui.tui.screens.spec import ScreenContext


def _open(context: ScreenContext) -> ScreenWithCallback:
    from verl_tui.tui.screens.history.screen import HistoryScreen

    return ScreenWithCallback(
        HistoryScreen(context.view), context.dashboard.follow_episode
    )


SCREEN = ScreenSpec(
    "history",
    "A",
    "finding.history",
    "Finding history",
    _open,
    rank=80,
    short="History",
    task=WHY,
)

"""Log: the console as text, at the line of the chosen finding or at the cursor's step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.tui.keys.tasks import WHY
from verl_tui.tui.screens.spec import ScreenSpec, ScreenWithCallback

if TYPE_CHECKING:
    from verl_tui.tui.screens.spec import ScreenContext


def _open(context: ScreenContext) -> ScreenWithCallback:
    from verl_tui.rendering.log.target import log_target
    from verl_tui.tui.screens.log.screen import LogScreen

    view = context.view
    target = log_target(view.run, context.dashboard.chosen_finding, view.cursor)
    return ScreenWithCallback(LogScreen(view, target))


SCREEN = ScreenSpec(
    "log", "l", "log", "Log: the console as text", _open, rank=40, short="Log", task=WHY
)

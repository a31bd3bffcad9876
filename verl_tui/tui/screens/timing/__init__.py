"""Timing: where a step's time goes, what it yields, when the run is done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.tui.keys.tasks import SPEED
from verl_tui.tui.screens.spec import ScreenSpec, ScreenWithCallback

if TYPE_CHECKING:
    from verl_tui.tui.screens.spec import ScreenContext


def _open(context: ScreenContext) -> ScreenWithCallback:
    from verl_tui.tui.screens.timing.screen import TimingScreen

    return ScreenWithCallback(TimingScreen(context.view))


SCREEN = ScreenSpec(
    "timing",
    "t",
    "timing",
    "Timing: where a step's time goes",
    _open,
    rank=70,
    short="Timing",
    task=SPEED,
)

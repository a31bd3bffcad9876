"""Compare runs, side by side; without a selection the shown one and those next to it in the list,
twelve at most.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.tui.keys.tasks import COMPARE
from verl_tui.tui.screens.spec import ScreenSpec, ScreenWithCallback

if TYPE_CHECKING:
    from verl_tui.tui.screens.spec import ScreenContext


def _open(context: ScreenContext) -> ScreenWithCallback:
    from verl_tui.tui.screens.compare.screen import CompareScreen

    return ScreenWithCallback(CompareScreen(context.view))


SCREEN = ScreenSpec(
    "compare",
    "C",
    "compare",
    "Compare runs side by side",
    _open,
    rank=50,
    short="Compare",
    task=COMPARE,
)

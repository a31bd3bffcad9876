"""All samples of the step that the charts' cursor, the finding or the samples panel is at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.tui.keys.tasks import SAMPLES
from verl_tui.tui.screens.spec import ScreenSpec, ScreenWithCallback

if TYPE_CHECKING:
    from verl_tui.tui.screens.spec import ScreenContext


def _open(context: ScreenContext) -> ScreenWithCallback:
    from verl_tui.tui.panels.samples import SamplesPanel
    from verl_tui.tui.screens.samples.screen import SamplesScreen

    panel = context.dashboard.query_one(SamplesPanel)
    panel.show(context.view)  # it may be out of sight
    return ScreenWithCallback(SamplesScreen(context.view, panel.browse))


SCREEN = ScreenSpec(
    "samples",
    "o",
    "samples.open",
    "Samples of this step",
    _open,
    rank=20,
    short="Samples",
    task=SAMPLES,
)

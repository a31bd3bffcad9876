"""Configuration: who the run is, every setting with where it was read; `d` the differences from
other runs, `/` filters, `y` copies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.tui.keys.tasks import WHY
from verl_tui.tui.screens.spec import ScreenSpec, ScreenWithCallback

if TYPE_CHECKING:
    from verl_tui.tui.screens.spec import ScreenContext


def _open(context: ScreenContext) -> ScreenWithCallback:
    from verl_tui.tui.screens.config.screen import ConfigScreen

    return ScreenWithCallback(ConfigScreen(context.view))


SCREEN = ScreenSpec(
    "config",
    "c",
    "config",
    "Configuration, differences from other runs",
    _open,
    rank=60,
    short="Settings",
    task=WHY,
)

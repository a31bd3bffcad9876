"""Help: all keys (`/` searches them), the screen in front first, then by what they are for, with
the names that `[keys]` takes, and the meaning of the signs in charts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.tui.screens.spec import ScreenSpec, ScreenWithCallback

if TYPE_CHECKING:
    from verl_tui.tui.screens.spec import ScreenContext


def _open(_: ScreenContext) -> ScreenWithCallback:
    from verl_tui.tui.screens.help.screen import HelpScreen

    return ScreenWithCallback(HelpScreen())


SCREEN = ScreenSpec("help", "question_mark", "help", "Help", _open, rank=10, label="?")

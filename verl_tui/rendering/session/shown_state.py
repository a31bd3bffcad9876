"""The state of a run on the screen, which is uncertain until the run has been read."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from verl_tui.runs.views.state import State, state

if TYPE_CHECKING:
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.runs.run import Run


class Unread(Enum):
    """Takes the place of a state while a run is still being read: an error found so far may turn
    out to be over by the end of its log.
    """

    READING = "reading"


def shown_state(view: View, run: Run) -> State | Unread:
    """Return the state of a run; of a preview the one that the ends of its logs show."""
    if view.loading and not run.preview and not run.read_once:
        return Unread.READING
    return state(run, view.now)

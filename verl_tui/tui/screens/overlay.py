"""What all screens over the dashboard share: keys that hold everywhere, and the way to other runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding
from textual.screen import ModalScreen, ScreenResultType

from verl_tui.tui.panels.runs import RunsPanel

if TYPE_CHECKING:
    from textual.binding import BindingType

    from verl_tui.tui.view import View


class Overlay(ModalScreen[ScreenResultType]):
    """A screen over the dashboard that shows something of one run."""

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (80, "-wide")]  # noqa: RUF012 - an instance variable to Textual
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left_square_bracket", "other(-1)", "Previous run", show=False, id="run.previous"),
        Binding("right_square_bracket", "other(1)", "Next run", show=False, id="run.next"),
        # A modal screen hides the app's keys. Without a description: the help has them under `everywhere`.
        Binding("question_mark", "app.help", show=False, id="help"),
        Binding("ctrl+l", "app.redraw", show=False, id="redraw"),
        Binding("ctrl+z", "app.suspend_process", show=False, id="suspend"),
    ]

    _view: View | None = None

    def action_other(self, way: int) -> None:
        """Look at the next or previous run."""
        view = self._view
        names = list(view.monitor.runs) if view is not None else []
        if names and view is not None and view.run is not None:
            self.post_message(RunsPanel.Picked(names[(names.index(view.run.name) + way) % len(names)]))

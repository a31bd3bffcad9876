"""Notes on steps: one on the cursor's step, else the newest, and the list of all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import events, on
from textual.widgets import Input

from verl_tui.tui.keys import WHY, HelpSection, actions
from verl_tui.tui.messages import toast
from verl_tui.tui.screens.rows_screen import RowsPage, RowsScreen
from verl_tui.tui.widgets.chart import MoveCursor

if TYPE_CHECKING:
    from verl_tui.tui.screens.dashboard import Dashboard


class NoteScreen(RowsScreen):
    """A line for a note, below all notes on the shown run."""

    SCREEN = ("B", "note", "Note on this step, list of notes")
    TITLE_WORDS = "notes"
    HELP_SECTION = HelpSection("notes on steps", WHY, 85)
    FILTER = ("", "a few words; none to delete the note", "")
    BINDINGS = actions("""
        escape  back     note.back   Leave the line, then close
        q,B     dismiss  note.close  Close
    """)
    FOOTER = """
        entries.open  goes there
        note.back     closes
    """
    WIDEST = 140

    def __init__(self, dashboard: Dashboard) -> None:
        super().__init__(dashboard)
        view = self.view
        self._notebook = view.notebook
        self._notebook.read()
        newest = view.run.step if view.run else None
        self._run = view.run
        self._step = newest if view.cursor is None else view.cursor
        """The step that the line is for."""

    @on(events.Mount)
    def _begin(self, event: events.Mount) -> None:
        """Ask at once, where there is a step."""
        if self._step is not None:
            event.prevent_default()  # which gives the focus to the list
            known = self._notebook.of(self._run).get(self._step, "")
            self.bar.open(f"note on step {self._step}: ", known)

    def page(self, width: int) -> RowsPage:
        """Return all notes on the run."""
        from verl_tui.rendering.session.notes import note_rows

        notes, go = self._notebook.of(self.view.run), self.app.post_message
        steps = [*notes]
        page = RowsPage(*note_rows(notes, width), steps)
        return page._replace(opens=lambda at: go(MoveCursor(steps[at])))

    @on(Input.Submitted)
    def _write(self, event: Input.Submitted) -> None:
        if self._run and self._step is not None:
            problem = self._notebook.write(self._run, self._step, event.value)
            toast(self.app, problem, rows=2)
        self.dismiss()

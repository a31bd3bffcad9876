"""Notes on steps: one on the cursor's step, else the newest, and the list of all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import events, on
from textual.widgets import Input

from verl_tui.tui.keys import WHY, HelpSection, actions
from verl_tui.tui.messages import toast
from verl_tui.tui.screens import ScreenSpec
from verl_tui.tui.screens.rows_screen import RowsPage, RowsScreen
from verl_tui.tui.widgets.chart import MoveCursor
from verl_tui.tui.widgets.rows import Entries

if TYPE_CHECKING:
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.runs.run import Run


class NoteScreen(RowsScreen[None]):
    """A line for a note, below all notes on the shown run."""

    TITLE_WORDS = "notes"
    HELP_SECTION = HelpSection("notes on steps", WHY, 95)
    FILTER = ("", "a few words; none to delete the note", "")
    BINDINGS = actions("""
        escape  back     note.back   Leave the line, then close
        q,M     dismiss  note.close  Close
        e       edit     note.edit   Change the chosen note
    """)
    FOOTER = """
        entries.open  goes there
        note.edit     changes it
        note.back     closes
    """
    WIDEST = 140

    def __init__(self, view: View) -> None:
        super().__init__(view)
        self.view = view
        """What was shown last of a run."""
        self._asked: tuple[Run, int] | None = None
        """The run and the step that the line is for."""
        view.notebook.read()

    @on(events.Mount)
    def _begin(self, event: events.Mount) -> None:
        """Ask at once, where there is a step."""
        run = self.view.run
        step = (
            self.view.cursor
            if run is None or self.view.cursor is not None
            else run.step
        )
        if run is not None and step is not None:
            event.prevent_default()  # which gives the focus to the list
            self._ask(run, step)

    def show(self, view: View) -> None:
        """Draw the newest state; of a run that is gone what there was."""
        if view.run is not None:
            self.view = view
        super().show(self.view)

    def page(self, view: View, width: int) -> RowsPage:
        """Return all notes on the run."""
        from verl_tui.rendering.session.notes import note_rows

        notes = view.notebook.of(view.run)
        return RowsPage(*note_rows(notes, width), [*reversed(notes)])

    def _ask(self, run: Run, step: int) -> None:
        self._asked = run, step
        known = self.view.notebook.of(run).get(step, "")
        self.bar.open(f"note on step {step}: ", known)

    def action_edit(self) -> None:
        """Ask for other words for the chosen note."""
        run, notes = self.view.run, [*reversed(self.view.notebook.of(self.view.run))]
        if run is not None and notes:
            self._ask(run, notes[self.list.entry or 0])

    @on(Input.Submitted)
    def _write(self, event: Input.Submitted) -> None:
        if self._asked is not None:
            problem = self.view.notebook.write(*self._asked, event.value)
            if problem:
                toast(self.app, problem, rows=2)
        self.dismiss()

    @on(Entries.Opened)
    def _opened(self, message: Entries.Opened) -> None:
        notes = [*reversed(self.view.notebook.of(self.view.run))]
        self.dismiss()
        self.app.post_message(MoveCursor(notes[message.entry]))


SCREEN = ScreenSpec(
    "note",
    "M",
    "note",
    "Note on this step, list of notes",
    NoteScreen.opened,
    rank=85,
    short="Note",
    task="WHY",
)

"""The user's notes on steps of runs, kept beside the state file, never in a run's folder.

Each change is a line of JSON that is appended in one piece: several apps write to the file at once,
and none loses what another wrote. The last line on a step holds; one without text ends the note.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from verl_tui.given_files import is_ordinary, read_given
from verl_tui.rendering.session.preferences import written
from verl_tui.rendering.session.run_order import id_of
from verl_tui.rendering.text.piece import TextRows, paragraph
from verl_tui.rendering.text.table import stacked
from verl_tui.text import one_line

if TYPE_CHECKING:
    from pathlib import Path

    from verl_tui.runs.run import Run

_LARGEST = 1 << 22
"""Most bytes read of the file."""
_LONGEST = 500
"""Characters of a note."""


class NoteBook:
    """The notes on all runs, and their file."""

    def __init__(self, state: Path | None = None) -> None:
        """Read the notes.

        Args:
            state: The state file, which they lie beside; without one they last as long as the app.
        """
        self.revision = 0
        """Grows with every change."""
        self._path = state and state.with_suffix(".notes.jsonl")
        self._notes: dict[str, dict[int, str]] = {}
        self.read()

    def of(self, run: Run | None) -> dict[int, str]:
        """Return the notes on a run by their steps, ascending."""
        known = self._notes.get(id_of(run)) if run and self._notes else None
        return dict(sorted(known.items())) if known else {}

    def read(self) -> None:
        """Take in what other apps have written."""
        lines: list[bytes] = []
        if self._path and is_ordinary(self._path):
            with suppress(OSError):
                lines = read_given(self._path, _LARGEST).splitlines()
        for line in lines:
            # it may be damaged, or of another version
            with suppress(ValueError, TypeError, RecursionError):
                self._take(**json.loads(line))

    def write(self, run: Run, step: int, text: str) -> str:
        """Note a text on a step in place of the one before, none to delete that.

        Returns:
            Why it could not be written, empty on success.
        """
        note: dict[str, Any] = {
            "run": id_of(run),
            "name": run.name,  # for who reads the file
            "step": step,
            "text": one_line(text, _LONGEST),
        }
        self._take(**note)

        def append(path: Path) -> None:
            file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            with os.fdopen(file, "wb", buffering=0) as out:
                # whatever another app may have left unfinished is a line of its own
                out.write(f"\n{json.dumps(note)}\n".encode())

        return written(self._path, append)

    def _take(self, *, run: str, step: int, text: str, **_: object) -> None:
        """Take a change in.

        Raises:
            TypeError: It is none.
        """
        if type(step) is not int or abs(step) >> 62 or not isinstance(text, str):
            raise TypeError
        known = self._notes.setdefault(str(run), {})
        before, clean = known.pop(step, ""), one_line(text, _LONGEST)
        if clean:
            known[step] = clean
        self.revision += clean != before


def note_rows(notes: dict[int, str], width: int) -> tuple[TextRows, list[int]]:
    """Return notes as rows, and the row that each begins at."""
    size = max((len(str(step)) for step in notes), default=0)
    width = max(width, size + 15)
    rows, starts = stacked(
        paragraph(text, "text", width, (f"step {step:>{size}}  ", "dim"))
        for step, text in notes.items()
    )
    return rows or [[("no notes yet", "dim")]], starts

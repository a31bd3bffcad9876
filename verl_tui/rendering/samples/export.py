"""Export of samples to a new JSONL file in the current directory."""

from __future__ import annotations

from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import orjson

from verl_tui.exporters.file_names import create, named
from verl_tui.given_files import why
from verl_tui.on_demand.worker import Job
from verl_tui.sources.folders.dumps import DumpFile
from verl_tui.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.on_demand.samples import SamplePage
    from verl_tui.records import Sample

BUDGET = 0.005
"""Seconds of writing at a stretch."""


class Export(Job):
    """An export of samples, written by the browser's thread.

    Rows of a dump are written byte by byte, so that other tools can read them; other samples in
    verl-tui's own format.
    """

    def __init__(
        self,
        page: SamplePage,
        indices: Sequence[int],
        run: str,
        folder: Path | None = None,
    ) -> None:
        """Begin a file.

        Args:
            page: The step's samples.
            indices: Indices of the samples to write.
            run: Name of the run, for the file's name.
            folder: Directory of the file, the current one if None.

        Raises:
            OSError: The file cannot be written.
        """
        self._page = page
        self._generation = page.generation
        self._indices = tuple(indices)
        words = [run, f"step-{page.place.step}", f"sample-{self._indices[0] + 1}"]
        if len(self._indices) > 1:
            words[-1] = f"{len(self._indices)}-samples"
        if page.place.validation:
            words.insert(2, "validation")
        (self.path,) = create(folder or Path.cwd(), named(*words), ".jsonl")
        self.written = 0
        self.skipped = 0
        """Rows that cannot be read."""
        self.problem: str | None = None
        """Why the export ended early."""
        self._raw = False

    @property
    def done(self) -> bool:
        """True if nothing more is written."""
        return self.problem is not None or self.written + self.skipped == len(
            self._indices
        )

    def waits(self) -> bool:
        """Return True if there is something to write."""
        return not self.done

    def read_on(self) -> bool:
        """Write whole lines for some milliseconds; return True at the end."""
        try:
            if self._page.generation != self._generation:
                raise OSError("the dump has been written anew")
            self._write()
        except OSError as error:
            self.problem = why(error)
        return self.done

    def words(self) -> str:
        """Describe the content of the file."""
        form = "as the dump has them" if self._raw else "as verl-tui keeps them"
        skipped = f"; {self.skipped:,} could not be read" if self.skipped else ""
        failed = f"; then it failed: {self.problem}" if self.problem is not None else ""
        return (
            f"{counted(self.written, 'sample')} in {self.path}, {form}{skipped}{failed}"
        )

    def _write(self) -> None:
        until, written, skipped = monotonic() + BUDGET, self.written, self.skipped
        # opened each time: whenever the app ends, no file is half open
        with self.path.open("ab") as file:
            for row in self._rows(self._indices[self.written + self.skipped :]):
                if row is not None:
                    file.write(row + b"\n")
                written += row is not None
                skipped += row is None
                if monotonic() > until:
                    break
        self.written, self.skipped = written, skipped  # all of it is on the disk now

    def _rows(self, indices: Sequence[int]) -> Iterator[bytes | None]:
        rows, step = self._page.rows, self._page.place.step
        self._raw = isinstance(rows, DumpFile)
        if isinstance(rows, DumpFile):
            yield from rows.lines(indices)
            return
        for index in indices:
            sample = self._page.sample(index)
            yield _record(sample, step, index) if sample else None


def whole(sample: Sample) -> str:
    """Return the text of a sample to copy."""
    return f"{sample.prompt}\n\n{sample.response}"


def _record(sample: Sample, step: int, index: int) -> bytes:
    """Return a sample as a JSON object that verl-tui can read."""
    fields = {
        **sample.extras,
        "step": step,
        "index": index,
        "uid": sample.group,
        "validation": sample.validation,
        "prompt": sample.prompt,
        "response": sample.response,
        "ground_truth": sample.ground_truth,
        "score": sample.score,
    }
    return orjson.dumps(
        {key: value for key, value in fields.items() if value is not None}, default=str
    )

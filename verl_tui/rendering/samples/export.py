"""Export of samples to a new JSONL file in the current directory."""

from __future__ import annotations

from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import orjson

from verl_tui.exporters.new_file import create, named
from verl_tui.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.on_demand.samples import SamplePage
    from verl_tui.records import Sample

BUDGET = 0.005
"""Seconds of writing at a stretch."""


def file_name(run: str, page: SamplePage, indices: Sequence[int]) -> str:
    """Return a name for the file, without suffix."""
    what = (
        f"sample-{indices[0] + 1}" if len(indices) == 1 else f"{len(indices)}-samples"
    )
    step = f"step-{page.place.step}"
    if page.place.validation:
        return named(run, step, "validation", what)
    return named(run, step, what)


class Export:
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
        (self.path,) = create(
            folder or Path.cwd(), file_name(run, page, indices), ".jsonl"
        )
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

    def is_urgent(self) -> bool:
        """Return False: it is not on the screen."""
        return False

    def read_on(self) -> bool:
        """Write whole lines for some milliseconds; return True at the end."""
        try:
            self._write()
        except OSError as error:
            self.problem = error.strerror or str(error)
        return self.done

    def words(self) -> str:
        """Describe the content of the file."""
        words = f"{counted(self.written, 'sample')} in {self.path}"
        words += ", as the dump has them" if self._raw else ", as verl-tui keeps them"
        words += f"; {self.skipped:,} could not be read" if self.skipped else ""
        return (
            words
            if self.problem is None
            else f"{words}; then it failed: {self.problem}"
        )

    def _write(self) -> None:
        if self._page.generation != self._generation:
            raise OSError("the dump has been written anew")
        until = monotonic() + BUDGET
        written = 0
        skipped = 0
        with self.path.open(
            "ab"
        ) as file:  # opened each time: whenever the app ends, no file is half open
            for row in self._rows(self._indices[self.written + self.skipped :]):
                if row is None:
                    skipped += 1
                else:
                    file.write(row + b"\n")
                    written += 1
                if monotonic() > until:
                    break
        self.written += written
        self.skipped += skipped

    def _rows(self, indices: Sequence[int]) -> Iterator[bytes | None]:
        lines = self._page.lines(indices)
        self._raw = lines is not None
        if lines is not None:
            return lines
        return self._records(indices)

    def _records(self, indices: Sequence[int]) -> Iterator[bytes | None]:
        for index in indices:
            sample = self._page.sample(index)
            yield (
                record(sample, self._page.place.step, index)
                if sample is not None
                else None
            )


def whole(sample: Sample) -> str:
    """Return the text of a sample to copy."""
    return f"{sample.prompt}\n\n{sample.response}"


def record(sample: Sample, step: int, index: int) -> bytes:
    """Return a sample as a JSON object that verl-tui can read."""
    fields: dict[str, Any] = {
        "step": step,
        "index": index,
        "uid": sample.group,
        "validation": sample.validation,
        "prompt": sample.prompt,
        "response": sample.response,
        "ground_truth": sample.ground_truth,
        "score": sample.score,
    }
    fields.update(
        (name, value) for name, value in sample.extras.items() if name not in fields
    )
    return orjson.dumps(
        {key: value for key, value in fields.items() if value is not None}, default=str
    )

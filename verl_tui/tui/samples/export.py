"""Writes samples to a JSONL file in the current directory, and never over another file."""

from __future__ import annotations

import re
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import BinaryIO

    from verl_tui.browsing import Page
    from verl_tui.records import Sample

_BUDGET = 0.005
"""Seconds of writing at a stretch."""
_AHEAD = 48
"""Rows that are asked for at a time."""
_MOST_NAMES = 1000


def file_name(run: str, page: Page, indices: Sequence[int]) -> str:
    """Return a name that says what is in the file, without its ending."""
    what = f"sample-{indices[0] + 1}" if len(indices) == 1 else f"{len(indices)}-samples"
    words = ["verl-tui", run, f"step-{page.place.step}", *(["validation"] if page.place.validation else []), what]
    return "-".join(re.sub(r"[^A-Za-z0-9._-]+", "-", word).strip("-.")[:60] or "run" for word in words)


class Export:
    """Some samples on their way to a file, as they are read."""

    def __init__(self, page: Page, indices: Sequence[int], run: str, folder: Path | None = None) -> None:
        """Begin a file.

        Args:
            page: Where the samples are.
            indices: Which of them.
            run: Name of the run, for the file's name.
            folder: Where the file goes; the current directory if None.

        Raises:
            OSError: It cannot be written.
        """
        self._page = page
        self._indices = tuple(indices)
        self.path, self._file = _create((folder or Path.cwd()) / file_name(run, page, indices))
        self.written = 0
        self.skipped = 0
        """Rows that cannot be read."""
        self.done = False

    def advance(self, seconds: float = _BUDGET) -> bool:
        """Write what has been read; return whether that was all.

        Raises:
            OSError: The file cannot be written.
        """
        until = monotonic() + seconds
        while not self.done and monotonic() < until:
            at = self.written + self.skipped
            if at == len(self._indices):
                self.close()
                break
            index = self._indices[at]
            sample = self._page.sample(index)
            if sample is None:
                if self._page.problem is None:
                    self._ask(at)
                    break
                self.skipped += 1
                continue
            self._file.write(record(sample, self._page.place.step, index) + b"\n")
            self.written += 1
        return self.done

    def _ask(self, at: int) -> None:
        """Have the next rows read; what is asked for last is read first."""
        for index in reversed(self._indices[at : at + _AHEAD]):
            self._page.sample(index)

    def close(self) -> None:
        """End the file."""
        self.done = True
        self._file.close()


def record(sample: Sample, step: int, index: int) -> bytes:
    """Return a sample as a JSON object, under names by which verl-tui reads it again."""
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
    fields.update((name, value) for name, value in sample.extras.items() if name not in fields)
    return orjson.dumps({key: value for key, value in fields.items() if value is not None}, default=str)


def _create(base: Path) -> tuple[Path, BinaryIO]:
    for number in range(1, _MOST_NAMES):
        path = base.with_name(f"{base.name}{f'-{number}' if number > 1 else ''}.jsonl")
        try:
            return path, path.open("xb")
        except FileExistsError:
            continue
    raise FileExistsError(f"{base}.jsonl, and a thousand more of that name")

"""Turns the samples that pass through a source into figures of their step, as rows like any other metric."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.evaluation import PREFIX, Evaluation
from verl_tui.records import Progress, Record, Restart, Rows, Sample

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_KEPT = 4
"""Steps of one file whose samples may still be coming in; for older ones what was said stands."""

_Kind = tuple[bool, int]
"""Whether they are validation samples, and their step."""


class Figures:
    """Watches the records of one file for samples."""

    def __init__(self) -> None:
        self._open: dict[_Kind, Evaluation] = {}
        """In the order in which they were begun."""
        self._closed: set[_Kind] = set()
        self._touched: dict[_Kind, None] = {}
        self._step: int | None = None
        self._order = 0

    def watch(self, records: Iterable[Record]) -> None:
        """Take in the samples among the records of a read, in the order of the file."""
        for record in records:
            if isinstance(record, Sample):
                self._add(record)
            elif isinstance(record, Rows):
                self._reach(max(record.steps))
            elif isinstance(record, Progress) and record.step is not None:
                self._reach(record.step)
            elif isinstance(record, Restart):
                self._restart(record)

    def take(self) -> tuple[Record, ...]:
        """Return the figures of the steps that had samples since the last time."""
        rows = tuple(self._rows())
        self._touched.clear()
        for kind in list(self._open)[:-_KEPT]:
            del self._open[kind]
            self._closed.add(kind)
        return rows

    def _add(self, sample: Sample) -> None:
        step = sample.step if sample.step is not None else self._step
        if step is None:
            return
        kind = (sample.validation, step)
        evaluation = self._open.get(kind)
        if evaluation is None:
            if kind in self._closed:
                return
            evaluation = self._open[kind] = Evaluation()
        evaluation.add(sample)
        self._touched[kind] = None

    def _reach(self, step: int) -> None:
        self._step = step if self._step is None else max(step, self._step)

    def _restart(self, restart: Restart) -> None:
        if restart.step is not None:
            kind = (restart.validation, restart.step)
            self._open.pop(kind, None)
            self._closed.discard(kind)
            return
        self._open.clear()
        self._closed.clear()
        self._step = None

    def _rows(self) -> Iterator[Rows]:
        for kind in self._touched:
            if kind not in self._open:
                continue
            found = sorted(self._open[kind].figures().items())
            prefix = f"val_{PREFIX}" if kind[0] else PREFIX
            yield Rows(
                keys=tuple(f"{prefix}{name}" for name, _ in found),
                steps=(kind[1],),
                columns=tuple((value,) for _, value in found),
                orders=(self._order,),
                progress=False,
            )
            self._order += 1

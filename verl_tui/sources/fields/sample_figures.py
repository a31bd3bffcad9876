"""Turns the samples that pass through a source into figures of their step, as rows like any other
metric.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.evaluation import PREFIX, Evaluation
from verl_tui.records import Histogram, MetricRows, Progress, Record, Restart, Sample

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from verl_tui.distributions import Distribution

_KEPT = 4
"""Steps of one file, of each kind of sample, whose samples may still be coming in; of older ones
what was said stands.
"""

_Place = tuple[bool, int]
"""True for samples of a validation, and their step."""


class SampleFigures:
    """Watches the records of one file for samples.

    The step that a sample counts for is decided sample by sample, in the order of the file, so that
    the final figures do not depend on how the file was cut into reads.
    """

    def __init__(self) -> None:
        self._open: dict[_Place, Evaluation] = {}
        """In the order in which they were begun."""
        self._closed: set[_Place] = set()
        self._touched: dict[_Place, None] = {}
        """Open ones that have had samples since their figures were last passed on, in the order of
        the first of these.
        """
        self._step: int | None = None
        """Highest step that the file has shown since it began anew."""
        self._order = 0

    def complete(self, records: Iterable[Record]) -> tuple[Record, ...]:
        """Return the records of a read, with the figures of every step that had samples among
        them.
        """
        out: list[Record] = []
        for record in records:
            if isinstance(record, Sample):
                out.extend(self._add(record))
            elif isinstance(record, MetricRows):
                self._reach(max(record.steps))
            elif isinstance(record, Progress) and record.step is not None:
                self._reach(record.step)
            elif isinstance(record, Restart):
                out.extend(self._restart(record))
            out.append(record)
        out.extend(self._pending_figures())
        return tuple(out)

    def _add(self, sample: Sample) -> Iterable[Record]:
        """Count a sample; return the last figures of a step that had to give way to a new one."""
        step = sample.step if sample.step is not None else self._step
        if step is None:
            return ()
        place = (sample.validation, step)
        evaluation = self._open.get(place)
        last: Iterable[Record] = ()
        if evaluation is None:
            if place in self._closed:
                return ()
            last = self._make_room(sample.validation)
            evaluation = self._open[place] = Evaluation()
        group, response = sample.group or sample.prompt, sample.response
        evaluation.add(sample.score, group, len(response), sample.extras, response)
        self._touched[place] = None
        return last

    def _make_room(self, validation: bool) -> Iterable[Record]:
        begun = [place for place in self._open if place[0] is validation]
        if len(begun) < _KEPT:
            return ()
        oldest = begun[0]
        last = tuple(self._records(oldest)) if oldest in self._touched else ()
        self._touched.pop(oldest, None)
        del self._open[oldest]
        self._closed.add(oldest)
        return last

    def _reach(self, step: int) -> None:
        self._step = step if self._step is None else max(step, self._step)

    def _restart(self, restart: Restart) -> Iterable[Record]:
        """Start over, with one step or with all; return the pending figures of the samples
        before.
        """
        if restart.step is not None:
            place = (restart.validation, restart.step)
            self._open.pop(place, None)
            self._touched.pop(place, None)
            self._closed.discard(place)
            return ()
        last = tuple(self._pending_figures())
        self._open.clear()
        self._closed.clear()
        self._step = None
        return last

    def _pending_figures(self) -> Iterator[Record]:
        for place in self._touched:
            yield from self._records(place)
        self._touched.clear()

    def _records(self, place: _Place) -> Iterator[Record]:
        validation, step = place
        evaluation = self._open[place]
        self._order += 1
        return figure_records(
            evaluation.figures(),
            evaluation.scores(),
            step,
            self._order,
            validation=validation,
        )


def figure_records(
    figures: Mapping[str, float],
    scores: Distribution | None,
    step: int,
    order: int,
    *,
    validation: bool,
) -> Iterator[Record]:
    """Yield the figures of a step's samples as rows, and how their scores are distributed."""
    found = sorted(figures.items())
    prefix = f"val_{PREFIX}" if validation else PREFIX
    yield MetricRows(
        keys=tuple(f"{prefix}{name}" for name, _ in found),
        steps=(step,),
        columns=tuple((value,) for _, value in found),
        orders=(order,),
        progress=False,
    )
    if scores is not None:
        yield Histogram(f"{prefix}score", step, *scores.bins)

"""Turns the samples that pass through a source into figures of their step, as rows like any other
metric.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from verl_tui.evaluation import PREFIX, READ_SHARE, Evaluation
from verl_tui.records import (
    Histogram,
    MetricRows,
    Progress,
    Record,
    Records,
    Restart,
    Sample,
)

_KEPT = 4
"""Steps of one file, of each kind of sample, whose samples may still be coming in; of older ones
what was said stands.
"""

SamplePlace = tuple[bool, int]
"""True for samples of a validation, and their step."""


class SampleFigures:
    """Watches the records of one file for samples.

    The step that a sample counts for is decided sample by sample, in the order of the file, so that
    the final figures do not depend on how the file was cut into reads.
    """

    def __init__(self) -> None:
        self._open: dict[SamplePlace, Evaluation] = {}
        """In the order in which they were begun."""
        self._closed: set[SamplePlace] = set()
        self._touched: dict[SamplePlace, None] = {}
        """Open ones that have had samples since their figures were last passed on, in the order of
        the first of these.
        """
        self._step: int | None = None
        """Highest step that the file has shown since it started over."""
        self._order = 0

    def complete(self, records: Iterable[Record]) -> Records:
        """Return the records of a read, with the figures of every step that had samples among
        them.
        """
        out: list[Record] = []
        for record in records:
            if isinstance(record, Sample):
                self._add(record, out)
            elif isinstance(record, Restart):
                self._restart(record, out)
            elif isinstance(record, MetricRows):
                self._step = max(self._step or 0, *record.steps)
            elif isinstance(record, Progress) and record.step is not None:
                self._step = max(self._step or 0, record.step)
            out.append(record)
        self._pass_on(self._touched, out)
        return tuple(out)

    def _add(self, sample: Sample, out: list[Record]) -> None:
        """Count a sample; pass on the last figures of a step that has to give way to a new one."""
        step = sample.step if sample.step is not None else self._step
        if step is None or (place := (sample.validation, step)) in self._closed:
            return
        if place not in self._open:
            begun = [one for one in self._open if one[0] is sample.validation]
            for oldest in begun[:1] if len(begun) >= _KEPT else ():
                self._pass_on(self._touched.keys() & {oldest}, out)
                del self._open[oldest]
                self._closed.add(oldest)
            self._open[place] = Evaluation()
        group, text = sample.group or sample.prompt, sample.response
        self._open[place].add(sample.score, group, len(text), sample.extras, text)
        self._touched[place] = None

    def _restart(self, restart: Restart, out: list[Record]) -> None:
        """Start over, with one step or, behind the figures of the samples before, with all."""
        if restart.step is not None:
            place = (restart.validation, restart.step)
            self._open.pop(place, None)
            self._touched.pop(place, None)
            self._closed.discard(place)
            return
        self._pass_on(self._touched, out)
        self._open.clear()
        self._closed.clear()
        self._step = None

    def _pass_on(self, places: Iterable[SamplePlace], out: list[Record]) -> None:
        """Add the figures of steps."""
        for place in [*places]:
            del self._touched[place]
            self._order += 1
            out += figure_records(self._open[place], place, self._order)


def figure_records(
    samples: Evaluation, place: SamplePlace, order: int, share: float = 1.0
) -> Iterator[Record]:
    """Yield the figures of a step's samples as rows, and how these are distributed; `share` says
    how much of them was read.
    """
    validation, step = place
    is_part = share < 1.0
    read = {READ_SHARE: share} if is_part else {}
    found = sorted({**samples.figures(whole=not is_part), **read}.items())
    prefix = f"val_{PREFIX}" if validation else PREFIX
    yield MetricRows(
        keys=tuple(f"{prefix}{name}" for name, _ in found),
        steps=(step,),
        columns=tuple((value,) for _, value in found),
        orders=(order,),
        progress=False,
    )
    for name, bins in samples.histograms().items():
        yield Histogram(f"{prefix}{name}", step, *bins)

"""Turns figures of moments into rows of steps.

A page shows the present values, and keeps showing them: the result of a step is the last value
before the next one. Figures measured by the clock are averaged over the step in which they were
measured.
"""

from __future__ import annotations

from array import array
from functools import cache
from typing import TYPE_CHECKING

from verl_tui import prometheus_names
from verl_tui.metrics import describe
from verl_tui.records import Progress, Restart
from verl_tui.sources.fields.row_batcher import MetricRow
from verl_tui.sources.formats.prometheus_text.scrapes import Scrape
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from verl_tui.records import Record
    from verl_tui.sources.formats.prometheus_text.scrapes import (
        PrometheusSample,
        ScrapeFigures,
    )

_TESTING, _SAVING = "timing_s/testing", "timing_s/save_checkpoint"
"""Metrics besides those of validations that a trainer logs now and then: in between, pages hold the
last value.
"""


MOST_RUNS = 100
"""Runs of one page that are shown: as many as our exporter writes by default."""
_NOBODYS = ("", "")
"""Run and project of figures that belong to none."""


class ScrapedRows:
    """Makes rows of the figures of one run, in the order of time."""

    def __init__(self) -> None:
        self._step: int | None = None
        self._since: float | None = None
        """When its step was seen first."""
        self._trained = -1
        """The step of the last row of metrics, -1 where none was stated."""
        self._total: int | None = None
        self._last_row: tuple[object, ...] = ()
        """The last row of metrics: a page repeats it again and again."""
        self._held: dict[str, tuple[float, float | None]] = {}
        """Last values of metrics that are logged now and then, which pages hold on to, each with
        the step of its validation: without that two validations that came out alike are one.
        """
        self._number = 0

    @property
    def stepless(self) -> bool:
        """True if no page has stated a step so far."""
        return self._step is None

    def take(
        self, figures: ScrapeFigures, time: float | None, count: int | None = None
    ) -> Iterator[MetricRow | Record]:
        """Yield the records of a moment.

        Args:
            figures: Of one run.
            time: Of the moment, in seconds since the epoch.
            count: The step where none is stated, None for the number of moments so far.
        """
        if figures.total is not None and figures.total != self._total:
            self._total = figures.total
            yield Progress(total=figures.total)
        self._reach(figures.step, time)
        number = self._number if count is None else count
        self._number += 1
        stated = self._step is not None
        step = self._step if self._step is not None else number
        reached = figures.stepped or self._since if stated else time
        yield from self._trained_rows(self._logged(figures), step, reached)
        if figures.readings:
            yield reading(figures.readings, time, step, stated=stated)

    def _trained_rows(
        self, metrics: Mapping[str, float], step: int, time: float | None
    ) -> Iterator[MetricRow | Restart]:
        """Yield the metrics of a step, unless the last moment had the same."""
        values = array("d", metrics.values())
        row = (step, time, *metrics, values.tobytes())
        if not metrics or row == self._last_row:
            return
        self._last_row = row
        stated = self._step is not None
        if stated and step < self._trained:
            # said here: after a restart other metrics may be logged than before
            yield Restart(f"steps went back from {self._trained} to {step}")
        self._trained = step if stated else -1
        yield MetricRow(
            step, tuple(metrics), values, time, progress=stated, estimated=not stated
        )

    def _reach(self, step: int | None, time: float | None) -> None:
        """Note the step that a page states, None for none."""
        if step is None or step == self._step:
            return
        if self._step is not None and step < self._step:
            self._held.clear()
        self._step = step
        self._since = time

    def _logged(self, figures: ScrapeFigures) -> dict[str, float]:
        """Return metrics without the values of validations long past."""
        out = dict(figures.metrics)
        for key in filter(_is_now_and_then, figures.metrics):
            validated = figures.validated if key != _SAVING else None
            if self._held.get(key) == (out[key], validated):
                del out[key]
            else:
                self._held[key] = out[key], validated
        return out


def reading(
    figures: Mapping[str, float], time: float | None, step: int, *, stated: bool
) -> MetricRow:
    """Return the row of figures that are measured by the clock; `stated`: the step is known."""
    return MetricRow(
        step,
        tuple(figures),
        tuple(figures.values()),
        time,
        mean=True,
        progress=False,
        estimated=not stated,
    )


@cache
def _is_now_and_then(key: str) -> bool:
    """Return whether a metric is logged with some steps only."""
    return key in (_SAVING, _TESTING) or describe(key).group == "validation"


def runs_in(scrape: Scrape) -> tuple[dict[tuple[str, str], Scrape], int]:
    """Return the figures of a page by run and project, and how many runs are left out.

    Those of no run are under empty names; of the others the first `MOST_RUNS` are kept. The meaning
    of the page's names is stated once for all runs.
    """
    parts: dict[tuple[str, str], list[PrometheusSample]] = {}
    keys = []
    for sample in scrape.samples:
        if sample.name == prometheus_names.INFO:
            keys.append(sample)
            continue
        labels = dict(
            sample.labels
        )  # our exporter's `run`, RL-Insight's `experiment_name`
        run = labels.get("run") or labels.get("experiment_name") or ""
        of = one_line(run, 120), one_line(labels.get("project", ""), 120)
        parts.setdefault(of, []).append(sample)
    runs = [one for one in parts if one != _NOBODYS]
    for further in runs[MOST_RUNS:]:
        del parts[further]
    for samples in parts.values():
        samples.extend(keys)
    found = {of: Scrape(tuple(part), scrape.kinds) for of, part in parts.items()}
    return found, max(0, len(runs) - MOST_RUNS)

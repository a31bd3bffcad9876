"""The metrics of a run: one line for each, or the points of a single one."""

from __future__ import annotations

import math
import shutil
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from verl_tui.given_files import NothingError, UsageError
from verl_tui.indicators import INDICATORS, factor
from verl_tui.metrics import describe, known_metrics
from verl_tui.plain_data import Data, value_fields
from verl_tui.runs.views.provenance import has_estimated_steps
from verl_tui.text import one_line
from verl_tui.words import counted

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from verl_tui.answers.run_reading import Reading
    from verl_tui.runs.run import Run
    from verl_tui.runs.series import Series

_TYPO = 0.85
"""Similarity from which a key of the run is what was meant: one wrong letter in seven."""


def metrics_of(reading: Reading, pattern: str | None = None) -> Data:
    """Return one line for each metric, in the order of first appearance.

    Args:
        reading: The run, all of it read.
        pattern: A glob for the keys to list, None for all.
    """
    run = reading.run
    metrics = []
    for key in run.keys:
        series = run.present(key)
        if series is None or not fnmatchcase(key, pattern or "*"):
            continue
        least, most = series.bounds or (None, None)
        metrics.append(
            {
                "key": series.key,
                "indicator": run.meanings.get(key),
                "step": series.steps[-1],
                **value_fields(series.values[-1]),
                "count": len(series),
                "min": least,
                "max": most,
            }
        )
    return {
        **reading.part,
        "steps_estimated": has_estimated_steps(run),
        "total": len(run.keys),
        "left_out": len(run.keys) - len(metrics),
        "metrics": metrics,
    }


def points_of(
    reading: Reading, metrics: Iterable[str], count: int, around: int | None = None
) -> Data | None:
    """Return points of a metric or several, ascending in step; None if more of the run has to be
    read.

    Args:
        reading: The run.
        metrics: The log's own keys, or indicators.
        count: Most points of each.
        around: The step that they are nearest to, None for the last points.

    Raises:
        UsageError: There is no such metric.
        NothingError: The run has no value of it so far.
    """
    shared = {**reading.part, "steps_estimated": has_estimated_steps(reading.run)}
    found = []
    for metric in dict.fromkeys(metrics):
        one = _points(reading, metric, count, around)
        if one is None:
            return None
        found.append(one)
    return {**shared, **(found[0] if len(found) == 1 else {"metrics": found})}


def _points(
    reading: Reading, metric: str, count: int, around: int | None
) -> Data | None:
    run = reading.run
    key = metric if metric in run.keys else run.indicators.get(metric, metric)
    series = run.present(key)
    if series is None:
        if reading.searched is not None:
            raise _no_metric(run, metric, reading.searched)
        return None
    first = len(series) - count  # negative if there are fewer than asked for
    if around is not None:
        first = min(bisect_left(series.steps, around) - count // 2, first)
    if not _holds(series, reading, first, around):
        return None
    shown = range(max(0, first), min(len(series), max(0, first) + count))
    times = factor(metric, series.key) if key != metric else 1
    total = len(series) if reading.whole else None
    return {
        "key": series.key,
        "indicator": run.meanings.get(key),
        "total": total,
        "left_out": None if total is None else total - len(shown),
        "points": [_point(series, at, times) for at in shown],
    }


def _point(series: Series, at: int, times: float) -> Data:
    time = series.times[at]
    return {
        "step": series.steps[at],
        **value_fields(series.values[at], times),
        "time": None if math.isnan(time) else time,
    }


def _holds(series: Series, reading: Reading, start: int, around: int | None) -> bool:
    """Return whether the points from an index on are those of the whole log."""
    if reading.whole:
        return True
    begin = reading.complete_from
    if begin is None or (around is not None and around < begin):
        return False
    return start >= bisect_left(series.steps, begin)


def _no_metric(run: Run, metric: str, where: str) -> UsageError:
    """Return the error that a run has no value of a metric, or that there is no such metric."""
    name, of = one_line(metric, 80), one_line(run.name)
    if metric in run.keys:
        return NothingError(f"{of} has no value of {name} up to step {run.step}")
    if _is_known(metric, run):
        return NothingError(f"{of} has no value of {name} so far{where}")
    near = get_close_matches(metric, [*run.keys, *run.indicators], n=3, cutoff=0.5)
    within = [key for key in run.keys if metric in key][:3]
    like = [one_line(one, 80) for one in dict.fromkeys([*within, *near])][:3]
    hint = f"; alike: {', '.join(like)}" if like else ""
    return UsageError(f"{of} has no metric {name}{where}{hint}")


def _is_known(metric: str, run: Run) -> bool:
    """Return whether some trainer logs a metric of this name; one of a family that resembles a key
    of the run was more likely mistyped.
    """
    if metric in INDICATORS or metric in known_metrics():
        return True
    of_family = describe(metric).label != metric
    return of_family and not get_close_matches(metric, run.keys, cutoff=_TYPO)


_COLUMNS = ("step", "value", "count", "min", "max")


def metrics_lines(found: Data) -> Iterator[str]:
    """Yield one line for each metric, its columns separated by tabs."""
    yield "\t".join(("key", *_COLUMNS))
    for metric in found["metrics"]:
        numbers = (_number(metric[name]) for name in _COLUMNS)
        yield "\t".join([one_line(metric["key"], 300), *numbers])


def points_lines(found: Data) -> Iterator[str]:
    """Yield one line for each step: the step and the value of each metric, separated by tabs."""
    metrics = found.get("metrics", [found])
    yield "\t".join(["step", *(one_line(one["key"], 300) for one in metrics)])
    values = [
        {point["step"]: _number(point["value"]) for point in one["points"]}
        for one in metrics
    ]
    for step in sorted(set().union(*values)):
        yield "\t".join([str(step), *(column.get(step, "") for column in values)])


def _number(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.10g}"


_HEIGHT = 20
"""Rows of a chart, fewer where the terminal is lower."""
_LEAST = 10
_HIGHEST = 1e300
"""Larger values are left out: plotext cannot scale to them."""


def plot_lines(found: Data) -> Iterator[str]:
    """Yield the rows of a chart for each metric of an answer of points, as wide as the terminal."""
    import numpy as np

    size = shutil.get_terminal_size((80, 24))
    height = min(_HEIGHT, max(_LEAST, size.lines - 4))
    for one in found.get("metrics", [found]):
        yield one_line(one["key"], size.columns)
        values = ((point["step"], point["value"]) for point in one["points"])
        drawn = [at for at in values if at[1] is not None and abs(at[1]) < _HIGHEST]
        if drawn:
            yield from _drawn(np.array(drawn, dtype=float), size.columns, height)
        if left := len(one["points"]) - len(drawn):
            yield f"not drawn: {counted(left, 'value')} that no axis can hold, such as nan"


def _drawn(points: NDArray[np.float64], width: int, height: int) -> list[str]:
    """Draw points; of many, the least and the greatest value of each column."""
    import numpy as np
    import plotext

    from verl_tui.rendering.text.ascii_table import ascii_locale, in_ascii

    columns = np.array_split(points, min(len(points), 2 * width))
    kept = [
        block[row]
        for block in columns
        for row in sorted({block[:, 1].argmin(), block[:, 1].argmax()})
    ]
    plots: Any = plotext
    plots.terminal.limit(width=False, height=False)
    figure = plots.figure
    figure.clear.data()
    figure.clear.settings()
    figure.plot_size(width, height)
    steps, values = np.array(kept).T.tolist()
    is_ascii = ascii_locale()
    curve = figure.signal(steps, values, marker="*" if is_ascii else "braille")
    curve.lines(active=True)
    figure.draw(curve)
    text = str(plots.uncolorize(figure.build().string()))
    return (in_ascii(text) if is_ascii else text).rstrip().split("\n")

"""The value of everything in a chart at the cursor, in as many rows as that takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len

from verl_tui.rendering.charts.downsample import value_at
from verl_tui.rendering.charts.picture import signs
from verl_tui.rendering.text.numbers import compact, exact_step
from verl_tui.rendering.text.printable import printable
from verl_tui.rendering.text.units import in_words, value_text
from verl_tui.rendering.text.wrap import ELLIPSIS, fit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.rendering.charts.cache import ChartCache
    from verl_tui.rendering.charts.chart_data import ChartData, ChartLine


_GAP = "   "
_LONGEST = 40
"""Cells of a name."""


def cursor_values(
    data: ChartData, step: int, cache: ChartCache, at: int | None = None
) -> Iterator[str]:
    """Yield the position of the cursor and the value of every line there: that of its newest point
    up to the step.

    Args:
        data: The chart.
        step: Where on the x axis the cursor is.
        cache: What the chart is drawn from.
        at: Which step that is, where the x axis is not one of steps.
    """
    if data.over_kl:
        yield from _on_paths(data, step)
        return
    exact = data.axis.exact(step)
    if not data.axis.time:
        yield f"{data.axis.label} {exact}"
    else:
        yield exact if at is None else f"step {exact_step(at)} · {exact}"
    for line, sign in signs(data):
        metric = data.right if line.right and data.right is not None else data
        name = fit(printable(line.label or metric.title), _LONGEST)
        value = _value(line, step, data, metric.unit, cache)
        yield f"{sign} {name} {value}".lstrip()
    yield from _around(data, step)


def _on_paths(data: ChartData, step: int) -> Iterator[str]:
    """Yield where each run's path was: `step 120: KL 0.031, reward 0.62`."""
    name = printable(data.title).removesuffix(" over KL")
    for line, sign in signs(data):
        over = None if line.over is None else value_at(line.over, step)
        found = value_at(line.points, step)
        named = (("KL", over), (name, found))
        figures = [f"{word} {compact(one[1])}" for word, one in named if one]
        of_run = f"{sign} {printable(line.label)} " if sign else ""
        at = exact_step(found[0] if found else step)
        yield f"{of_run}step {at}: {', '.join(figures) or '-'}"


def _around(data: ChartData, step: int) -> Iterator[str]:
    """Yield the least and the greatest around the metric; the median, and the ranges of the middle
    half and of nearly all values.
    """
    found = [value_at(points, step) for points in data.around]
    texts = [in_words(one[1], data.unit)[0] for one in found if one is not None]
    if len(texts) < len(found):
        return
    if data.envelope:
        yield f"min {texts[0]} max {texts[1]}"
    if data.spread:
        least, lower, middle, upper, most = texts[-5:]
        yield f"median {middle}"
        yield f"25–75% {lower} to {upper}"
        yield f"5–95% {least} to {most}"


def _value(
    line: ChartLine, step: int, data: ChartData, unit: str, cache: ChartCache
) -> str:
    found = value_at(line.points, step)
    if found is None:
        return "-"
    text = value_text(found[1], unit)
    if line.kind == "line" and 0 < data.smoothing < 1:
        smooth = value_at(cache.smoothed(line.points, data.smoothing), step)
        if smooth is not None:
            text += f" (smooth {in_words(smooth[1], unit)[0]})"
    return text if found[0] == step else f"{text} @ {data.axis.exact(found[0])}"


def rows_of(values: Sequence[str], width: int, most: int) -> list[str]:
    """Return readings as rows of at most `width` cells; what does not fit into `most` rows ends in
    an ellipsis.
    """
    rows: list[str] = []
    for text in values:
        if rows and cell_len(rows[-1]) + len(_GAP) + cell_len(text) <= width:
            rows[-1] += _GAP + text
        else:
            rows.append(text)
    kept = [fit(row, width) for row in rows[: max(1, most)]]
    if len(rows) > len(kept):
        last = fit(kept[-1], width - 2).removesuffix(ELLIPSIS).rstrip()
        kept[-1] = f"{last} {ELLIPSIS}"
    return kept

"""The signs and lines of a chart, each with its meaning."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from verl_tui.rendering.charts.braille import DotLayer, compose
from verl_tui.rendering.charts.paint import LINE_STYLES, SHADES, straight_line
from verl_tui.rendering.charts.symbols import SYMBOLS
from verl_tui.rendering.session.selection import LETTERS
from verl_tui.rendering.text.piece import text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_CELLS = 7
"""Cells of a straight line that is shown: enough to see its dashes."""
_CURVE = (3, 2, 1, 1, 2, 1)
"""Dot rows of a curve that is shown."""


class LegendEntry(NamedTuple):
    """A sign, and what it means."""

    sign: str
    means: str
    faint: bool = False


SIGNS = {
    "points": "validation: one sign for each metric",
    "breach": "a finding began at this step",
    "restart": "the run was restarted here",
    "checkpoint": "checkpoint",
    "broken": "NaN or infinity",
    "start": "where a path over the KL begins",
    "single": "end of a curve: its newest value",
    "best": "the best value so far",
    "rising falling flat": "beside the value: its recent trend",
    "rising falling": "at the edge: values or a target beyond the y axis",
    "cursor": "the cursor",
    "focus": "the chart that has the focus",
}
"""Names of `Symbols` that need an explanation, and what they mean."""
LINES = {
    "band": "ends of the healthy range, else shaded",
    "target": "a target of the configuration",
    "restart": "the step of a restart",
}
"""Roles of straight lines, and what they mean."""
_AREAS = {
    "envelope": "from the least to the greatest value of a step",
    "quartiles": "middle half of a distribution, faint: 5 to 95%",
}
"""Roles of shades, and what they mean."""


def legend() -> Iterator[LegendEntry]:
    """Yield every sign of a chart."""
    for names, means in SIGNS.items():
        signs = " ".join(" ".join(getattr(SYMBOLS, name)) for name in names.split())
        yield LegendEntry(signs, means)
    for role, means in LINES.items():
        style = LINE_STYLES[role]
        small = _row(straight_line(role, 1 if style.upright else _CELLS, 1, 1))
        yield LegendEntry(f"{small} {style.sign * min(3, len(small))}", means)
    curve = DotLayer(len(_CURVE) // 2, 1)
    curve.spans(enumerate((y, y) for y in _CURVE))
    means = "values as they are, faint behind the smoothed ones"
    yield LegendEntry(_row(curve), means, faint=True)
    for role, means in _AREAS.items():
        area = DotLayer(len(_CURVE) // 2, 1)
        area.shade([(0, 3)] * len(_CURVE), SHADES[role])
        yield LegendEntry(_row(area), means)
    means = "on a line: the run that has this letter in the run list"
    yield LegendEntry(f"{LETTERS[0]} {LETTERS[1]}", means)


def _row(layer: DotLayer) -> str:
    """Return the only row of a picture."""
    return text_of(compose([layer])[0])

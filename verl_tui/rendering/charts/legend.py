"""The signs and lines of a chart, each with its meaning."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from verl_tui.rendering.charts.braille import DotLayer, compose
from verl_tui.rendering.charts.line_styles import LINE_STYLES, straight_lines
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


def legend() -> Iterator[LegendEntry]:
    """Yield every sign of a chart."""
    for names, means in SIGNS.items():
        yield LegendEntry(
            " ".join(" ".join(getattr(SYMBOLS, name)) for name in names.split()), means
        )
    for role, means in LINES.items():
        stroke = LINE_STYLES[role]
        small = _row(straight_lines(role, 1 if stroke.upright else _CELLS, 1, [1]))
        yield LegendEntry(f"{small} {stroke.sign * min(3, len(small))}", means)
    curve, shade = (DotLayer(len(_CURVE) // 2, 1) for _ in range(2))
    curve.line([(y, y) for y in _CURVE])
    shade.shade([(0, 3)] * len(_CURVE))
    yield LegendEntry(
        _row(curve), "values as they are, faint behind the smoothed ones", faint=True
    )
    yield LegendEntry(_row(shade), "from the least to the greatest value of a step")
    dense = DotLayer(len(_CURVE) // 2, 1)
    dense.shade([(0, 3)] * len(_CURVE), 2)
    yield LegendEntry(_row(dense), "middle half of a distribution, faint: 5 to 95%")
    yield LegendEntry(
        f"{LETTERS[0]} {LETTERS[1]}",
        "on a line: the run that has this letter in the run list",
    )


def _row(layer: DotLayer) -> str:
    """Return the only row of a picture."""
    (row,) = compose([layer])
    return text_of(row)

"""The glyphs of a chart with their meanings, and words in little room."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len, set_cell_size

from verl_tui.rendering.text.printable import printable, wrapped
from verl_tui.rendering.text.wrap import fit as cut

if TYPE_CHECKING:
    from collections.abc import Iterator


Text = tuple[tuple[str, str], ...]
"""A row of text as stretches of one style: (text, name of the style)."""


class Symbols(NamedTuple):
    """The glyphs of a chart. They differ from each other, so that colour is never needed to
    distinguish them.
    """

    rising: str = "↑"
    falling: str = "↓"
    flat: str = "→"
    breach: str = "▲"
    restart: str = "↻"
    checkpoint: str = "■"
    points: str = "◆◇◈▫"
    broken: str = "✗"
    single: str = "●"
    best: str = "★"
    cursor: str = "│"
    ellipsis: str = "…"
    rule: str = "─"
    grid: str = "┈"
    tick: str = "┬"
    side: str = "│"
    side_tick: str = "┤"
    side_right: str = "├"
    corner: str = "└"
    focus: str = "▸"


SYMBOLS = Symbols()


def fit(text: str, cells: int) -> str:
    """Return text from a log on one line of at most `cells` cells."""
    return cut(printable(text), cells)


def sentences(text: str, width: int, rows: int) -> list[Text]:
    """Write sentences, a line each, in the middle of `rows` rows, wrapped and cut to fit."""
    lines: list[str] = []
    for sentence in text.split("\n"):
        lines += wrapped(sentence, width)
    if len(lines) > rows > 0:
        lines[rows - 1] = cut(lines[rows - 1] + " " * width, width - 1)
    above = max(0, rows - len(lines)) // 2
    filled = [*[""] * above, *lines, *[""] * rows][:rows]
    centred = (" " * ((width - cell_len(line)) // 2) + line for line in filled)
    return [((set_cell_size(line, width), "key"),) for line in centred]


RANKS = ("critical", "warning", "info", "restart", "checkpoint")
"""Styles of marks; if a column has several, the first of these is shown."""
SIGNS = {
    "points": "validation: one sign for each metric",
    "breach": "a finding began at this step",
    "restart": "the run was restarted here",
    "checkpoint": "checkpoint",
    "broken": "NaN or infinity",
    "single": "end of a curve: its newest value",
    "best": "the best value so far",
    "rising falling flat": "beside the value: its recent trend",
    "rising falling": "at the edge: values or a target beyond the y axis",
    "cursor": "the cursor",
    "focus": "the chart that has the focus",
}
"""Names of `Symbols` that need an explanation, and what they mean."""


def legend() -> Iterator[tuple[str, str]]:
    """Yield every sign of a chart, and what it means."""
    for names, means in SIGNS.items():
        yield (
            " ".join(" ".join(getattr(SYMBOLS, name)) for name in names.split()),
            means,
        )
    yield "⠂⠂⠂⠂⠂⠂⠂", "ends of the healthy range, else shaded"
    yield "⠒⠒⠒⠐⠒⠒⠂", "a target of the configuration"
    yield "⠅", "the step of a restart"
    yield "⡠⠒⠢", "values as they are, faint behind the smoothed ones"
    yield "~0.9", "smoothed, as noise asks for: weight of the past"
    yield "░░░", "from the least to the greatest value of a step, else shaded"
    yield "▒▒▒", "middle half of a distribution, faint: 5 to 95%, else shaded"
    yield "a b", "on a line: the run that has this letter in the run list"

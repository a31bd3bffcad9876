"""The glyphs of a chart, and words in little room."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len, set_cell_size

from verl_tui.rendering.text.printable import printable, wrapped
from verl_tui.rendering.text.wrap import fit as cut

if TYPE_CHECKING:
    from verl_tui.rendering.charts.braille import Text


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
    start: str = "○"


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

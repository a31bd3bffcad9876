"""Words that several parts of a chart write: sentences, and which way a target lies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size

from verl_tui.rendering.charts.symbols import SYMBOLS, fit
from verl_tui.rendering.text.numbers import compact
from verl_tui.rendering.text.printable import wrapped

if TYPE_CHECKING:
    from verl_tui.rendering.charts.axes import Scale
    from verl_tui.rendering.charts.braille import Text


def beyond(target: float, scale: Scale, cells: int) -> str:
    """Write which way a target lies that the y axis does not reach, and its value where there is
    room.
    """
    arrow = SYMBOLS.rising if target > scale.hi else SYMBOLS.falling
    text = arrow + compact(target)
    if len(text) * 4 <= cells:
        return text
    return arrow[:cells]


def sentences(text: str, width: int, rows: int) -> list[Text]:
    """Write sentences, a line each, in the middle of `rows` rows, wrapped and cut to fit."""
    lines: list[str] = []
    for sentence in text.split("\n"):
        lines += wrapped(sentence, width)
    if len(lines) > rows > 0:
        lines[rows - 1] = fit(lines[rows - 1] + " " * width, width - 1)
    lines = lines[: max(0, rows)]
    above = (rows - len(lines)) // 2
    filled = [""] * above + lines + [""] * (rows - above - len(lines))
    centred = (" " * ((width - cell_len(line)) // 2) + line for line in filled)
    return [((set_cell_size(line, width), "key"),) for line in centred]

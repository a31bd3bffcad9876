"""What stands on the terminal, cell by cell, so that only cells that change are written.

Textual writes whole rows of a widget, each piece with its colours before it and a reset behind it. Over a slow line the
colours cost more than the text: here they are written once for all cells of a frame that share them.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import groupby
from operator import itemgetter, ne
from typing import TYPE_CHECKING, Any

from rich.cells import get_character_cell_size
from rich.color import ColorSystem
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
from textual.strip import Strip

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.console import Console
    from rich.style import Style

Cell = tuple[str, str]
"""A character, and the numbers of its colours as the terminal takes them; the right half of a wide one is empty."""
_Piece = tuple[str, int, int, str]
"""Colours, row, column, text."""
_PLANES = 0x1F000
"""From here on terminals differ in how wide a character is."""
_SURE = re.compile("[\0-\u02ff\u2010-\u2027\u2030-\u205e\u2070-\u20cf\u2100-\u2bff]*")
"""What joins no character before it: letters, punctuation, arrows, frames, blocks, braille."""
_SIGN, _INK = itemgetter(0), itemgetter(1)
"""The parts of a cell."""
_CHANGED = b"\x01"
_STRETCH = re.compile(rb"\x01+(?:\x00{1,4}\x01+)*")
"""Cells that have changed, and up to four between them that have not: to pass over those takes as many bytes."""


class Cells:
    """The cells of a terminal as they were written last."""

    def __init__(self) -> None:
        self._rows: list[list[Cell]] = []

    def thinned(self, update: Any) -> Any:
        """Return an update that does the same with fewer bytes, where one is known."""
        if isinstance(update, LayoutUpdate):
            return _Frame(update, self)
        if isinstance(update, ChopsUpdate):
            return _Changes(update, self)
        return update

    def forget(self) -> None:
        """Have all written anew: others may have written to the terminal, or it has lost what stood there."""
        self._rows = []

    def take(self, update: LayoutUpdate, colours: ColorSystem) -> Iterable[_Piece]:
        """Return what has changed in a whole frame, and note it; all of it where another size was written last."""
        before = self._rows
        self._rows = [[cell for strip in strips for cell in cells(strip, colours)] for strips in update.strips]
        if list(map(len, before)) != list(map(len, self._rows)):
            return [piece for y, row in enumerate(self._rows) for piece in _pieces(y, 0, [], row)]
        pairs = enumerate(zip(before, self._rows, strict=True))
        return sorted(piece for y, (old, new) in pairs if old != new for piece in _pieces(y, 0, old, new))

    def changes(self, update: ChopsUpdate, colours: ColorSystem) -> Iterator[_Piece]:
        """Yield what has changed, and note it."""
        for y, x1, x2 in update.spans:
            row = self._rows[y] if y < len(self._rows) else []
            for x, fresh in _written(update, y, x1, x2, colours):
                known = row[x : x + len(fresh)]
                if known != fresh:
                    row[x : x + len(fresh)] = fresh
                    yield from _pieces(y, x, known, fresh)


class _Frame(CompositorUpdate):
    """A whole frame."""

    def __init__(self, update: LayoutUpdate, written: Cells) -> None:
        self._update, self._written = update, written

    def render_segments(self, console: Console) -> str:
        """Write all of it."""
        return write(self._written.take(self._update, _colours(console)))


class _Changes(CompositorUpdate):
    """Some regions of the screen, of which only what is new is written."""

    def __init__(self, update: ChopsUpdate, written: Cells) -> None:
        self._update, self._written = update, written

    def render_segments(self, console: Console) -> str:
        """Write what has changed, all of one colour together, wherever it stands."""
        return write(sorted(self._written.changes(self._update, _colours(console))))


def _written(update: ChopsUpdate, y: int, x1: int, x2: int, colours: ColorSystem) -> Iterator[tuple[int, list[Cell]]]:
    """Yield what is written of a row: where each stretch of it begins, and its cells."""
    begin, fresh = 0, list[Cell]()
    for end, (x, strip) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
        if strip is None or x > x2 or end <= x1:
            continue
        if x != begin + len(fresh):
            if fresh:
                yield begin, fresh
            begin, fresh = x, []
        fresh += cells(strip.crop(0, min(end, x2) - x), colours)
    if fresh:
        yield begin, fresh


def _colours(console: Console) -> ColorSystem:
    return console._color_system or ColorSystem.TRUECOLOR


def cells(strip: Strip, colours: ColorSystem) -> list[Cell]:
    """Return the cells of a strip."""
    found: list[Cell] = []
    for text, style, _ in strip:
        ink = _ink(style, colours) if style is not None else ""
        joined, fresh = _split(text, ink)
        if joined and found:
            found[-1] = (found[-1][0] + joined, ink)
        found += fresh
    return found


@lru_cache(maxsize=4096)
def _split(text: str, ink: str) -> tuple[str, tuple[Cell, ...]]:
    """Return the cells of a text of one colour, and what of it belongs to the cell before."""
    if text.isascii():
        return "", tuple([(sign, ink) for sign in text])
    joined, found = "", list[Cell]()
    for sign in text:
        wide = get_character_cell_size(sign)
        if wide:
            found += ((sign, ink), ("", ink))[:wide]
        elif found:
            found[-1] = (found[-1][0] + sign, ink)
        else:
            joined += sign
    return joined, tuple(found)


def write(pieces: Iterable[_Piece]) -> str:
    """Return what writes pieces of text in their order."""
    written: list[str] = []
    ink, at = None, (-1, 0)
    for colour, y, x, text in pieces:
        if colour != ink:
            written.append(f"\x1b[0;{colour}m" if colour else "\x1b[0m")
            ink = colour
        if at[0] != y or at[1] > x:
            written.append(f"\x1b[{y + 1};{x + 1}H")
        elif at[1] < x:
            written.append(f"\x1b[{x - at[1]}C")
        written.append(text)
        at = (y, x + len(text)) if text.isascii() else (-1, 0)
    return "".join([*written, "\x1b[0m"]) if written else ""


def _pieces(y: int, x: int, known: list[Cell], fresh: list[Cell]) -> Iterator[_Piece]:
    """Yield the stretches of cells of one colour that have changed."""
    anew = len(known) < len(fresh) or _uncertain(known) or _uncertain(fresh)
    end = 0
    for ink, same in groupby(fresh, _INK):
        run = list(same)
        at, end = end, end + len(run)
        changed = _CHANGED * len(run) if anew else bytes(map(ne, known[at:end], run))
        for stretch in _STRETCH.finditer(changed):
            begin, stop = stretch.span()
            yield ink, y, x + at + begin, "".join(map(_SIGN, run[begin:stop]))


def _uncertain(row: list[Cell]) -> bool:
    """Tell whether terminals differ in how wide a character is: all that stands behind it in its row is then moved."""
    text = "".join(map(_SIGN, row))
    if text.isascii() or _SURE.fullmatch(text):
        return False
    return max(text) >= chr(_PLANES) or max(len(sign) for sign, _ in row) > 1


@lru_cache(maxsize=1024)
def _ink(style: Style, colours: ColorSystem) -> str:
    """Return the numbers that set a style's colours."""
    before, _, _ = Strip.render_style(style, "\x00", colours).partition("\x00")
    return before[2:-1]

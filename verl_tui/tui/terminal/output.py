"""Output of the app: the terminal's content, cell by cell, so that only cells that change are
written; and the frame as text.

Textual writes whole rows of a widget, each piece with its colours before it and a reset behind it.
Over a slow line the colours cost more than the text: here they are written once for all cells of a
frame that share them.

A row is two strings with one letter per cell: one for its text, and one for its colours. Strings
are compared, searched and cut in one operation; a list of cells would be processed one by one.

An example: in row 3 stands `step 41  reward 0.50`, the number red, and the next frame has `step 42`
and `0.51`. With one letter for each colour, `a` for none and `b` for red:

    before   step 41  reward 0.50    aaaaaaaaaaaaaaaabbbb
    after    step 42  reward 0.51    aaaaaaaaaaaaaaaabbbb
    changed        x            x

The cells marked are two pieces, of colour `a` at column 6 and of `b` at column 19. Sorted by their
colours they become `ESC[0m ESC[4;7H 2 ESC[0;31m ESC[12C 1 ESC[0m`, without the blanks: the cursor
is set once and then moved on; a ground that stays is not written again.
"""

from __future__ import annotations

import re
from functools import lru_cache
from operator import ne, or_
from typing import TYPE_CHECKING, Any

from rich.cells import get_character_cell_size
from rich.color import ColorSystem
from rich.console import COLOR_SYSTEMS, Console, RenderableType
from rich.segment import Segment
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
from textual.app import App, ReturnType
from textual.filter import LineFilter, Monochrome, NoColor
from textual.strip import Strip

from verl_tui.patterns import pattern
from verl_tui.rendering.text.ascii_table import in_ascii

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.style import Style
    from textual.color import Color
    from textual.screen import Screen


CellRow = tuple[str, str]
"""Interned characters of neighbouring cells, and their interned colours."""
_Piece = tuple[str, int, int, str]
"""Colours as a letter, row, column, and the characters of the cells."""
_PLANES = chr(0x1F000)
"""From this character on terminals differ in widths."""
_SURE = pattern(
    "[\0-\u02ff\u2010-\u2027\u2030-\u205e\u2100-\u22ff\u2500-\u25fc\u2800-\u28ff]*"
)
"""Characters of one cell that never join the one before: letters, arrows, frames, blocks, braille.
"""
_HALF = "\0"
"""The letter of the right half of a character that takes two cells."""
_JOINED = "\U000f0000"
"""First letter of interned texts: Unicode leaves these code points to private use."""
_MOST = 60_000
"""Most interned texts and colours before all are forgotten: a screen has a few dozen."""
_CHANGED = b"\x01"
_STRETCH = pattern(rb"\x01+(?:\x00{1,4}\x01+)*")
"""Cells that have changed, and up to four between them that have not: to pass over those takes as
many bytes.
"""
_OF_ONE_COLOUR = pattern(r"(.)\1*", re.DOTALL)
_COLOURS = pattern(r"((?:\d;)*)(38;(?:5;\d+|2;\d+;\d+;\d+));(48;.+)")
"""The numbers of a style: its attributes, the colours of text and ground."""


class Interner(dict[str, str]):
    """Interns texts: the letter that stands for each, given when it is first asked for."""

    def __init__(self, first: str) -> None:
        """Begin with a letter."""
        super().__init__()
        self._first = ord(first)
        self._texts: dict[str, str] = {}

    def __missing__(self, text: str) -> str:
        self[text] = letter = chr(self._first + len(self))
        self._texts[letter] = text
        return letter

    def text(self, letter: str) -> str:
        """Return what a letter stands for; one of no text for itself."""
        return self._texts.get(letter, letter)


class Cells:
    """The cells of a terminal as they were last written."""

    def __init__(self) -> None:
        self._begin(ColorSystem.TRUECOLOR)

    def _begin(self, system: ColorSystem) -> None:
        """Begin in these colours, without any cell or interned text."""
        self._system = system
        self._rows: list[CellRow] = []
        self._inks: dict[Style | None, str] = {}
        """Letters of the styles seen so far."""
        self._colours = Interner("\0")
        self._joined = Interner(_JOINED)

    def diffed(self, update: Any, console: Console) -> str | None:
        """Return the sequences for all changes of an update; None for one of an unknown kind."""
        system = COLOR_SYSTEMS.get(console.color_system or "", ColorSystem.TRUECOLOR)
        many = max(len(self._joined), len(self._inks)) > _MOST
        if many or system is not self._system:
            self._begin(system)
        if isinstance(update, LayoutUpdate):
            return self._write(self._frame(update))
        if isinstance(update, ChopsUpdate):
            return self._write(self._changed(update))
        return None

    def forget(self) -> None:
        """Forget all cells: others may have written to the terminal, or it has lost its content."""
        self._rows = []

    def _frame(self, update: LayoutUpdate) -> Iterator[_Piece]:
        """Yield what has changed in a whole frame; all of it if another size was written last."""
        before = self._rows
        self._rows = [self.row(strips) for strips in update.strips]
        sizes = [[len(row[0]) for row in rows] for rows in (before, self._rows)]
        if sizes[0] != sizes[1]:
            before = [("", "")] * len(self._rows)
        for y, (old, new) in enumerate(zip(before, self._rows, strict=True)):
            if old != new:
                yield from _pieces(y, 0, old, new)

    def _changed(self, update: ChopsUpdate) -> Iterator[_Piece]:
        """Yield what has changed in parts of rows."""
        for y, x1, x2 in update.spans:
            signs, inks = self._rows[y] if y < len(self._rows) else ("", "")
            chops = zip(update.chop_ends[y], update.chops[y].items(), strict=False)
            for stop, (x, strip) in chops:
                if strip is None or x > x2 or stop <= x1:
                    continue
                fresh = self.row([strip.crop(0, min(stop, x2) - x)])
                end = x + len(fresh[0])
                known = signs[x:end], inks[x:end]
                if known != fresh:
                    signs = signs[:x] + fresh[0] + signs[end:]
                    inks = inks[:x] + fresh[1] + inks[end:]
                    yield from _pieces(y, x, known, fresh)
            if y < len(self._rows):
                self._rows[y] = signs, inks

    def row(self, strips: Iterable[Strip]) -> CellRow:
        """Return the cells of strips side by side."""
        signs = inks = ""
        for strip in strips:
            for text, style, _ in strip:
                letters = text
                if not (text.isascii() or _SURE.fullmatch(text)):
                    letters = "".join(map(self._letter, _split(text)))
                signs += letters
                inks += (self._inks.get(style) or self._ink(style)) * len(letters)
        return signs, inks

    def _letter(self, text: str) -> str:
        if len(text) == 1 and text < _JOINED:
            return text
        return self._joined[text]

    def _ink(self, style: Style | None) -> str:
        self._inks[style] = letter = self._colours[_numbers(style, self._system)]
        return letter

    def _write(self, pieces: Iterable[_Piece]) -> str:
        """Return the sequences for pieces, those of one colour together, wherever they are."""
        written = ink = ""
        at = (-1, 0)
        text_of = self._colours.text
        # attributes come last: what follows them has to reset them
        of_colours = sorted(pieces, key=lambda piece: text_of(piece[0]), reverse=True)
        for letter, y, x, signs in of_colours:
            if letter != ink:
                written += _change(text_of(ink), text_of(letter))
                ink = letter
            if at[0] != y or at[1] > x:
                written += f"\x1b[{y + 1};{x + 1}H"
            elif at[1] < x:
                written += f"\x1b[{x - at[1]}C"
            # terminals disagree about widths, so the cursor's place is unknown afterwards
            at = (y, x + len(signs)) if signs.isascii() else (-1, 0)
            if _SURE.fullmatch(signs):
                written += signs
            else:
                written += "".join(map(self._joined.text, signs.replace(_HALF, "")))
        return written and f"{written}\x1b[0m"


class Written(CompositorUpdate):
    """An update whose output is known already."""

    def __init__(self, text: str) -> None:
        self._text = text

    def render_segments(self, console: Console) -> str:
        """Write that."""
        return self._text


@lru_cache(maxsize=4096)
def _split(text: str) -> tuple[str, ...]:
    """Return the content of each cell of a text."""
    found = list[str]()
    for sign in text:
        wide = get_character_cell_size(sign)
        if wide:
            found += (sign, _HALF)[:wide]
        elif found:
            found[-2 if found[-1] == _HALF else -1] += sign
    return tuple(found)


def _pieces(y: int, x: int, known: CellRow, fresh: CellRow) -> Iterator[_Piece]:
    """Yield the stretches of cells of one colour that have changed."""
    signs, inks = fresh
    if len(known[0]) < len(signs) or _uncertain(known[0]) or _uncertain(signs):
        changed = _CHANGED * len(signs)
    else:
        changed = bytes(map(ne, known[0], signs))
        if known[1] != inks:
            changed = bytes(map(or_, changed, map(ne, known[1], inks)))
    for run in _OF_ONE_COLOUR.finditer(inks):
        for stretch in _STRETCH.finditer(changed, *run.span()):
            begin, end = stretch.span()
            yield run[1], y, x + begin, signs[begin:end]


def _uncertain(signs: str) -> bool:
    """Return whether terminals differ in how wide a character is: all that stands behind it in its
    row is then moved.
    """
    return not signs.isascii() and max(signs) >= _PLANES


@lru_cache(maxsize=4096)
def _change(known: str, numbers: str) -> str:
    """Return the sequence that sets a style: only what changes, where the style before has no
    attributes to be reset.
    """
    before, after = _COLOURS.fullmatch(known), _COLOURS.fullmatch(numbers)
    if before and after and not before[1]:
        both = zip(after.groups(), before.groups(), strict=True)
        changed = [own.rstrip(";") for own, other in both if own != other]
        return f"\x1b[{';'.join(changed)}m"
    return f"\x1b[0;{numbers}m" if numbers else "\x1b[0m"


@lru_cache(maxsize=4096)
def _numbers(style: Style | None, system: ColorSystem) -> str:
    """Return the numbers that set a style's colours."""
    if style is None:
        return ""
    before, _, _ = Strip.render_style(style, "\x00", system).partition("\x00")
    return before[2:-1]


class AsciiOnly(LineFilter):
    """Keeps the whole screen to ASCII, Textual's frames and scroll bars as well: replaces other
    characters by one that resembles them, or by a question mark for each cell.
    """

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the line in ASCII, as wide as before."""
        return [
            one if one.text.isascii() else Segment(in_ascii(one.text), *one[1:])
            for one in segments
        ]


class TerminalOutput(App[ReturnType]):
    """An app that writes only changed cells, on request in ASCII or without colours."""

    ascii_only = False
    """Whether to keep to ASCII."""
    _no_colour = NoColor()
    _ascii = AsciiOnly()

    def __init__(self) -> None:
        super().__init__()
        self._cells = Cells()
        # we have none; each screen would hold a widget for them
        self._disable_tooltips = True

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Return the filters for rows on their way to the terminal.

        Without colours Textual draws in shades of grey; NO_COLOR means none (https://no-color.org).
        """
        filters = [
            self._no_colour if isinstance(one, Monochrome) else one
            for one in super().get_line_filters()
        ]
        return [*filters, *[self._ascii] * self.ascii_only]

    def _display(
        self, screen: Screen[object], renderable: RenderableType | None
    ) -> None:
        text = None
        if self._is_written():
            text = self._cells.diffed(renderable, self.console)
        if text is None:
            super()._display(screen, renderable)
        elif text or self._cursor_moved():
            # else Textual would write where the cursor is, though it is there already
            known: Any = Written(text)
            super()._display(screen, known)

    def _is_written(self) -> bool:
        """Return whether Textual writes a frame now, or drops it."""
        app: Any = self
        live = app._running and not app._closed and app._driver is not None
        return live and not app._batch_count and not self.is_headless

    def _cursor_moved(self) -> bool:
        """Return whether the terminal's cursor has to be elsewhere than it was last."""
        app: Any = self
        place = self.screen.outer_size.clamp_offset(self.cursor_position)
        return bool(place != app._previous_cursor_position)

    def forget_cells(self) -> None:
        """Have the next frame written whole: the terminal may have lost part of the last one."""
        self._cells.forget()

    def action_redraw(self) -> None:
        """Write the whole screen again, for terminals that have lost some of it."""
        self.forget_cells()
        self.refresh(layout=True)
        self.refresh()

    def write_sequence(self, sequence: str) -> None:
        """Write an escape sequence, if it is one, that moves no cursor and draws nothing."""
        if sequence and self._driver is not None:
            self._driver.write(sequence)


def screen_rows(app: App[Any]) -> list[str]:
    """Return the rows of the screen without colours."""
    return [strip.text for strip in app.screen._compositor.render_strips()]

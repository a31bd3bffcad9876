"""Text from logs made printable, cut in the middle or wrapped. Widths are terminal cells."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from os.path import commonprefix
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size

from verl_tui.patterns import pattern
from verl_tui.rendering.text.piece import Pieces, text_of
from verl_tui.rendering.text.wrap import ELLIPSIS, fit, wrap

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


_LONGEST = 4096
"""Most characters of a text that are used."""


def printable(text: str) -> str:
    """Return text on one line, what cannot be printed replaced."""
    text = " ".join(text[:_LONGEST].split())
    if not text.isprintable():
        text = "".join(c if c.isprintable() else "?" for c in text)
    return text


@lru_cache(1024)
def middle(text: str, cells: int) -> str:
    """Return text cut in the middle to `cells` cells, since names often differ at their ends."""
    text = printable(text)
    if cell_len(text) <= cells:
        return text
    if cells < 5:
        return fit(text, cells)
    head = set_cell_size(text, cells // 2).rstrip()
    tail = len(text)
    room = cells - cell_len(head) - 1
    while cell_len(text[tail - 1 :]) <= room:
        tail -= 1
    return head + ELLIPSIS + text[tail:].lstrip()


@lru_cache(1024)
def wrapped(text: str, cells: int) -> tuple[str, ...]:
    """Return text as one paragraph in lines of at most `cells` cells."""
    text = printable(text)
    return tuple(wrap(text, cells)) if text else ()


def paragraph(text: str, role: str, cells: int) -> list[Pieces]:
    """Return text in one role, as rows of at most `cells` cells."""
    return [[(line, role)] for line in wrapped(text, cells)]


def cut(pieces: Pieces, cells: int, mark: str = "") -> Pieces:
    """Return a row cut to `cells` cells, with a mark at its end if text is lost."""
    words = text_of(pieces).rstrip()
    room = max(0, cells)
    mark = mark[:room] if cell_len(words) > room else ""
    room -= len(mark)
    row: Pieces = []
    for text, role in pieces:
        shown = text if cell_len(text) <= room else set_cell_size(text, room)
        room -= cell_len(shown)
        row.append((shown, role))
    if mark:
        return [*row, (mark, next((role for text, role in reversed(row) if text), ""))]
    return row


def size_text(count: int) -> str:
    """Return a size as `812 B`, `4.1 kB`, `12 MB`."""
    size, unit = float(count), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if size >= 999.5:
            size, unit = size / 1000, larger
    digits = 1 if unit != "B" and size < 9.95 else 0
    return f"{size:,.{digits}f} {unit}"


def natural(name: str) -> tuple[object, ...]:
    """Return a sort key for natural order: `layer2` before `layer10`, case ignored."""
    parts = _DIGITS.split(name.lower())
    pairs = zip(parts[::2], [*parts[1::2], ""], strict=True)
    order = [(part, len(digits), digits) for part, digits in pairs]
    return *order, name


# -- names in little room that still differ: what they all share is cut first ----------------------


_DIGITS = pattern(r"(\d+)")
_PLACED = pattern(r"([^(]+) \(([^()]+)\)")
"""A run's name with what tells it from others of the name."""


@lru_cache(16)
def told_apart(names: tuple[str, ...]) -> Mapping[str, str]:
    """Return the names of runs: of several with one name only what tells them apart."""
    found = {name: _PLACED.fullmatch(name) for name in names}
    parts = Counter(part for one in found.values() if one for part in one.groups())
    return {
        name: one[2] if one and parts[one[1]] > 1 == parts[one[2]] else name
        for name, one in found.items()
    }


@lru_cache(16)
def short_run_names(names: tuple[str, ...], cells: int) -> Mapping[str, str]:
    """Return each of the names of runs in at most so many cells."""
    own = told_apart(names)
    short = short_names(tuple(own.values()), cells)
    return {name: short[own[name]] for name in names}


@lru_cache(16)
def short_names(names: tuple[str, ...], cells: int) -> Mapping[str, str]:
    """Return each of several names in at most so many cells: cut in the parts that all share,
    and where two would look alike then, in those that these share.
    """
    found = _shortened(names, cells)
    alike: dict[str, list[str]] = {}
    for name, text in found.items():
        alike.setdefault(text, []).append(name)
    for group in alike.values():
        found |= _shortened(group, cells) if group[1:] else {}
    return found


def _shortened(names: Sequence[str], cells: int) -> dict[str, str]:
    """Return names cut first in what all share at their beginning and end."""
    head = tail = 0
    if len(set(names)) > 1:
        head = len(commonprefix(names))  # noqa: RUF071 - of letters is what is wanted
        tail = len(commonprefix([name[head:][::-1] for name in names]))  # noqa: RUF071
    return {
        name: _short(name[:head], name[head : len(name) - tail], name, cells, tail)
        for name in names
    }


def _short(head: str, own: str, name: str, cells: int, tail: int) -> str:
    """Return a name whose beginning and end are cut before its own part."""
    end = name[len(name) - tail :]
    room = cells - cell_len(own)
    if cell_len(name) <= cells or not own or room < bool(head) + bool(end):
        return middle(name, cells)
    # Each side may use the room that the other leaves.
    before = min(cell_len(head), max(room - room // 2, room - cell_len(end)))
    return middle(_part(head, before) + own + _part(end, room - before), cells)


def _part(text: str, cells: int) -> str:
    """Cut the middle out of a part of a name, or all of it if little room is left."""
    if not text or cell_len(text) <= cells:
        return text
    return middle(text, cells) if cells >= 5 else ELLIPSIS

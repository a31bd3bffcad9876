"""Names in little room that still differ: what they all share is cut first."""

from __future__ import annotations

from functools import lru_cache
from os.path import commonprefix
from typing import TYPE_CHECKING

from rich.cells import cell_len

from verl_tui.rendering.text.printable import middle
from verl_tui.rendering.text.wrap import ELLIPSIS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@lru_cache(16)
def short_names(names: tuple[str, ...], cells: int) -> Mapping[str, str]:
    """Return each of the names of runs in at most so many cells: cut in the parts that all share,
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
    return middle(_cut(head, before) + own + _cut(end, room - before), cells)


def _cut(text: str, cells: int) -> str:
    """Cut the middle out of a part of a name, or all of it if little room is left."""
    if not text or cell_len(text) <= cells:
        return text
    return middle(text, cells) if cells >= 5 else ELLIPSIS

"""Names in little room that still differ: what they all share is cut first."""

from __future__ import annotations

from functools import lru_cache
from os.path import commonprefix
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from verl_tui.rendering.text.printable import middle
from verl_tui.rendering.text.wrap import ELLIPSIS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


_LEAST_HEAD = 3
"""Cells of shared words below which they say nothing."""


class SharedEnds(NamedTuple):
    """Number of characters that all names share at their start and end."""

    head: int = 0
    tail: int = 0


def shared(names: Sequence[str]) -> SharedEnds:
    """Return the shared ends of several names, none of a single one."""
    if len(set(names)) < 2:
        return SharedEnds()
    head = len(commonprefix(names))  # noqa: RUF071 - of letters is what is wanted
    reversed_rests = [name[head:][::-1] for name in names]
    return SharedEnds(head, len(commonprefix(reversed_rests)))  # noqa: RUF071


def short_name(name: str, cells: int, alike: SharedEnds) -> str:
    """Return a name of at most `cells` cells, cut first in the parts that all names share."""
    stop = len(name) - alike.tail
    head = name[: alike.head]
    own = name[alike.head : stop]
    tail = name[stop:]
    room = cells - cell_len(own)
    least = bool(head) + bool(tail)
    if cell_len(name) <= cells or not own or room < least:
        return middle(name, cells)
    # Each side may use the room that the other leaves.
    before = max(room - room // 2, room - cell_len(tail))
    before = min(cell_len(head), before)
    head = _cut(head, before)
    tail = _cut(tail, room - before)
    return middle(head + own + tail, cells)


@lru_cache(16)
def short_names(names: tuple[str, ...], cells: int) -> Mapping[str, str]:
    """Return each of the names of runs in at most so many cells: cut in the parts that all share,
    and where two would look alike then, in those that these share.
    """
    found = _shortened(names, cells)
    for group in _looking_alike(found):
        found |= _shortened(group, cells)
    return found


def _shortened(names: Sequence[str], cells: int) -> dict[str, str]:
    alike = shared(names)
    return {name: short_name(name, cells, alike) for name in names}


def _looking_alike(short: Mapping[str, str]) -> list[list[str]]:
    """Return the names, in groups, that were cut to the same text."""
    groups: dict[str, list[str]] = {}
    for name, text in short.items():
        groups.setdefault(text, []).append(name)
    return [group for group in groups.values() if len(group) > 1]


def _cut(text: str, cells: int) -> str:
    """Cut the middle out of a part of a name, or all of it if little room is left."""
    if not text or cell_len(text) <= cells:
        return text
    if cells >= 5:
        return middle(text, cells)
    return ELLIPSIS

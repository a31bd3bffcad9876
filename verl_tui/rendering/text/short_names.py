"""Names in little room that still differ: what they all share is cut first."""

from __future__ import annotations

from os.path import commonprefix
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from verl_tui.rendering.text.printable import middle
from verl_tui.rendering.text.wrap import ellipsis

if TYPE_CHECKING:
    from collections.abc import Sequence


class SharedEnds(NamedTuple):
    """Number of characters that all names share at their start and end."""

    head: int = 0
    tail: int = 0


def shared(names: Sequence[str]) -> SharedEnds:
    """Return the shared ends of several names, none of a single one."""
    if len(set(names)) < 2:
        return SharedEnds()
    head = len(commonprefix(names))  # noqa: RUF071 - of letters is what is wanted
    return SharedEnds(head, len(commonprefix([name[head:][::-1] for name in names])))  # noqa: RUF071


def short_name(name: str, cells: int, alike: SharedEnds, *, ascii_only: bool = False) -> str:
    """Return a name of at most `cells` cells, cut first in the parts that all names share."""
    stop = len(name) - alike.tail
    head, own, tail = name[: alike.head], name[alike.head : stop], name[stop:]
    room = cells - cell_len(own)
    if cell_len(name) <= cells or not own or room < bool(head) + bool(tail):
        return middle(name, cells, ascii_only=ascii_only)
    # Each side may use the room that the other leaves.
    before = min(cell_len(head), max(room - room // 2, room - cell_len(tail)))
    parts = (
        _cut(head, before, ascii_only=ascii_only),
        own,
        _cut(tail, room - before, ascii_only=ascii_only),
    )
    return middle("".join(parts), cells, ascii_only=ascii_only)


def _cut(text: str, cells: int, *, ascii_only: bool) -> str:
    """Cut the middle out of a part of a name, or all of it if little room is left."""
    if not text or cell_len(text) <= cells:
        return text
    return (
        middle(text, cells, ascii_only=ascii_only)
        if cells >= 5
        else ellipsis(ascii_only=ascii_only)
    )

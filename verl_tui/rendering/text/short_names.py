"""Names in little room that can still be told apart: what they all share is cut first."""

from __future__ import annotations

from os.path import commonprefix
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from verl_tui.rendering.text.printable import middle
from verl_tui.rendering.text.wrap import ellipsis

if TYPE_CHECKING:
    from collections.abc import Sequence


class SharedEnds(NamedTuple):
    """How many characters all names begin and end with."""

    head: int = 0
    tail: int = 0


def shared(names: Sequence[str]) -> SharedEnds:
    """Return what all of several names begin and end with; of a single one everything differs."""
    if len(set(names)) < 2:
        return SharedEnds()
    head = len(commonprefix(names))  # noqa: RUF071 - of letters is what is wanted
    return SharedEnds(head, len(commonprefix([name[head:][::-1] for name in names])))  # noqa: RUF071


def short_name(name: str, cells: int, alike: SharedEnds, *, ascii_only: bool = False) -> str:
    """Return a name of at most `cells` cells, cut in what it shares with all others as far as that
    goes.
    """
    stop = len(name) - alike.tail
    head, own, tail = name[: alike.head], name[alike.head : stop], name[stop:]
    room = cells - cell_len(own)
    if cell_len(name) <= cells or not own or room < bool(head) + bool(tail):
        return middle(name, cells, ascii_only=ascii_only)
    # What one side leaves is the other's.
    before = min(cell_len(head), max(room - room // 2, room - cell_len(tail)))
    parts = (
        _cut(head, before, ascii_only=ascii_only),
        own,
        _cut(tail, room - before, ascii_only=ascii_only),
    )
    return middle("".join(parts), cells, ascii_only=ascii_only)


def _cut(text: str, cells: int, *, ascii_only: bool) -> str:
    """Cut the middle out of a part of a name, however little is left: then that something is
    missing is all it says.
    """
    if not text or cell_len(text) <= cells:
        return text
    return (
        middle(text, cells, ascii_only=ascii_only)
        if cells >= 5
        else ellipsis(ascii_only=ascii_only)
    )

"""Names in little room that still differ: what they all share is cut first."""

from __future__ import annotations

from functools import lru_cache
from itertools import chain
from os.path import commonprefix
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from verl_tui.rendering.text.printable import middle, printable
from verl_tui.rendering.text.wrap import ELLIPSIS, fit, fit_left

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


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


def distinct_names(names: Sequence[str], cells: int) -> dict[str, str]:
    """Return each name in at most so many cells; those that would look alike lose the words that
    they share, as far as they then differ.
    """
    short = {name: _plain_cut(name, cells) for name in names}
    for group in _looking_alike(short):
        short |= _without_shared_start(group, cells, ELLIPSIS)
    still = list(chain.from_iterable(_looking_alike(short)))
    if still:
        short |= _in_the_middle(still, cells, ELLIPSIS)
    return short


def _without_shared_start(
    names: Sequence[str], cells: int, mark: str
) -> dict[str, str]:
    """Cut names in the words that they share; where their own ones are too long, in these at the
    end, or else at the beginning.
    """
    head = shared(names).head
    start = max(names[0].rfind(sign, 0, head) for sign in " /_") + 1
    found: dict[str, str] = {}
    for cut in (fit, fit_left):
        found = {
            name: _joined(name[:start], name[start:], cells, cut, mark)
            for name in names
        }
        if len(set(found.values())) == len(names):
            break
    return found


def _in_the_middle(names: Sequence[str], cells: int, mark: str) -> dict[str, str]:
    """Cut names in what they share at the beginning, and in the middle of what is their own."""
    head = shared(names).head
    room = max(1, cells - cell_len(mark))
    found: dict[str, str] = {}
    for name in names:
        own = middle(name[head:], room)
        found[name] = fit(mark + own, cells, "")
    return found


def _joined(
    head: str, own: str, cells: int, cut: Callable[[str, int, str], str], mark: str
) -> str:
    """Return the words of a name's own behind as much of the shared ones as there is room for."""
    room = cells - cell_len(own) - len(mark)
    before = fit(head, room, "").rstrip() if room >= _LEAST_HEAD else ""
    if not head or (room < 0 and cut is fit_left):
        return cut(own, cells, mark)
    left = cells - cell_len(before) - len(mark)
    return before + mark + cut(own, left, mark)


def _plain_cut(name: str, cells: int) -> str:
    """Cut a name: keys often differ at their ends only, words do not."""
    if "/" in name:
        return middle(name, cells)
    shown = printable(name)
    return fit(shown, cells)


def _cut(text: str, cells: int) -> str:
    """Cut the middle out of a part of a name, or all of it if little room is left."""
    if not text or cell_len(text) <= cells:
        return text
    if cells >= 5:
        return middle(text, cells)
    return ELLIPSIS

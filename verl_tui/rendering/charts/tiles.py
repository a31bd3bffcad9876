"""Where charts stand on pages: in columns of one size, or around a large one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, pairwise
from typing import NamedTuple

from verl_tui.rendering.arrange import Room

_LEAST_WIDTH, _LEAST_HEIGHT = 26, 6
"""Cells below which a chart shows less than a line of text with a sparkline."""
_GOOD_WIDTH, _GOOD_HEIGHT = 38, 7
"""Cells from which more room goes into more charts rather than larger ones."""
PLOT_HEIGHT = 3
"""Rows from which a chart has a plot: below that, each further row changes its form."""
_FEW = 3
"""Charts that may stand one below the other over the whole width."""
_MOST_LINES = 10
"""Rows of sparklines below a large chart at most: nobody reads more."""
_ENOUGH = 8
"""Number of charts that show a run's health; only to fit these are charts made smaller than is
good.
"""


def _grid(width: int, height: int) -> tuple[int, int]:
    """Return how many columns and rows of charts fit; as many rows as lines where these are rows of
    text.
    """
    # columns of single lines
    if width < 2 * _LEAST_WIDTH - 4 or height < _LEAST_HEIGHT:
        return max(1, (width + 1) // (_GOOD_WIDTH + 1)), max(1, height)
    columns = max(width // _GOOD_WIDTH, min(2, (width + 1) // (_LEAST_WIDTH + 1)), 1)
    rows = height // _GOOD_HEIGHT
    if columns * rows < _ENOUGH:
        rows = height // _LEAST_HEIGHT
    return columns, max(1, rows)


def _columns(count: int, most: int, rows: int) -> int:
    """Return in how many columns charts of one size stand; those of a single page fill its rows."""
    used = max(1, -(-count // most))
    return max(1, -(-count // used)) if used <= rows else most


def lines_of(count: int, width: int) -> int:
    """Return the lines that so many metrics take, in a row each."""
    return -(-count // _grid(width, _LEAST_HEIGHT)[0])


# -- strips ----------------------------------------------------------------------------------------


class Strip(NamedTuple):
    """Tiles side by side over the whole width; a heading without any."""

    tiles: int = 0
    columns: int = 1
    rows: int = 0
    """Rows of charts; none in a line of text."""
    least: int = 1
    """Lines that it needs."""
    wide: int = 0
    """Share of the width that a large chart takes, beside columns of two each; 0 without one."""

    def placed(self, width: int, tops: Sequence[int]) -> Iterator[Room]:
        """Yield the places of the tiles, given where each row begins and the last one ends."""
        if not self.wide:
            yield from _row(self.tiles, self.columns, 0, width, tops)
            return
        beside = self.tiles - 1
        across = -(-beside // self.rows)
        left = (width + 1) * self.wide // (self.wide + 2 * across)
        left = min(left, width + 1 - across * (_LEAST_WIDTH + 1))
        yield Room(0, tops[0], left - 1, tops[-1] - tops[0])
        for at in range(min(self.rows, beside)):
            count = len(range(at, beside, self.rows))
            yield from _row(count, count, left, width, tops[at : at + 2])


def _row(
    count: int, columns: int, x: int, end: int, tops: Sequence[int]
) -> Iterator[Room]:
    """Yield so many tiles from one cell to before another, in columns with a cell between them."""
    edges = [x + at * (end - x + 1) // columns for at in range(count + 1)]
    for left, right in pairwise(edges):
        yield Room(left, tops[0], right - left - 1, tops[1] - tops[0])


def _strips(count: int, columns: int, rows: int = 0, least: int = 1) -> Iterator[Strip]:
    """Yield the strips that so many tiles take."""
    for at in range(0, count, columns):
        yield Strip(min(columns, count - at), columns, rows, least)


def _shape(count: int, width: int, height: int) -> tuple[int, int, int, int, int]:
    """Return how a page is shared by a large chart and others of so many: its share of the width,
    its rows, the columns beside it, the rows of all charts, and the lines that it keeps where the
    others are lines of text.
    """
    most, rows = _grid(width, height)
    if rows == height:  # of text
        charts = (height - _MOST_LINES) // _LEAST_HEIGHT
        return (3, 2, 0, charts, 0) if charts > 2 else (3, 1, 0, 0, height // 3)
    if most == 2 and rows <= _FEW:
        tops = min(rows, count - 1) if count == _FEW else 1
        return 3, tops, 1, 0, -(-height * 2 // 3)
    half = max(2, (most + 1) // 2)
    return 2 * half, min(2, rows), max(0, most - half), rows, height * 2 // 3


def _led(count: int, width: int, height: int) -> list[Strip]:
    """Return the strips of a page that a large chart and others of so many share; none where there
    is no room for it.
    """
    most, lines = _grid(width, height)
    if not count or lines == height < 2 * _LEAST_HEIGHT:  # rows of text
        return []
    wide, tops, across, rows, tall = _shape(count, width, height)
    beside = min(count - 1, tops * across)
    tops = min(tops, beside or tops)
    below = min(count - 1 - beside, most * max(0, rows - tops))
    if below == 1 and beside:  # it would be as large as the first
        tops, beside, below = tops + 1, beside + 1, 0
    left = 0 if below and lines < height else count - 1 - beside - below
    under = -(-below // most)
    tall = max(tall, _LEAST_HEIGHT * (tops + under))
    lines = min(-(-left // most), height - tall, _MOST_LINES)
    counts = (len(range(at, below, under)) for at in range(under))
    return [
        Strip(1 + beside, 1, tops, tops * _LEAST_HEIGHT, wide),
        *(Strip(one, one, 1, _LEAST_HEIGHT) for one in counts),
        *_strips(min(left, lines * most), most),
    ]


# -- pages -----------------------------------------------------------------------------------------


class PageOfTiles(NamedTuple):
    """What stands on a page."""

    tiles: tuple[Room, ...]
    """The places of its charts, in their order."""
    headings: tuple[Room, ...] = ()
    """The places of headings."""
    first: int = 0
    """Index of its first chart among those of all pages."""


@lru_cache(maxsize=8)  # asked for at each drawing
def pages_of(
    training: tuple[int, int],
    machines: tuple[int, int],
    width: int,
    height: int,
    *,
    large: bool,
) -> tuple[PageOfTiles, ...]:
    """Return the pages of two sections, of each so many charts, and below them others in a line
    each. The second begins a page, with its heading, unless all of it fits below the first.

    Args:
        training: How many of the first section.
        machines: How many of the second.
        width: Cells of a page.
        height: Rows of it.
        large: Whether the first chart is large.
    """
    most, rows = _grid(width, height)
    least = 1 if rows == height else _LEAST_HEIGHT
    led = _led(training[0] * large, width, height)
    left = training[0] - sum(strip.tiles for strip in led)
    columns = most if led else _columns(left, most, rows)
    across = min(most, max(1, training[1], machines[1]))
    first = [*led, *_strips(left, columns, 1, least), *_strips(training[1], across)]
    second = [*_strips(machines[0], most, 1, least), *_strips(machines[1], across)]
    head = [Strip()] * (height > max(2, least))
    pages = _filled(first, height, rows)
    last = [*chain(*pages[-1:], head, second)]
    if second and sum(strip.least for strip in last) <= height:
        pages[-1:] = [last]
    else:
        pages += [[*head, *page] for page in _filled(second, height - len(head), rows)]
    found, charts = list[PageOfTiles](), 0
    for page in pages or [[]]:
        found.append(tiled(page, width, height)._replace(first=charts))
        charts += len(found[-1].tiles)
    return tuple(found)


def _filled(strips: Iterable[Strip], height: int, rows: int) -> list[list[Strip]]:
    """Return pages of strips: as many as fit, and no more than so many rows of charts; none below
    lines of text.
    """
    pages: list[list[Strip]] = []
    used = plots = height
    for strip in strips:
        if used + strip.least > height or (strip.rows and plots >= rows):
            pages.append([])
            used = plots = 0
        pages[-1].append(strip)
        used += strip.least
        plots = plots + strip.rows if strip.rows else rows
    return pages


def tiled(page: Sequence[Strip], width: int, height: int) -> PageOfTiles:
    """Return where the tiles of a page's strips stand; charts share the rows that lines of text
    leave.
    """
    lines = sum(not strip.rows for strip in page)
    each, over = divmod(height - lines, max(1, sum(strip.rows for strip in page)))
    # one form for all, rather than a few charts that look unlike the others
    over *= each >= PLOT_HEIGHT
    tiles: list[Room] = []
    headings: list[Room] = []
    tops = [0]
    for strip in page:
        tops = tops[-1:]
        for _ in range(strip.rows):
            tops.append(tops[-1] + each + (over > 0))  # the first have more
            over -= 1
        tops += [tops[0] + 1] * (not strip.rows)
        headings += [Room(0, tops[0], width, 1)] * (not strip.tiles)
        tiles += strip.placed(width, tops)
    return PageOfTiles(tuple(tiles), tuple(headings))

"""Where charts stand on pages: in columns of one size, or around a large one."""

from __future__ import annotations

from functools import lru_cache
from itertools import chain, pairwise
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.rendering.arrange import Room

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_LEAST_WIDTH, _LEAST_HEIGHT = 26, 6
"""Cells below which a chart shows less than a line of text with a sparkline."""
_GOOD_WIDTH, _GOOD_HEIGHT = 38, 7
"""Cells from which on more room goes into more charts rather than larger ones."""
_PLOT_HEIGHT = 3
"""Rows from which on a chart has a plot: below that, each further row changes its form."""
_FEW = 3
"""Charts that may stand one below the other over the whole width."""
_ENOUGH = 8
"""Number of charts that show a run's health; only to fit these are charts made smaller than is
good.
"""


class PageOfTiles(NamedTuple):
    """What stands on a page."""

    tiles: tuple[Room, ...]
    """The places of its charts, in their order."""
    heading: Room | None = None
    """The place of the second section's heading, None where it has none on this page."""


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


def _columns(count: int, width: int, height: int) -> int:
    """Return in how many columns charts of one size stand: if one page holds all, in those that
    leave least gaps, and no chart is taller than wide, as columns of cells are about half as wide
    as a row of them is tall.
    """
    most, rows = _grid(width, height)
    ways = []
    for columns in range(1 if count <= _FEW else min(2, most), most + 1):
        used = max(1, -(-count // columns))
        narrow = width * used < 2 * height * columns
        ways += [(columns * used - count, narrow, used, columns)] * (used <= rows)
    return min(ways, default=(most,))[-1]


def lines_of(count: int, width: int) -> int:
    """Return the lines that so many metrics take, in a row each."""
    return -(-count // _grid(width, _LEAST_HEIGHT)[0])


# -- a large chart ---------------------------------------------------------------------------------


class _Lead(NamedTuple):
    """How a page is shared where its first chart is large."""

    wide: int
    """Its share of the width, where each column beside it has two."""
    rows: int
    """Rows of charts that it is as tall as."""
    beside: tuple[int, ...] = ()
    """Charts at its right in each of these rows."""
    below: tuple[int, ...] = ()
    """Charts in each row below it."""
    lines: int = 0
    """Lines of sparklines below these, where there is no room for charts."""

    def placed(self, width: int, tops: Sequence[int]) -> Iterator[Room]:
        """Yield the places of all that are no sparklines, given the tops of the rows."""
        across, top, end = max(self.beside, default=0), tops[0], tops[self.rows]
        left = (width + 1) * self.wide // (self.wide + 2 * across)
        left = min(left, width + 1 - across * (_LEAST_WIDTH + 1))
        yield Room(0, top, left - 1, end - top)
        yield from _placed(self.beside, left, width, tops)
        yield from _placed(self.below, 0, width, tops[self.rows :])


def _lead(count: int, width: int, height: int) -> _Lead | None:
    """Return how a page is shared by a large chart and the others of so many; None where there is
    no room for it.
    """
    most, rows = _grid(width, height)
    if rows == height:  # of text
        if height < 2 * _LEAST_HEIGHT:
            return None
        wide, tops, across, tall, rows = 3, 1, 0, height // 3, 0
    elif most == 2 and rows <= _FEW:
        wide, across, tall = 3, 1, -(-height * 2 // 3)
        tops, rows = min(rows, count - 1) if count == _FEW else 1, 0
    else:
        wide, tops, tall = 2 * max(2, (most + 1) // 2), min(2, rows), height * 2 // 3
        across = max(0, most - wide // 2)
    beside = min(count - 1, tops * across)
    tops = min(tops, beside or tops)
    below = min(count - 1 - beside, most * max(0, rows - tops))
    if below == 1 and beside:  # it would be as large as the first
        tops, beside, below = tops + 1, beside + 1, 0
    lines = -(-(count - 1 - beside) // most) if not below else 0
    lines = min(lines, height - max(tall, _LEAST_HEIGHT * tops))
    around = _spread(beside, tops), _spread(below, -(-below // most))
    return _Lead(wide, tops, *around, max(0, lines))


def _spread(count: int, rows: int) -> tuple[int, ...]:
    """Return how many tiles each of so many rows has, none more than one less than the first."""
    return tuple(len(range(at, count, rows)) for at in range(min(rows, count)))


def _placed(
    counts: Iterable[int], x: int, end: int, tops: Sequence[int], columns: int = 0
) -> Iterator[Room]:
    """Yield rows of so many tiles each, a column apart, from one column to before another: each
    begins at its top, and ends where the next begins; its tiles share the width, or have that of so
    many columns.
    """
    for count, (top, bottom) in zip(counts, pairwise(tops), strict=False):
        of = columns or count
        edges = [x + at * (end - x + 1) // of for at in range(count + 1)]
        for left, right in pairwise(edges):
            yield Room(left, top, right - left - 1, bottom - top)


# -- pages -----------------------------------------------------------------------------------------


class _Strip(NamedTuple):
    """A row of tiles over the whole width, or several around a large one."""

    tiles: int
    columns: int = 1
    least: int = 1
    """Lines that it needs."""
    plots: int = 0
    """Rows of charts in it, none in a line of text."""
    lead: _Lead | None = None
    heading: bool = False


_HEADING = _Strip(0, heading=True)


@lru_cache(maxsize=8)  # asked for at each drawing
def pages_of(
    training: tuple[int, int],
    machines: tuple[int, int],
    width: int,
    height: int,
    *,
    large: bool = False,
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
    lead = _lead(training[0], width, height) if large else None
    columns = _columns(training[0], width, height)
    across = max(columns, min(most, max(training[1], machines[1])))
    first = [*_strips(*training, most if lead else columns, across, least, lead)]
    second = [*_strips(*machines, most, across, least)]
    head = [_HEADING] * (height > max(2, least))
    pages = _filled(first, height, rows, [])
    last = [*chain(*pages[-1:], head, second)] * bool(second)
    fits = 0 < sum(strip.least for strip in last) <= height
    pages[-1:] = [last] if fits else [*pages[-1:], *_filled(second, height, rows, head)]
    return tuple(_tiled(page, width, height) for page in pages or [[]])


def _strips(
    varying: int,
    constant: int,
    columns: int,
    across: int,
    least: int,
    lead: _Lead | None = None,
) -> Iterator[_Strip]:
    """Yield the rows of a section of so many charts, in columns of so many lines at least, and of
    so many others, in others.
    """
    if lead is not None:
        plots = lead.rows + len(lead.below)
        count = 1 + sum(lead.beside) + sum(lead.below)
        yield _Strip(count, columns, plots * _LEAST_HEIGHT, plots, lead)
        small = min(varying - count, lead.lines * columns)
        yield from (_Strip(one, columns) for one in _each(small, columns))
        varying -= count + small
    yield from (_Strip(one, columns, least, 1) for one in _each(varying, columns))
    yield from (_Strip(one, across) for one in _each(constant, across))


def _each(count: int, columns: int) -> Iterator[int]:
    """Yield how many tiles each row of so many columns has."""
    yield from (min(columns, count - at) for at in range(0, count, columns))


def _filled(
    strips: Iterable[_Strip], height: int, rows: int, head: list[_Strip]
) -> list[list[_Strip]]:
    """Return pages of strips, each with a head: as many as fit, and no more than so many rows of
    charts; none below those around a large one.
    """
    pages: list[list[_Strip]] = []
    used = plots = height
    for strip in strips:
        if used + strip.least > height or (strip.plots and plots >= rows):
            pages.append([*head])
            used, plots = len(head), 0
        pages[-1].append(strip)
        used += strip.least
        plots += rows if strip.lead else strip.plots
    return pages


def _tiled(page: Sequence[_Strip], width: int, height: int) -> PageOfTiles:
    """Return where the tiles of a page's strips stand; charts share the rows that lines of text
    leave.
    """
    lines = sum(not strip.plots for strip in page)
    each, over = divmod(height - lines, max(1, sum(strip.plots for strip in page)))
    # one form for all, rather than a few charts that look unlike the others
    over *= each >= _PLOT_HEIGHT
    tiles: list[Room] = []
    heading, y = None, 0
    for strip in page:
        tops = [y]
        for _ in range(strip.plots or 1):
            # the first have more
            y += each + (over > 0) if strip.plots else 1
            over -= bool(strip.plots)
            tops.append(y)
        if strip.heading:
            heading = Room(0, tops[0], width, 1)
        elif strip.lead is not None:
            tiles += strip.lead.placed(width, tops)
        else:
            tiles += _placed([strip.tiles], 0, width, tops, strip.columns)
    return PageOfTiles(tuple(tiles), heading)

"""Where each part of the dashboard stands: panels get as many rows as their content needs, up to a
share of the screen; the charts get the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

FRAME = 2
"""Rows of a frame."""
NARROW = 60
"""Columns below which there are no frames and no row of keys."""
LOW = 8
"""Rows below which there are neither, and of the panels only charts, or charts and findings."""
VERDICT = 10
"""Rows from which the verdict has a row of its own, below the status; on a narrow screen it has
two.
"""
TALL = 30
"""Rows from which there is a row for each run above the charts, and room for samples."""
_FRAMED = 5
"""Least height of a panel with a frame: in fewer rows that would take half of them."""
_SENTENCE = 2
"""Most rows of a panel without a frame: a row of marks, and a message below it."""
_CHARTS = 0.4
"""Least share of the rows that is left to the charts, or to the samples of an evaluation."""
_COLUMN = 2 / 3
"""Share of a column that the runs must fill to get one of their own, beside the charts."""
_WIDE = 120
"""Columns of a screen from which there is room for that column."""
_LEAST = 26
"""Least width of it; the most is two sevenths of the screen."""
_SPARED = 100
"""Cells left to the charts beside it: two columns of charts with their axes."""


_NARROW_CHARTS = 22
"""Rows beyond which the charts of a narrow screen get only what no other panel can fill: a large
one, and ten metrics.
"""
_PAIR = ("gpus", "samples")
"""Panels that stand beside each other where there is room: neither needs the whole width."""
_PAIRED = 160
"""Columns of a screen from which they do."""


class Need(NamedTuple):
    """What a panel needs."""

    rows: int
    """The rows that it could fill: 1 for a sentence, for which no frame is drawn; 0 where it has
    nothing to show.
    """
    share: float
    """Largest share of all rows that it gets; 0 keeps it out of sight."""
    width: int = 0
    """Columns of a screen from which it is in sight; on a tall narrow one it is where there is more
    than a sentence.
    """

    def is_met(self, name: str, width: int, height: int) -> bool:
        """Return whether a screen has room for the panel of that name."""
        if name == "charts":
            return True
        if height < LOW:
            return name == "health" and height > 2 and width < NARROW
        tall = self.rows > 1 and height >= TALL and width < NARROW
        return bool(self.rows and self.share) and (width >= self.width or tall)


class Room(NamedTuple):
    """The place of a part of the screen."""

    x: int
    y: int
    width: int
    height: int
    framed: bool = False


def arrange(
    needs: Mapping[str, Need],
    width: int,
    height: int,
    *,
    names: int = 0,
    zoomed: str = "",
    foot: str = "keys",
) -> dict[str, Room]:
    """Return the places of all parts that are in sight: panels, `status`, `verdict` and what is at
    the foot.

    Args:
        needs: Name of each panel -> what it needs, in the order of the screen.
        width: Columns of the screen.
        height: Its rows.
        names: Cells in which no name of a run is cut.
        zoomed: The panel that has all the room, if any has.
        foot: What the last row is for; a line that is typed into is always there.
    """
    frames = width >= NARROW and height >= LOW
    typed = foot != "keys"
    status = int(height > 1 or not (zoomed or typed))
    top = status + (height >= VERDICT) * (1 if frames else 2)
    rows = height - top - (frames or typed)
    whole = Room(0, top, width, rows, frames)
    rooms = {
        "status": Room(0, 0, width, status),
        "verdict": Room(0, status, width, top - status),
        foot: Room(0, top + rows, width, height - top - rows),
    }
    if zoomed:
        rooms[zoomed] = whole
    else:
        rooms |= _shared(needs, whole, names, height)
    return {name: room for name, room in rooms.items() if room.height > 0}


def _shared(
    needs: Mapping[str, Need], all_: Room, names: int, height: int
) -> dict[str, Room]:
    """Return the places of panels in the room for all."""
    seen = {
        name: one for name, one in needs.items() if one.is_met(name, all_.width, height)
    }
    # the panels of the pair share their rows where each has more than a sentence
    tall = all(name in seen and seen[name].rows > 1 for name in _PAIR)
    if not tall or all_.width < _PAIRED:
        return _stacked(seen, all_, names)
    rooms = _stacked(_paired(seen), all_, names)
    left, right = _PAIR
    both, half = rooms[right], all_.width // 2
    rooms[left] = both._replace(width=half)
    rooms[right] = both._replace(x=half, width=all_.width - half)
    return rooms


def _stacked(seen: dict[str, Need], all_: Room, names: int) -> dict[str, Room]:
    """Return the places of panels below each other, of the runs maybe in a column."""
    column = _column(seen, all_, names)
    runs = seen.pop("runs", None) if column else None
    if "runs" in seen and all_.height < TALL:
        seen["runs"] = seen["runs"]._replace(rows=1)
    given = _heights(seen, all_.height, frames=all_.framed)
    rooms: dict[str, Room] = {}
    y = all_.y
    for name in seen:
        tall, framed = given[name]
        x = 0 if name == "samples" else column
        rooms[name] = Room(x, y, all_.width - x, tall, framed)
        y += tall
    if runs:
        below = given["samples"][0] if "samples" in given else 0
        rooms["runs"] = all_._replace(width=column, height=all_.height - below)
    return rooms


def _paired(needs: Mapping[str, Need]) -> dict[str, Need]:
    """Return the needs where the right panel of the pair needs what both do."""
    left, right = (needs[name] for name in _PAIR)
    both = Need(max(left.rows, right.rows), max(left.share, right.share))
    found = {**needs, _PAIR[1]: both}
    del found[_PAIR[0]]
    return found


def cells_for(name: str, width: int) -> int:
    """Return the columns of a screen that a panel can count on."""
    return width // 2 if name in _PAIR and width >= _PAIRED else width


def _column(needs: Mapping[str, Need], all_: Room, names: int) -> int:
    """Return the width of a column of runs, 0 where they do not fill one."""
    runs = needs["runs"].rows if "runs" in needs else 0
    if not runs or all_.width < _WIDE or runs + FRAME < all_.height * _COLUMN:
        return 0
    return max(_LEAST, min(names, all_.width - _SPARED, all_.width * 2 // 7))


def _heights(
    needs: Mapping[str, Need], rows: int, *, frames: bool
) -> dict[str, tuple[int, bool]]:
    """Return the heights of panels below each other, and whether each has a frame."""
    rest = _greedy(needs)
    given = {name: _height(need, rows, frames=frames) for name, need in needs.items()}
    del given[rest]
    while sum(tall for tall, _ in given.values()) > rows * (1 - _CHARTS):
        name = max(given, key=lambda one: given[one][0])
        tall, framed = given[name]
        if tall <= 1:
            break
        # without a frame where little would be left in it
        bare = framed and tall <= _FRAMED
        given[name] = (_SENTENCE, False) if bare else (tall - 1, framed)
    left = rows - sum(tall for tall, _ in given.values())
    for name in () if frames else given:
        tall = given[name][0]
        most = left - max(_NARROW_CHARTS, int(rows * _CHARTS))
        more = max(0, min(needs[name].rows - tall, most))
        given[name] = (tall + more, False)
        left -= more
    return {**given, rest: (left, frames)}


def _greedy(needs: Mapping[str, Need]) -> str:
    """Return the panel that gets the rest: of an evaluation, which has rows of text and no charts,
    the samples.
    """
    of_text = needs["charts"].rows and "samples" in needs and needs["samples"].rows > 1
    return "samples" if of_text else "charts"


def _height(need: Need, rows: int, *, frames: bool) -> tuple[int, bool]:
    most = max(1, int(rows * need.share))
    if not frames:
        return min(need.rows, most), False
    if need.rows <= 1 or most < _FRAMED:
        return min(need.rows, most, _SENTENCE), False
    return min(need.rows + FRAME, most), True

"""Follows a log that is written in pieces, and holds what was read against what was written."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from fuzz.growing import log
from fuzz.reading_twice import Watch
from log_reading import values

from verl_tui.records import Batch, MetricRows, Reread

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from random import Random

    from fuzz.growing import Points

    from verl_tui.monitor import News

_SEARCHED = 0.05
"""Share of the looks that also search for new files, as it is done every few seconds."""


class Result(NamedTuple):
    """What became of a log."""

    kind: str
    appends: int = 0
    points: int = 0
    lost: int = 0
    wrong: int = 0
    twice: int = 0

    @property
    def broken(self) -> int:
        """Points that are not as they were written."""
        return self.lost + self.wrong + self.twice

    def in_words(self) -> str:
        """Return it as a line."""
        return (
            f"{self.kind}: {self.appends:,} appends, {self.points:,} points, "
            f"{self.lost:,} lost, {self.wrong:,} wrong, {self.twice:,} twice"
        )


class Reader:
    """Reads what is in a folder, and counts how often each point is said."""

    def __init__(self, folder: Path) -> None:
        self._watch = Watch(folder)
        self.said: Counter[tuple[str, int]] = Counter()
        """How often each point was said; of all runs, a log must not become two."""

    def look(self, *, search: bool) -> None:
        """Read what is new."""
        self._hear(self._watch.look(search=search))

    def finish(self) -> Points:
        """Read all that is left; return all points."""
        self._hear((*self._watch.look(), *self._watch.finish()))
        return {
            (key, step): value
            for run in self._watch.monitor.runs.values()
            for key in run.keys
            for step, value in values(run, key).items()
        }

    def _hear(self, news: Iterable[News]) -> None:
        for one in news:
            if isinstance(one, Reread):
                self.said.clear()
            elif isinstance(one, Batch):
                for rows in one.records:
                    if isinstance(rows, MetricRows):
                        self.said.update(product(rows.keys, rows.steps))


def followed(random: Random, folder: Path) -> Result:
    """Write a log into a folder and follow it to its end; return what became of it."""
    written = log(folder / "run", random)
    reader = Reader(written.folder)
    while not written.over:
        for _ in range(random.choice((1, 1, 1, 2, 3))):
            if written.clears:
                reader.look(search=True)
            if not written.over:
                written.append()
        reader.look(search=random.random() < _SEARCHED)
    points = reader.finish()
    keys = {key for key, _ in written.points}
    found = {point: value for point, value in points.items() if point[0] in keys}
    wrong = sum(
        found.get(point, value) != value for point, value in written.points.items()
    )
    lost = len(written.points.keys() - found.keys())
    more = len(found.keys() - written.points.keys())
    if written.counted:
        lost = max(lost, (written.written - reader.said).total())
        said = Counter(
            {point: n for point, n in reader.said.items() if point[0] in keys}
        )
        more = max(more, (said - written.written).total())
    return Result(
        written.kind, written.appends, written.written.total(), lost, wrong, more
    )

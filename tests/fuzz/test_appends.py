"""Logs that are written in pieces, also cleared and replaced by copies: each point arrives
once.
"""

from __future__ import annotations

from collections import Counter
from itertools import product
from random import Random
from typing import TYPE_CHECKING

from fuzz.growing import log
from fuzz.seeds import seeds
from log_reading import Watch, values

from verl_tui.records import Batch, MetricRows, Reread

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from fuzz.growing import Points

    from verl_tui.monitor import News

SEARCHED = 0.05
"""Share of the looks that also search for new files, as it is done every few seconds."""


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
        self._hear(self._watch.look())
        self._hear(self._watch.look(search=False, finish=True))
        return {
            (key, step): value
            for run in self._watch.runs.values()
            for key in run.keys
            for step, value in values(run, key).items()
        }

    def _hear(self, news: Iterable[News]) -> None:
        for one in news:
            if isinstance(one, Reread):
                self.said.clear()
            for rows in one.records if isinstance(one, Batch) else ():
                if isinstance(rows, MetricRows):
                    self.said.update(product(rows.keys, rows.steps))


def test_points_of_logs_that_grow_in_pieces_arrive_once(tmp_path):
    for seed in seeds(4):
        random = Random(seed)
        written = log(tmp_path / str(seed) / "run", random)
        reader = Reader(written.folder)
        while not written.over:
            for _ in range(random.choice((1, 1, 1, 2, 3))):
                if written.clears:
                    reader.look(search=True)
                if not written.over:
                    written.append()
            reader.look(search=random.random() < SEARCHED)
        keys = {key for key, _ in written.points}
        points = {
            one: value for one, value in reader.finish().items() if one[0] in keys
        }
        again = f"VERL_TUI_SEEDS={seed}:{seed + 1}"
        assert points == written.points, again
        if written.counted:
            said = Counter({one: n for one, n in reader.said.items() if one[0] in keys})
            assert said == written.written, again

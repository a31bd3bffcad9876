"""Reads logs as the monitor does, without judging them."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from file_writing import write_file

from verl_tui.config import Config
from verl_tui.monitor import Monitor
from verl_tui.records import Batch
from verl_tui.runs.run import Run
from verl_tui.sources.feed import Feed
from verl_tui.sources.fields.sample_figures import SampleFigures
from verl_tui.sources.source import FileSource

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from verl_tui.monitor import News
    from verl_tui.records import Record
    from verl_tui.sources.formats.format import Format

NOW = 1_800_000_000.0
LOGS = Path(
    os.environ.get("VERL_TUI_LOGS", Path(__file__).parents[2] / "shared" / "logs")
)
"""Real logs of other people, which may not be here."""
MADE = LOGS.parent / "made"
"""Runs that real trainers made, which may not be here."""


def read_runs(*paths: Path | str) -> dict[str, Run]:
    """Return the runs behind paths, read to the end."""
    feed = Feed([str(path) for path in paths])
    feed.scan()
    runs: dict[str, Run] = {}
    for batch in (*feed.read(), *feed.finish()):
        runs.setdefault(batch.run, Run(batch.run)).apply(batch, NOW)
    return runs


def read_run(*paths: Path | str) -> Run:
    """Return the only run behind paths."""
    (run,) = read_runs(*paths).values()
    return run


def read_text(folder: Path, text: str, name: str = "train.log") -> Run:
    """Return the run of a file that holds a text."""
    return read_run(write_file(folder / name, text))


def notes(run: Run) -> str:
    """Return what the sources of a run say of themselves."""
    said = (source.status.note for source in run.sources.values())
    return "; ".join(note for note in said if note)


class Watch:
    """A monitor of what is found below paths, look by look."""

    def __init__(self, *paths: Path | str) -> None:
        self.feed = Feed([str(path) for path in paths])
        self.monitor = Monitor(Config())

    @property
    def runs(self) -> dict[str, Run]:
        """Return the runs by name."""
        return self.monitor.runs

    def look(self, *, search: bool = True, finish: bool = False) -> list[News]:
        """Read what is new, and return it.

        Args:
            search: Whether to look for new files, too.
            finish: Whether lines without an end are read.
        """
        found: list[News] = [self.feed.scan(), *self.feed.reread] if search else []
        found += self.feed.read()
        if finish:
            found += self.feed.finish()
        for one in found:
            self.monitor.apply(one, NOW)
        return found


class Followed:
    """A source, and the run that it feeds."""

    def __init__(self, source: FileSource) -> None:
        self.source = source
        self.run = Run("r")

    def read(self) -> list[Record]:
        """Return everything that is new."""
        records = drain(self.source)
        self.run.apply(Batch("r", self.source.status(), tuple(records)), NOW)
        return records


def drain(source: FileSource) -> list[Record]:
    """Return everything a source can give now."""
    records: list[Record] = []
    more = True
    while more:
        found, more = source.read()
        records.extend(found)
    return records


def own_keys(run: Run) -> set[str]:
    """Return the keys that stand in the log itself."""
    return {key for key in run.keys if not key.startswith(("samples/", "val_samples/"))}


def values(run: Run, key: str) -> dict[int, float]:
    """Return a metric's values by step."""
    series = run.series(key)
    assert series is not None, f"{key} is not in {run.keys}"
    return dict(zip(series.steps, series.values, strict=True))


def feed_in_pieces(
    path: Path,
    format_: Format,
    data: bytes,
    cuts: list[int],
    *,
    to_the_end: bool = False,
) -> tuple[Run, list[Record]]:
    """Write data piece by piece, reading after each; return the run and all records.

    Args:
        path: Where to write it.
        format_: Its format.
        data: What the file holds in the end.
        cuts: Where to cut it.
        to_the_end: Whether nothing more is waited for at the end.
    """
    path.write_bytes(b"")
    source = FileSource(path, format_, chunk=97)
    run, records, figures = Run("r"), [], SampleFigures()
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    for start, stop in itertools.pairwise(edges):
        with path.open("ab") as file:
            file.write(data[start:stop])
        found = drain(source)
        if to_the_end and stop == edges[-1]:
            found.extend(source.finish())
        records.extend(found)
        run.apply(Batch("r", source.status(), figures.complete(found)), NOW)
    return run, records


def follow_feed(
    feed: Feed,
    stop: threading.Event,
    deliver: Callable[[Any], object],
    clock: Callable[[], float],
) -> None:
    """Follow what a feed finds until that is stopped."""
    for news in feed.follow(stop, clock):
        deliver(news)
        if stop.is_set():
            return

"""Runs as TensorBoard's event files: one log directory a run, to which only new points are added.

Scalars keep the log's names and their times. Distributions are histograms, the scores of samples
among them (`rollout/reward_dist`), and the first samples of a step are texts (`rollout/sample_0`):
the names of verl's tutorials. The files of a directory are read back at the start, so an export can
be stopped and started again. If a run went back to an earlier step, TensorBoard is told to drop the
points from there on.
"""

from __future__ import annotations

import fcntl
import math
import os
import sys
import weakref
from array import array
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from verl_tui.distributions import Bins, of_values
from verl_tui.exporters import event_files
from verl_tui.exporters.event_files import EventFile, floats
from verl_tui.exporters.file_names import unique_names
from verl_tui.failures import note_failure
from verl_tui.on_demand.samples import StepSamples
from verl_tui.runs.clock import moment
from verl_tui.runs.time.step_clocks import clocks
from verl_tui.text import fenced, safe

if TYPE_CHECKING:
    from verl_tui.records import Sample
    from verl_tui.runs.run import Run
    from verl_tui.runs.samples import Place

SAMPLES = 4
"""Samples of a step that become texts; a step of verl's has hundreds."""
_SCALE = {False: "rollout", True: "val"}
"""Prefix of the tags of samples: of training, of a validation."""
_SCORES = {"samples/score": False, "val_samples/score": True}
"""Histograms of the scores of samples -> whether of a validation; the tutorials call them
`reward_dist`.
"""
_REST = 10.0
"""Seconds without a change after which the newest samples count as complete: heuristic."""
_LONGEST = 20_000
"""Characters of a prompt or response that TensorBoard is given."""


class TakenError(Exception):
    """Another program or export writes to the run's directory; the text says which."""


class RunLogDirectory:
    """One run's log directory, locked against other exports."""

    def __init__(self, directory: Path, samples: int = SAMPLES) -> None:
        """Lock the directory and read its event files.

        Args:
            directory: Where the run's event files lie; made where it is not there.
            samples: Samples of a step that become texts.

        Raises:
            OSError: It cannot be made, or its files cannot be read.
            TakenError: It is a link, holds another program's event files, or another export writes
                to it.
        """
        if directory.is_symlink():
            raise TakenError("is a link, and nothing is written through one")
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self._samples = samples
        self._own()
        try:
            self._written = event_files.read_event_files(directory)
        except ValueError as error:
            raise TakenError(f"{error} is of another program") from error
        self._file: EventFile | None = None

    @property
    def is_empty(self) -> bool:
        """True if nothing has been written into it, neither now nor before."""
        return not (self._written.scalars or self._written.last)

    def write(self, run: Run, now: float) -> tuple[int, int]:
        """Write the new points, histograms and samples; return the number of points, and of steps
        whose time no source states: they get the time of their file's last change.

        Raises:
            OSError: It cannot be written.
        """
        times = _StepTimes(run, now)
        tags = _tags(run)
        changed = (self._changed(run, tag) for tag in tags)
        first = min((step for step in changed if step is not None), default=None)
        if first is not None:
            self._out(times).start(first, times.at(first))
            self._written.drop(first)
        points = self._write_scalars(run, tags, times)
        self._write_histograms(run, times)
        self._write_samples(run, times)
        if self._file:
            self._file.flush()
        return points, len(times.without)

    def _own(self) -> None:
        """Lock the directory for the lifetime of this object: two exports would write everything
        twice.
        """
        place = os.open(self.directory, os.O_RDONLY)
        weakref.finalize(self, os.close, place)
        try:
            fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise TakenError("another `export tensorboard` is writing here") from error
        except OSError:
            return  # a file system without locks

    def _out(self, times: _StepTimes) -> EventFile:
        if not self._file:
            self._file = EventFile(self.directory, times.now)
        return self._file

    def _changed(self, run: Run, tag: str) -> int | None:
        """Return the first step at which a metric's written points differ from the run's present
        ones.
        """
        series = run.series(tag)
        written = self._written.scalars.get(tag)
        if series is None or not written:
            return None
        count = min(len(written[0]), len(series))
        steps = np.asarray(written[0][:count]), np.asarray(series.steps[:count])
        values = written[1][:count], array("f", series.values[:count])
        same = steps[0] == steps[1]
        same &= np.isclose(*values, rtol=0, atol=0, equal_nan=True)
        if not same.all():
            return int(min(one[same.argmin()] for one in steps))
        return written[0][count] if len(written[0]) > count else None

    def _write_scalars(self, run: Run, tags: Sequence[str], times: _StepTimes) -> int:
        """Write the points after those already written, all of a step together; return their
        number.
        """
        fresh: defaultdict[int, list[tuple[str, bytes]]] = defaultdict(list)
        for tag in tags:
            series = run.series(tag)
            known = len(self._written.scalars.get(tag, ((), ()))[0])
            if series is None or len(series) <= known:
                continue
            data = floats(series.values[known:])
            new = zip(series.steps[known:], series.times[known:], strict=True)
            for at, (step, time) in enumerate(new):
                fresh[step].append((tag, data[4 * at : 4 * at + 4]))
                times.note(step, time)
                self._written.add(tag, step, series.values[known + at])
        for step in sorted(fresh):
            self._out(times).scalars(step, times.at(step), fresh[step])
        return sum(map(len, fresh.values()))

    def _write_histograms(self, run: Run, times: _StepTimes) -> None:
        for key in run.histograms.keys:
            validation = _SCORES.get(key)
            tag, ends = key, math.inf
            if validation is not None:
                tag = f"{_SCALE[validation]}/reward_dist"
                # scores of samples that are still kept come with them
                places = run.samples.places
                kept = (one.step for one in places if one.validation is validation)
                ends = min(kept, default=math.inf)
            for step, bins in run.histograms.some(key, None, sys.maxsize):
                if self._after(tag) <= step < ends:
                    self._write_histogram(tag, step, bins, times)

    def _write_histogram(
        self, tag: str, step: int, bins: Bins, times: _StepTimes
    ) -> None:
        self._out(times).histogram(step, times.at(step), tag, bins)
        self._written.note(tag, step)

    def _after(self, tag: str) -> int:
        """Return the first step after those of a histogram or text that are written."""
        return self._written.last.get(tag, -1) + 1

    def _write_samples(self, run: Run, times: _StepTimes) -> None:
        """Write scores and first samples of the steps after those already written."""
        for place in run.samples.places:
            scale = _SCALE[place.validation]
            step = place.step
            tags = f"{scale}/reward_dist", f"{scale}/sample_0{event_files.TEXT}"
            if step < max(map(self._after, tags)) or not _settled(
                run, place, times.now
            ):
                continue
            scores, first = _samples(run, place, self._samples)
            distribution = of_values(scores)
            if distribution:
                self._write_histogram(tags[0], step, distribution.bins, times)
            for number, sample in enumerate(first):
                tag = f"{scale}/sample_{number}"
                self._out(times).text(step, times.at(step), tag, _markdown(sample))
                self._written.note(tags[1], step)


class LogDirectories:
    """The log directories of all runs; one that cannot be used does not affect the others."""

    def __init__(self, directory: Path, samples: int = SAMPLES) -> None:
        """Begin.

        Args:
            directory: Holds a directory a run.
            samples: Samples of a step that become texts.
        """
        self.directory = directory
        self._samples = samples
        self._runs: dict[str, RunLogDirectory | None] = {}
        """By the run's name; None where nothing can be written for it."""
        self._names: dict[str, str] = {}
        self.failed = False
        """True once an error of our own has ended the export of a run."""

    def write(self, runs: Sequence[Run], now: float) -> Iterator[str]:
        """Write the new points of each run; yield messages for the user, one sentence each.

        Raises:
            OSError: Something cannot be written.
        """
        # A run that comes later never takes the name of one that has a directory.
        fresh = [run.name for run in runs if run.name not in self._names]
        named = unique_names(fresh, taken=self._names.values())
        self._names.update(zip(fresh, named, strict=True))
        for run in runs:
            if not run.keys and not run.samples.places:
                continue
            path = self.directory / self._names[run.name]
            try:
                yield from self._write(run, path, now)
            except TakenError as error:
                yield f"{path}: {error}; name another directory with -o"
            except OSError:
                # The next attempt starts over: the files show what was written.
                self._runs.pop(run.name, None)
                raise
            except Exception as error:  # noqa: BLE001 - one run's failure is no other's
                self._runs[run.name] = None
                self.failed = True
                why = note_failure(f"exporting {run.name}", error)
                yield f"{path}: cannot be exported any further: {why}"

    def _write(self, run: Run, path: Path, now: float) -> Iterator[str]:
        """Write a run's new points; say how many the first time."""
        is_first = run.name not in self._runs
        if is_first:
            self._runs[run.name] = None  # unless the directory can be had
            self._runs[run.name] = RunLogDirectory(path, self._samples)
        directory = self._runs[run.name]
        if not directory:
            return
        points, untimed = directory.write(run, now)
        if is_first:
            without = (
                f"; the log states no time for {untimed:,} steps,"
                " which get the time of its last change"
            )
            yield f"{path}: {points:,} points{without if untimed else ''}"

    @property
    def is_empty(self) -> bool:
        """True if the export of no run holds anything."""
        return all(one.is_empty for one in self._runs.values() if one)


class _StepTimes:
    """The time of each step of a run."""

    def __init__(self, run: Run, now: float) -> None:
        self._clocks = clocks(run)
        self.now = now
        self._otherwise = run.modified or now
        self._stated: dict[int, float] = {}
        self.without: set[int] = set()
        """Steps whose time was needed and no source states."""

    def note(self, step: int, time: float) -> None:
        """Note the time that a record of a step states; the latest of several counts."""
        if not math.isnan(time) and time > self._stated.get(step, -math.inf):
            self._stated[step] = time

    def at(self, step: int) -> float:
        """Return seconds since the epoch."""
        found = moment(self._stated.get(step, math.nan), step, self._clocks)
        if math.isnan(found):
            self.without.add(step)
            return self._otherwise
        return found


def _tags(run: Run) -> list[str]:
    """Return the metrics that become scalars: quantiles of a histogram are left out."""
    shown = set(run.histograms.keys)
    spreads = [one.parts for one in run.spreads.values() if one.stem in shown]
    parts = set().union(*spreads)
    return [key for key in run.keys if key not in parts]


def _settled(run: Run, place: Place, now: float) -> bool:
    """Return whether the samples of a place are complete: others follow, or their file is no
    longer written.
    """
    if place != run.samples.places[-1]:
        return True
    changed = (run.samples.dump(place) or run).modified
    return changed is None or now - changed >= _REST


def _samples(run: Run, place: Place, count: int) -> tuple[list[float], list[Sample]]:
    """Return the scores of a place's samples, and its first samples; nothing if the dump is gone.

    Raises:
        OSError: The dump cannot be read.
    """
    try:
        found = StepSamples(run.samples, place)
        scores = [score for score in found.scores if score is not None]
        return list(filter(math.isfinite, scores)), found.first(count)
    except FileNotFoundError:
        return [], []


def _markdown(sample: Sample) -> str:
    """Return a sample as Markdown in which a model's text cannot act as markup."""
    named = {
        "Prompt": sample.prompt,
        "Response": sample.response,
        "Ground truth": sample.ground_truth,
    }
    parts = [
        f"**{name}:**\n\n{fenced(safe(text, _LONGEST))}"
        for name, text in named.items()
        if text is not None
    ]
    if sample.score is not None:
        parts.append(f"**Score:** {sample.score:g}")
    return "\n\n".join(parts)

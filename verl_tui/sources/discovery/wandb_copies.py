"""Assign the runs that W&B keeps in `wandb/`, one directory a start, to the logs of the trainings.

1. Runs of one id are one: W&B resumed it.
2. Of the runs that one console says it reports to, those are one that go on from each other.
3. A run belongs to the only log that names it, or has the same name.

The consoles have to be read for this, and a training names its W&B run before its first step. So
where there are several, a run is left out until it has a step and the consoles have been read.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING

from verl_tui.records import MetricRows
from verl_tui.sources.discovery import naming, passed_over
from verl_tui.sources.discovery.found import (
    WANDB,
    Folder,
    consoles,
    last_part,
    log_name,
    merge_into,
    wandb_id,
)
from verl_tui.sources.files.paths import file_size
from verl_tui.sources.files.tail import opened
from verl_tui.sources.formats import record_log
from verl_tui.sources.formats.wandb import reader as wandb

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from verl_tui.sources.discovery.found import FoundFile


@lru_cache(maxsize=1024)
def _first_step(path: Path, _size: int) -> int | None:
    """Return the first step of training in a run's log of a size, None where it has none; many
    trainers validate before the first, and call that 0.
    """
    reader = wandb.reader(path)
    try:
        with opened(path) as file:
            while data := file.read(record_log.BLOCK):
                rows = [one for one in reader.feed(data) if isinstance(one, MetricRows)]
                made = chain.from_iterable(one.steps for one in rows if one.progress)
                if step := min(filter(lambda step: step > 0, made), default=None):
                    return step
    except OSError:
        pass
    return None


class WandbCopies:
    """W&B's runs; remembers from one look to the next how far they have got."""

    def __init__(self) -> None:
        self._reported: Mapping[Path, Sequence[str]] | None = None
        self._steps: dict[Path, int | None] = {}
        """The first step in each log that was looked at."""
        self._before: dict[Path, int | None] = {}
        """The same as of the look before."""
        self.left = False
        """True if runs were left out at this look."""
        self.stepless: dict[Path, str] = {}
        """Logs of runs left out that will not be shown before they make a step, with words on
        that.
        """

    def begin(self, reported: Mapping[Path, Sequence[str]] | None) -> None:
        """Begin a look at the file system.

        Args:
            reported: Consoles, and the ids of the runs that each has reported to so far, in their
                order; None if they are not read.
        """
        self._reported = reported
        self._before = dict(self._steps)
        self.left = False
        self.stepless = {}

    def join_starts(self, here: Folder, runs: list[Folder]) -> list[Folder]:
        """Join the starts of one training that its console names; leave undecided ones out."""
        copies = _by_id(runs)
        logs = list(chain.from_iterable(map(consoles, (here, *runs))))
        if self._reported is None or not copies or not logs:
            return runs
        gone: set[int] = set()
        ids = list(map(self._ids, logs))
        for own in ids:
            self._chain(list(filter(None, map(copies.get, own))), gone)
        if len(copies) > 1 or len(set(map(log_name, logs))) > 1:
            names = set(chain.from_iterable(ids))
            for copy in _without(copies.values(), gone):
                if _is_near(here, copy) and self._leaves(copy, names):
                    gone.add(id(copy))
        return _without(runs, gone)

    def assign_by_name(
        self, units: list[Folder], kept: list[Folder]
    ) -> tuple[list[Folder], list[Folder]]:
        """Assign runs to the only log that names them; return the logs and the runs left over."""
        copies = _by_id([*units, *kept]).values()
        there = set().union(*map(_all_ids, copies))
        reports = [(unit, self._named_by(unit) & there) for unit in units]
        given: set[int] = set()
        for copy in copies:
            mine = _all_ids(copy)
            owners = [
                unit
                for unit, ids in reports
                if ids and ids <= mine and unit is not copy
            ]
            if len(owners) == 1:
                merge_into(owners[0], [copy])
                given.add(id(copy))
        return _without(units, given), _without(kept, given)

    def is_foreign(self, log: Folder, copy: Folder) -> bool:
        """Return whether a log says that it reports to other runs than this one."""
        named = self._named_by(log)
        return bool(named) and not named & _all_ids(copy)

    def _named_by(self, log: Folder) -> set[str]:
        """Return the ids of all runs that a log reports to."""
        return set(chain.from_iterable(map(self._ids, consoles(log))))

    def _ids(self, file: FoundFile) -> Sequence[str]:
        return (self._reported or {}).get(file.path, ())

    def _chain(self, starts: Sequence[Folder], gone: set[int]) -> None:
        """Join each start that goes on from the one before; add it to those that are gone.

        A start that begins at the first step again is another training, or the same from scratch:
        this cannot be decided.
        """
        first: Folder | None = None
        begun = 0
        for start in starts:
            step = self._step(start)
            if step is None or id(start) in gone:
                continue
            if first is not None and step > begun:
                log = f"{WANDB}/{wandb_id(first.directory)}"
                for folder in (first, start):
                    folder.anchors = [file._replace(log=log) for file in folder.anchors]
                merge_into(first, [start])
                gone.add(id(start))
            else:
                first, begun = start, step

    def _leaves(self, copy: Folder, names: set[str]) -> bool:
        """Return whether to leave a run out at this look: as long as it has no step, and until the
        consoles had the time to name it.
        """
        logs = _kept(copy)
        if not logs:
            return False
        named = wandb_id(copy.directory) in names
        step = self._step(copy)
        if step is not None and (named or self._before.get(logs[0]) is not None):
            return False
        self.left = True
        if step is None and logs[0] in self._before and not named:
            self.stepless |= dict.fromkeys(logs, passed_over.NO_STEP)
        return True

    def _step(self, copy: Folder) -> int | None:
        """Return the first step that a run has made, None if it has made none or its log is
        gone.
        """
        for path in _kept(copy):
            if self._steps.get(path) is None:
                self._steps[path] = _first_step(path, file_size(path))
            return self._steps[path]
        return None


def _by_id(runs: Iterable[Folder]) -> dict[str, Folder]:
    return {one: run for run in runs if (one := wandb_id(run.directory)) is not None}


def _without(folders: Iterable[Folder], gone: set[int]) -> list[Folder]:
    return [folder for folder in folders if id(folder) not in gone]


def _is_near(here: Folder, copy: Folder) -> bool:
    """Return whether logs in a directory, or anywhere below it, may be of a run that W&B keeps
    there.
    """
    above = copy.directory.relative_to(here.directory).parts[:-2]
    if not above or consoles(here):
        return True
    return len(above) == 1 and naming.is_generic(above[0])


def _kept(copy: Folder) -> list[Path]:
    """Return W&B's logs of a run."""
    return [file.path for file in copy.anchors if file.format is wandb]


def _all_ids(copy: Folder) -> set[str]:
    return {one for path in _kept(copy) if (one := wandb_id(path)) is not None}


def assign_by_title(
    units: list[Folder], kept: list[Folder], named: Mapping[str, Sequence[Folder]]
) -> list[Folder]:
    """Give W&B's runs to the log that is called as they are at W&B; return the runs that are left.

    A run that has not stated its name is left out as long as there are logs whose copy it may be.

    Args:
        units: The logs.
        kept: W&B's runs.
        named: The logs by all that they are called.
    """
    left = []
    for copy in sorted(kept, key=start_date):
        logs = [unit for title in titles(copy) for unit in named.get(title, ())]
        if len(logs) == 1:
            merge_into(logs[0], [copy])
        elif _stated_titles(copy) or not units:
            left.append(copy)
    return left


def start_date(copy: Folder) -> str:
    """Return when a run of W&B began, as the name of its directory says it."""
    return copy.directory.name.removeprefix("offline-")


def titles(copy: Folder) -> list[str]:
    """Return what a run is called at W&B, if it is: names are often paths."""
    names = map(last_part, _stated_titles(copy))
    return list(dict.fromkeys(filter(None, names)))


def _stated_titles(copy: Folder) -> list[str]:
    """Return the names in W&B's logs, an empty one for a run without a name; none for one that has
    not stated it yet.
    """
    stated = map(wandb.run_title, _kept(copy))
    return [title for title in stated if title is not None]

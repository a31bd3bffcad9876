"""Assign the runs that W&B keeps in `wandb/`, one directory a start, to the logs of the trainings.

1. Runs of one id are one: W&B resumed it.
2. Of the runs that one console says it reports to, those that are called alike are one.
3. A run belongs to the only log that names it, or has the same name.

wandb prints at the start of a program (sdk/wandb_run.py) `wandb: Run data is saved locally in
/home/me/wandb/offline-run-20261122_235944-55ahqe14`, where it is online also `wandb: 🚀 View run at
https://wandb.ai/me/letters/runs/55ahqe14`, and at the end `wandb: Find logs at:
./wandb/offline-run-20261122_235944-55ahqe14/logs`. Lines about runs that are only read (`wandb:
Restoring run …`, `wandb: Downloading …`) name no run of the program's own.

A training names its run before its first step. So where there are several, a run is left out as
long as it has no step.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING

from verl_tui.patterns import pattern
from verl_tui.records import MetricRows
from verl_tui.sources.discovery import passed_over
from verl_tui.sources.discovery.found import (
    WANDB,
    Folder,
    consoles,
    last_part,
    log_name,
    merge_into,
    note_log,
)
from verl_tui.sources.files.paths import file_size
from verl_tui.sources.files.tail import CHUNK, opened
from verl_tui.sources.formats import record_log
from verl_tui.sources.formats.wandb import reader as wandb
from verl_tui.sources.source import follower

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from verl_tui.sources.discovery.found import FoundFile
    from verl_tui.sources.files.tail import Follower

_LONGEST = 4096
"""Bytes of a line that names a run."""
_REPORTS = pattern(
    rb"wandb(?:\x1b\[[\d;]{0,16}m){0,4}: +"
    rb"(?:(?:Run data is saved locally in|Find logs at:|wandb sync) [^\r\n]{0,600}?"
    rb"run-\d{8}_\d{6}-"
    rb"|\W{0,40}View run [^\r\n]{0,600}?/runs/)"
    rb"([^/\\?\s\x1b]{1,128})(?=[/\\?\s\x1b])"
)


class Reports:
    """The ids of W&B's runs that consoles say they report to; reads what was appended."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[Follower, bytearray, dict[str, None]]] = {}
        """What reads each console, the end of what was read, and the ids."""

    def of(self, console: FoundFile) -> list[str]:
        """Return the ids that a console names, in their order."""
        path = console.path
        if path not in self._known:
            self._known[path] = follower(path), bytearray(), {}
        tail, end, ids = self._known[path]
        more = True
        try:
            while more:
                chunk = tail.read(CHUNK)
                more = chunk.more
                end += chunk.data
                for found in _REPORTS.finditer(end) if b"wandb" in end else ():
                    ids[found[1].decode("utf-8", "replace")] = None
                del end[:-_LONGEST]
        except OSError:
            pass
        return list(ids)


@lru_cache(maxsize=1024)
def _has_step(path: Path, _size: int) -> bool:
    """Return whether a run's log of a size holds a step of training; many trainers validate before
    the first, and call that 0.
    """
    reader = wandb.reader(path)
    try:
        with opened(path) as file:
            while data := file.read(record_log.BLOCK):
                rows = [one for one in reader.feed(data) if isinstance(one, MetricRows)]
                if any(max(one.steps, default=0) > 0 for one in rows if one.progress):
                    return True
    except OSError:
        pass
    return False


def join_starts(
    here: Folder, runs: list[Folder], reports: Reports, young: dict[Path, str]
) -> list[Folder]:
    """Return runs without those that are too young to be assigned; note of the starts of one
    training that its console names that they are one log.

    Args:
        here: The directory in and below which the runs lie.
        runs: The runs.
        reports: What consoles say.
        young: Receives the logs of runs left out that no console names, with words on that.
    """
    copies = _by_id(runs)
    logs = list(chain.from_iterable(map(consoles, (here, *runs))))
    if not copies or not logs:
        return runs
    named = list(map(reports.of, logs))
    gone: set[int] = set()
    if len(copies) > 1 or len(set(map(log_name, logs))) > 1:
        gone = {id(copy) for copy in copies.values() if _is_young(copy)}
        for one in copies.keys() - set(chain.from_iterable(named)):
            if id(copies[one]) in gone:
                young |= dict.fromkeys(_kept(copies[one]), passed_over.NO_STEP)
    for ids in named:
        starts = list(filter(None, map(copies.get, ids)))
        _note_one_log(_without(starts, gone))
    return _without(runs, gone)


def _note_one_log(starts: Iterable[Folder]) -> None:
    """Note which of the starts that a console names are one log: those that are called alike."""
    firsts: dict[tuple[str, ...], str] = {}
    for start in starts:
        own = f"{WANDB}/{start.wandb}"
        note_log(start, firsts.setdefault(tuple(titles(start)), own))


def _is_young(copy: Folder) -> bool:
    """Return whether a run has made no step so far."""
    kept = _kept(copy)
    return bool(kept) and not any(_has_step(path, file_size(path)) for path in kept)


def assign_by_id(
    units: list[Folder], kept: list[Folder], reports: Reports
) -> tuple[list[Folder], list[Folder]]:
    """Assign runs to the only log that names them; return the logs and the runs left over."""
    copies = _by_id([*units, *kept]).values()
    there = set().union(*map(_all_ids, copies))
    named = [(unit, _named_by(unit, reports) & there) for unit in units if there]
    given: set[int] = set()
    for copy in copies:
        mine = _all_ids(copy)
        logs = [unit for unit, ids in named if ids and ids <= mine and unit is not copy]
        if len(logs) == 1:
            merge_into(logs[0], [copy])
            given.add(id(copy))
    return _without(units, given), _without(kept, given)


def has_all(units: Iterable[Folder], kept: Sequence[Folder], reports: Reports) -> bool:
    """Return whether what W&B keeps belongs to the one run that there is: unless there are several,
    or its console says that it reports to others.
    """
    mine = set().union(*map(_all_ids, kept))
    named = [_named_by(unit, reports) for unit in units] if mine else []
    return len(kept) <= 1 and not any(map(mine.isdisjoint, filter(None, named)))


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
    for copy in kept:
        logs = [unit for title in titles(copy) for unit in named.get(title, ())]
        if len(logs) == 1:
            merge_into(logs[0], [copy])
        elif _stated_titles(copy) or not units:
            left.append(copy)
    return left


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


def _named_by(log: Folder, reports: Reports) -> set[str]:
    """Return the ids of all runs that a log reports to."""
    return set(chain.from_iterable(map(reports.of, consoles(log))))


def _by_id(runs: Iterable[Folder]) -> dict[str, Folder]:
    return {run.wandb: run for run in runs if run.wandb}


def _without(folders: Iterable[Folder], gone: set[int]) -> list[Folder]:
    return [folder for folder in folders if id(folder) not in gone]


def _kept(copy: Folder) -> list[Path]:
    """Return W&B's logs of a run."""
    return [file.path for file in copy.anchors if file.format is wandb]


def _all_ids(copy: Folder) -> set[str]:
    return {path.stem.removeprefix("run-") for path in _kept(copy)}

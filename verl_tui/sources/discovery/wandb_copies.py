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

from contextlib import suppress
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING

from verl_tui.patterns import pattern
from verl_tui.records import MetricRows
from verl_tui.sources.discovery.found import (
    WANDB,
    Folder,
    consoles,
    log_name,
    merge_into,
    note_log,
)
from verl_tui.sources.files.compressed import DEEPEST, head
from verl_tui.sources.files.paths import file_size
from verl_tui.sources.files.tail import opened
from verl_tui.sources.formats import record_log
from verl_tui.sources.formats.wandb import reader as wandb

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from verl_tui.sources.discovery.found import FoundFile

_REPORTS = pattern(
    rb"wandb(?:\x1b\[[\d;]{0,16}m){0,4}: +"
    rb"(?:(?:Run data is saved locally in|Find logs at:|wandb sync) [^\r\n]{0,600}?"
    rb"run-\d{8}_\d{6}-"
    rb"|\W{0,40}View run [^\r\n]{0,600}?/runs/)"
    rb"([^/\\?\s\x1b]{1,128})(?=[/\\?\s\x1b])"
)


def reports(console: FoundFile) -> Sequence[str]:
    """Return the ids of W&B's runs that a console says it reports to, in their order."""
    return _reported(console.path, min(file_size(console.path), DEEPEST))


@lru_cache(maxsize=1024)
def _reported(path: Path, _size: int) -> Sequence[str]:
    text = b""
    with suppress(OSError):
        text = head(path, DEEPEST)
    found = _REPORTS.finditer(text) if b"wandb" in text else ()
    return list(dict.fromkeys(one[1].decode("utf-8", "replace") for one in found))


@lru_cache(maxsize=1024)
def _has_step(path: Path, _size: int) -> bool:
    """Return whether a run's log of a size holds a step of training; many trainers validate before
    the first, and call that 0.
    """
    reader = wandb.reader(path)
    with suppress(OSError), opened(path) as file:
        while data := file.read(record_log.BLOCK):
            for one in reader.feed(data):
                if isinstance(one, MetricRows) and one.progress and max(one.steps) > 0:
                    return True
    return False


def joined_starts(here: Folder, runs: list[Folder], young: set[Path]) -> list[Folder]:
    """Return runs without those that are too young to be assigned; note of the starts of one
    training that its console names, and that are called alike, that they are one log.

    Args:
        here: The directory in and below which the runs lie.
        runs: The runs.
        young: Receives the logs of the runs left out.
    """
    logs = list(chain.from_iterable(map(consoles, (here, *runs))))
    copies = {run.wandb: run for run in runs if run.wandb}
    gone: set[Folder] = set()
    if logs and copies and (len(copies) > 1 or len(set(map(log_name, logs))) > 1):
        for copy in copies.values():
            kept = _kept(copy)
            if kept and not any(_has_step(path, file_size(path)) for path in kept):
                gone.add(copy)
                young.update(kept)
    for log in logs:
        firsts: dict[tuple[str, ...], str] = {}
        for id in reports(log):
            if (start := copies.get(id)) is not None and start not in gone:
                alike = tuple(titles(start))
                note_log(start, firsts.setdefault(alike, f"{WANDB}/{id}"))
    return [run for run in runs if run not in gone]


def assigned(
    units: list[Folder],
    kept: list[Folder],
    named: Mapping[str, Sequence[Folder]],
    *,
    is_one: bool,
) -> list[Folder]:
    """Give each of W&B's runs to the only log that names it, that is called as it is at W&B, or
    that there is; return the logs, and the runs that are left.

    A run that has not stated its name is left out as long as there are logs whose copy it may be.

    Args:
        units: The logs.
        kept: W&B's runs.
        named: The logs by all that they are called.
        is_one: Whether the place is one run's.
    """
    said = {
        unit: {one for file in consoles(unit) for one in reports(file)}
        for unit in units
    }
    there = set[str]().union(*map(_ids, (*units, *kept)))
    alone = is_one and len(units) == len(kept) == 1
    left = [*units]
    for copy in kept:
        ids = _ids(copy)
        logs = [unit for unit in units if set() < said[unit] & there <= ids]
        if alone and not (said[units[0]] and said[units[0]].isdisjoint(ids)):
            logs = units
        if len(logs) != 1:
            logs = [unit for title in titles(copy) for unit in named.get(title, ())]
        if len(logs) == 1:
            merge_into(logs[0], [copy])
        elif not units or not _kept(copy) or _stated_titles(copy):
            left.append(copy)
    return left


def titles(copy: Folder) -> list[str]:
    """Return what a run is called at W&B, if it is: names are often paths."""
    names = (title.rstrip("/").rpartition("/")[2] for title in _stated_titles(copy))
    return list(dict.fromkeys(filter(None, names)))


def _stated_titles(copy: Folder) -> list[str]:
    """Return the names in W&B's logs, an empty one for a run without a name; none for one that has
    not stated it yet.
    """
    stated = map(wandb.run_title, _kept(copy))
    return [title for title in stated if title is not None]


def _kept(copy: Folder) -> list[Path]:
    """Return W&B's logs of a run."""
    return [file.path for file in copy.anchors if file.format is wandb]


def _ids(copy: Folder) -> set[str]:
    return {path.stem.removeprefix("run-") for path in _kept(copy)}

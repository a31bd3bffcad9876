"""Group the files that were found into runs.

A training leaves several files: console, metrics, events, dumps, settings. Several trainings may
lie in one place. Places and stated names decide, never the figures in the files:

1. What `log_name` calls alike is one log: the files of a folder of events, the ranks of a job, the
   directories of one W&B id, starts that state from which other they go on.
2. One log of each kind at or below a folder is one run.
3. Where there are several, those of one name belong together (verl names
   `{project}/{experiment}.jsonl`, `tensorboard_log/{project}/{experiment}/` and the run at W&B
   alike), as do Slurm's `job.out` and `job.err`; each other log is a run.
4. What W&B keeps belongs to the log that names it, else to the one called as it is, see
   `verl_tui.sources.discovery.wandb_copies`.
5. Samples and settings without a log belong to the run around them.
"""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from verl_tui.patterns import pattern
from verl_tui.sources.discovery import naming
from verl_tui.sources.discovery.found import (
    Folder,
    FoundFile,
    FoundRun,
    log_name,
    member,
    merge_into,
    note_log,
    one_log_each,
    stem,
)
from verl_tui.sources.discovery.wandb_copies import assigned, joined_starts, titles
from verl_tui.sources.files.compressed import head
from verl_tui.sources.files.paths import is_folder, status_at
from verl_tui.sources.formats import filelogger, trainer_state

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_START = pattern(r"[A-Z][a-z]{2}\d\d_\d\d-\d\d-\d\d_")
"""Default name of a folder of events: time and host of the start."""
_NUMBER = pattern(r"(\d+)")
_VERSION = pattern(r"v\d{1,6}-\d{8}-\d{6}")
"""ms-swift's directories, one a start: `out/v0-20261122-182019`, `out/v1-20261122-182521`, …
(`add_version`).
"""
_RESUMED = pattern(
    rb'"resume_from_checkpoint"\s*:\s*"(?:[^"\n]*[/\\])?(v\d{1,6}-\d{8}-\d{6})(?:[/\\][^"\n]*)?"'
)
"""How a start that goes on from a checkpoint of another says so in its `args.json`:
`"resume_from_checkpoint": "/…/v0-20261122-182019/checkpoint-10"`. The two are one run.
"""
_LARGEST = 2**20
"""Bytes of it that are looked at."""
_MOST_STARTS = 1000
"""Starts that are looked at to find the first one."""


def grouped_runs(here: Folder, below: list[Folder], young: set[Path]) -> list[Folder]:
    """Return the runs that a directory and the folders below it are: none, one or several.

    Args:
        here: The directory.
        below: The folders below it.
        young: Receives the logs of W&B's runs that are left out as long as they have no step.
    """
    runs = [folder for folder in below if folder.anchors]
    runs = _join_logs(here, joined_starts(here, runs, young))
    for folder in below:
        if not folder.anchors and folder.wandb in ("", here.wandb):
            here.files += folder.files
    kept = [run for run in runs if run.wandb not in ("", here.wandb)]
    own = _join_same_names([run for run in runs if run not in kept])
    is_one = _is_one_run(here, own, runs)
    units = [*_split(here), *own]
    if is_one:
        units = [merge_into(here, own)] if units else []
    if kept:
        units = assigned(units, kept, _all_names(units), is_one=is_one)
    return _with_extras(here, units)


def _is_one_run(here: Folder, own: list[Folder], runs: list[Folder]) -> bool:
    """Return whether a directory is one run with all below it: with files of its own, or with
    folders that are called as the parts of one.
    """
    tops = [run.directory.relative_to(here.directory).parts[0] for run in runs]
    parts = len(tops) > 1 and all(map(naming.says_content, tops))
    return bool(here.files or parts) and one_log_each([here, *own])


def _join_logs(here: Folder, runs: list[Folder]) -> list[Folder]:
    """Merge runs with parts of one log: the directories of one W&B run, which gets a new one each
    time it is resumed, of processes, of which each may have one of its own, and of starts.
    """
    firsts: dict[str, Folder] = {}
    for run in sorted(runs, key=_start):
        if log := _continued_log(here, run):
            note_log(run, log)
        logs = list(map(log_name, run.anchors))
        first = next(filter(None, map(firsts.get, logs)), run)
        if first is not run:
            merge_into(first, [run])
        firsts = dict.fromkeys(logs, first) | firsts
    left = set(firsts.values())
    return [run for run in runs if run in left]


def _start(run: Folder) -> list[str | int]:
    """Return what sorts starts, the first one first: the numbers of `v2-20261122-182019` as such,
    and of `run-20261122_235944-55ahqe14` and `offline-run-…` the time.
    """
    name = run.directory.name.removeprefix("offline-")
    return [int(part) if part.isdecimal() else part for part in _NUMBER.split(name)]


def _continued_log(here: Folder, run: Folder) -> str:
    """Return the log that a start in a directory of its own says it is a part of, empty if it is
    none.

    Each start of a Hugging Face trainer has a folder of events in `runs/`. So have programs that
    have nothing to do with each other: a trainer's state shows that they are one training, and
    before its first checkpoint that they state the same name.
    """
    place = run.directory
    if _VERSION.fullmatch(place.name):
        for _ in range(_MOST_STARTS):
            status = status_at(place / "args.json")
            resumed = _resumed(place, status.st_mtime_ns) if status else ""
            if not resumed or not is_folder(place.parent / resumed):
                break
            place = place.parent / resumed
        return str(place)
    if place.parent != here.directory / "runs" or not _START.match(place.name):
        return ""
    if any(file.format is trainer_state for file in here.anchors):
        return str(place.parent)
    name = run.anchors[0].title
    return f"{place.parent}/{name}" if name else ""


@lru_cache(maxsize=1024)  # changed at another time it has another content
def _resumed(place: Path, _changed: int) -> str:
    """Return the start of ms-swift that one goes on from, empty without one."""
    try:
        found = _RESUMED.search(head(place / "args.json", _LARGEST))
    except OSError:
        return ""
    return found[1].decode() if found else ""


def _with_extras(here: Folder, units: list[Folder]) -> list[Folder]:
    """Add the samples or settings of a directory without a log to the runs below it."""
    if here.anchors or not here.files:
        return units
    if len(units) < 2:
        return [merge_into(here, units)]
    samples = [file for file in here.files if file.format is not None]
    if not samples:
        return units
    place = samples[0].path
    return [*units, Folder(place if is_folder(place) else place.parent, samples)]


def _join_same_names(own: list[Folder]) -> list[Folder]:
    """Join folders of the same name in different places, if together they are one run."""
    parts: dict[Folder, Folder] = {}
    for name, folders in _by_name(own).items():
        new = len(folders) > 1 and parts.keys().isdisjoint(folders)
        if new and one_log_each(folders):
            joined = Folder(folders[0].directory, stem=name, wandb=folders[0].wandb)
            parts |= dict.fromkeys(folders, merge_into(joined, folders))
    return list(dict.fromkeys(parts.get(folder, folder) for folder in own))


def _by_name(folders: Iterable[Folder]) -> dict[str, list[Folder]]:
    """Return folders by the names that may identify a run: its folder's, and its log's if verl
    chose it.
    """
    named: dict[str, list[Folder]] = defaultdict(list)
    for folder in folders:
        nameless = naming.says_content(folder.name)
        chosen = [one for one in folder.anchors if nameless or one.format is filelogger]
        for name in dict.fromkeys([folder.name, *(stem(one.path) for one in chosen)]):
            if not naming.says_content(name):
                named[name].append(folder)
    return named


def _all_names(units: Sequence[Folder]) -> dict[str, list[Folder]]:
    """Return the runs by the names of them and of all their files."""
    named = _by_name(units)
    for unit in units:
        for name in {stem(file.path) for file in unit.anchors}:
            if unit not in named[name]:
                named[name].append(unit)
    return named


def _split(here: Folder) -> list[Folder]:
    """Split several logs in one directory into runs by their stems; settings go to none."""
    if here.anchors and one_log_each([here]):
        return [here]
    stems: dict[str, Folder] = {}
    for file in here.anchors:
        log = log_name(file)
        whole = log == str(file.path.parent) or member(file.path)
        name = Path(log).name if whole else stem(file.path)
        stems.setdefault(name, Folder(here.directory, stem=name)).files.append(file)
    return list(stems.values())


def named_runs(folders: list[Folder]) -> list[FoundRun]:
    """Return the runs with names that differ, each file once."""
    taken: set[object] = set()
    runs: list[FoundRun] = []
    places = []
    for folder in folders:
        files = _new_files(folder, taken)
        if any(file.format for file in files):
            runs.append(FoundRun(_own_name(folder), folder.directory, files))
            stems = filter(None, [folder.stem])
            places.append([*folder.directory.resolve().parts, *stems])
    names = naming.distinct([run.name for run in runs], places)
    return [run._replace(name=name) for run, name in zip(runs, names, strict=True)]


def _new_files(folder: Folder, taken: set[object]) -> tuple[FoundFile, ...]:
    """Return the files of a folder that no other run has taken; settings may be shared. The log of
    the first rank is the last: of two values for one step the last file's wins.
    """
    files = []
    ranked = sorted(folder.anchors, key=lambda file: -(member(file.path) or ("", 1))[1])
    for file in (*ranked, *folder.extras):
        status = status_at(file.path)
        # a file's other names are the same file
        known = file.path if status is None else (status.st_dev, status.st_ino)
        if known not in taken or file.format is None:
            taken.add(known)
            files.append(file)
    return tuple(files)


def _own_name(folder: Folder) -> str:
    """Return a run's name by its experiment, by its file, or by its place."""
    stated = [*titles(folder), *(one.title for one in folder.extras + folder.anchors)]
    stated.append("" if folder.alone else folder.stem)
    if said := [one for one in stated if one and not naming.is_generic(one)]:
        return said[0]
    top = folder.top or folder.directory
    below = [*folder.directory.relative_to(top).parts, *filter(None, [folder.stem])]
    return naming.place_name([] if folder.alone else below, top.resolve().parts)

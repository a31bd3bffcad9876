"""Group the files that were found into runs.

A training leaves several files: console, metrics, events, dumps, settings. Several trainings may
lie in one place. Places and stated names decide, never the figures in the files:

1. What `log_name` calls alike is one log: the files of a folder of events, the ranks of a job, the
   directories of one W&B id, starts that state from which other they go on.
2. One log of each kind at or below a folder is one run.
3. Where there are several, those of one name belong together (verl names
   `{project}/{experiment}.jsonl`, `tensorboard_log/{project}/{experiment}/` and the run at W&B
   alike), as do Slurm's `job.out` and `job.err`; each other log is a run.
4. W&B keeps a directory for each start. Those of one id are one run, and so are those that one
   console says it reports to and that are called alike. It belongs to the only log that names it,
   else to the one called as it is; where there are consoles that may name it yet, a run that
   belongs to none is left out as long as it has no step.
5. Samples and settings without a log belong to the run around them.

wandb prints at the start of a program (sdk/wandb_run.py) `wandb: Run data is saved locally in
/home/me/wandb/offline-run-20261122_235944-55ahqe14`, where it is online also `wandb: 🚀 View run at
https://wandb.ai/me/letters/runs/55ahqe14`, and at the end `wandb: Find logs at:
./wandb/offline-run-20261122_235944-55ahqe14/logs`. Lines about runs that are only read (`wandb:
Restoring run …`, `wandb: Downloading …`) name no run of the program's own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import filterfalse
from pathlib import Path

from verl_tui.patterns import pattern
from verl_tui.records import MetricRows
from verl_tui.sources.discovery import naming
from verl_tui.sources.discovery.found import (
    WANDB,
    Folder,
    FoundFile,
    FoundRun,
    consoles,
    log_name,
    member,
    merge_into,
    note_log,
    one_log_each,
    stem,
)
from verl_tui.sources.files import (
    DEEPEST,
    file_size,
    head,
    is_folder,
    opened,
    status_at,
)
from verl_tui.sources.formats import filelogger, record_log, wandb
from verl_tui.sources.formats.metrics_json import trainer_state
from verl_tui.text import decoded

_REPORTS = pattern(
    rb"wandb(?:\x1b\[[\d;]{0,16}m){0,4}: +"
    rb"(?:(?:Run data is saved locally in|Find logs at:|wandb sync) [^\r\n]{0,600}?"
    rb"run-\d{8}_\d{6}-"
    rb"|\W{0,40}View run [^\r\n]{0,600}?/runs/)"
    rb"([^/\\?\s\x1b]{1,128})(?=[/\\?\s\x1b])"
)
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
    _note_starts([here, *runs])
    runs = _join_logs(here, runs)
    here.files += _nobodys(here, below)
    kept = [run for run in runs if not _is_own(run, here)]
    own = _join_same_names([*filterfalse(kept.__contains__, runs)])
    is_one = _is_one_run(here, own, runs)
    units = [*_split(here), *own]
    if is_one and units:
        units = [merge_into(here, own)]
    if kept:
        units = _assigned(units, kept, young, alone=is_one and len(kept) == 1)
    return _with_extras(here, units)


def _is_own(folder: Folder, here: Folder) -> bool:
    """Return whether a folder is none of another run at W&B."""
    return folder.wandb in ("", here.wandb)


def _nobodys(here: Folder, below: Iterable[Folder]) -> Iterator[FoundFile]:
    """Yield the samples and settings of folders without a log."""
    for folder in below:
        if not folder.anchors and _is_own(folder, here):
            yield from folder.files


# -- what W&B keeps --------------------------------------------------------------------------------


def reports(console: FoundFile) -> Sequence[str]:
    """Return the ids of W&B's runs that a console says it reports to, in their order."""
    return _reported(console.path, min(file_size(console.path), DEEPEST))


@lru_cache(maxsize=1024)
def _reported(path: Path, _size: int) -> Sequence[str]:
    text = b""
    with suppress(OSError):
        text = head(path, DEEPEST)
    found = _REPORTS.finditer(text) if b"wandb" in text else ()
    return list(dict.fromkeys(decoded(one[1]) for one in found))


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


def _note_starts(folders: Sequence[Folder]) -> None:
    """Note of the starts that a console names, and that are called alike, that they are one log."""
    copies = {one.wandb: one for one in folders if _ids(one)}
    for log in (log for one in folders if copies for log in consoles(one)):
        firsts: dict[tuple[str, ...], str] = {}
        for id in filter(copies.__contains__, reports(log)):
            called = tuple(titles(copies[id]))
            note_log(copies[id], firsts.setdefault(called, f"{WANDB}/{id}"))


def _assigned(
    units: list[Folder], kept: list[Folder], young: set[Path], *, alone: bool
) -> list[Folder]:
    """Give each of W&B's runs to the only log that names it, that is called as it is at W&B, or
    that there is; return the logs, and the runs that are left.

    Args:
        units: The logs.
        kept: W&B's runs.
        young: Receives the logs of those that are too young to be assigned.
        alone: Whether the place is one run's, with one run at W&B.
    """
    owners = _naming(units, kept, alone=alone)
    named = _by_name(units, every=True)
    waits = any(map(consoles, units))
    left = [*units]
    for copy in kept:
        logs = owners[copy]
        if len(logs) != 1:
            logs = [unit for title in titles(copy) for unit in named.get(title, ())]
        if len(logs) == 1:
            merge_into(logs[0], [copy])
        elif waits and not _has_steps(copy):
            young.update(_kept(copy))
        else:
            left.append(copy)
    return left


def _naming(
    units: list[Folder], kept: list[Folder], *, alone: bool
) -> dict[Folder, list[Folder]]:
    """Return the logs that name each of W&B's runs, and none of the others that are there; where
    both are alone, the log unless it names another.
    """
    there = {id: copy for copy in kept for id in _ids(copy)}
    owners: dict[Folder, list[Folder]] = defaultdict(list)
    for unit in units:
        said = {id for file in consoles(unit) for id in reports(file)}
        named = {there[id] for id in said & there.keys()}
        if alone and not said:
            named = {*kept}
        if len(named) == 1:
            owners[named.pop()].append(unit)
    return owners


def titles(copy: Folder) -> list[str]:
    """Return what a run is called at W&B, if it is: names are often paths."""
    stated = filter(None, map(wandb.run_title, _kept(copy)))
    names = (title.rstrip("/").rpartition("/")[2] for title in stated)
    return list(dict.fromkeys(filter(None, names)))


def _kept(copy: Folder) -> list[Path]:
    """Return W&B's logs of a run."""
    return [file.path for file in copy.anchors if file.format is wandb]


def _has_steps(copy: Folder) -> bool:
    kept = _kept(copy)
    return not kept or any(_has_step(path, file_size(path)) for path in kept)


def _ids(copy: Folder) -> set[str]:
    """Return the ids of W&B's runs that have stated what they are called."""
    stated = (path for path in _kept(copy) if wandb.run_title(path) is not None)
    return {path.stem.removeprefix("run-") for path in stated}


# -- what lies together ----------------------------------------------------------------------------


def _is_one_run(here: Folder, own: list[Folder], runs: list[Folder]) -> bool:
    """Return whether a directory is one run with all below it: with files of its own, or with
    folders that are called as the parts of one.
    """
    tops = [run.directory.relative_to(here.directory).parts[0] for run in runs]
    parts = len(tops) > 1 and all(map(naming.says_content, tops))
    return bool(here.files or parts) and one_log_each([here, *own])


def _join_logs(here: Folder, runs: list[Folder]) -> list[Folder]:
    """Merge runs with parts of one log: directories of one W&B run, which gets a new one each time
    it is resumed; of processes, as each may have its own; and of starts.
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
    """Return the sort key of starts, the first one first: the numbers of `v2-20261122-182019` as
    such, and of `run-20261122_235944-55ahqe14` and `offline-run-…` the time.
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
        return str(_first_version(place))
    if place.parent != here.directory / "runs" or not _START.match(place.name):
        return ""
    if any(file.format is trainer_state for file in here.anchors):
        return str(place.parent)
    name = run.anchors[0].title
    return f"{place.parent}/{name}" if name else ""


def _first_version(place: Path) -> Path:
    """Return the directory of the first of the starts of ms-swift that one goes on from."""
    for _ in range(_MOST_STARTS):
        found = None
        with suppress(OSError):
            found = _RESUMED.search(head(place / "args.json", _LARGEST))
        before = found and place.with_name(found[1].decode())
        if not before or not is_folder(before):
            break
        place = before
    return place


def _with_extras(here: Folder, units: list[Folder]) -> list[Folder]:
    """Add the samples or settings of a directory without a log to the runs below it."""
    if here.anchors or not here.files:
        return units
    if len(units) < 2:
        return [merge_into(here, units)]
    samples = [file for file in here.files if file.format]
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


def _by_name(
    folders: Iterable[Folder], *, every: bool = False
) -> dict[str, list[Folder]]:
    """Return folders by the names that may identify a run: its folder's, and its log's if verl
    chose it; or by those of all its logs.
    """
    named: dict[str, list[Folder]] = defaultdict(list)
    for folder in folders:
        taken = every or naming.says_content(folder.name)
        logs = [one for one in folder.anchors if taken or one.format is filelogger]
        for name in dict.fromkeys([folder.name, *(stem(one.path) for one in logs)]):
            if every or not naming.says_content(name):
                named[name].append(folder)
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


# -- names and files -------------------------------------------------------------------------------


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
        known = (status.st_dev, status.st_ino) if status else file.path
        if known not in taken or file.format is None:
            taken.add(known)
            files.append(file)
    return tuple(files)


def _own_name(folder: Folder) -> str:
    """Return a run's name by its experiment, by its file, or by its place."""
    stated = [*titles(folder), *(one.title for one in folder.extras + folder.anchors)]
    for one in (*stated, "" if folder.alone else folder.stem):
        if one and not naming.is_generic(one):
            return one
    top = folder.top or folder.directory
    places = [*folder.directory.relative_to(top).parts, *filter(None, [folder.stem])]
    return naming.place_name([] if folder.alone else places, top.resolve().parts)

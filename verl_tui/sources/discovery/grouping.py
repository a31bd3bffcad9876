"""Group the files that were found into runs.

A training leaves several files: console, metrics, events, dumps, settings. Several trainings may
lie in one place. Places and names decide, never the figures in the files:

1. one file of each kind at or below one place is one run;
2. where there are several, those of one name belong together (verl names
   `{project}/{experiment}.jsonl`, `tensorboard_log/{project}/{experiment}/` and the run at W&B
   alike), as do Slurm's `job.out` and `job.err`;
3. of several runs that W&B keeps in `wandb/` each belongs to one of the logs, see
   `verl_tui.sources.discovery.wandb_copies`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from verl_tui.patterns import pattern
from verl_tui.sources.discovery import naming
from verl_tui.sources.discovery.found import (
    WANDB,
    Folder,
    FoundFile,
    FoundRun,
    last_part,
    log_name,
    member,
    merge_into,
    one_log_each,
    stem,
    wandb_id,
)
from verl_tui.sources.discovery.wandb_copies import (
    assign_by_title,
    start_date,
    titles,
)
from verl_tui.sources.files.compressed import head
from verl_tui.sources.files.paths import RealPaths, is_folder
from verl_tui.sources.formats import filelogger, trainer_state

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from verl_tui.sources.discovery.wandb_copies import WandbCopies

_START = pattern(r"[A-Z][a-z]{2}\d\d_\d\d-\d\d-\d\d_")
"""Default name of a folder of events: time and host of the start."""
_GENERIC = pattern(
    r"(?:logs?|out|outputs?|console|stdout|metrics|runs?|tb|tensorboard(?:_logs?)?|events|wandb"
    r"|swanlog|samples|rollouts?|dumps?|validations?|results?|csv|train|slurm|data)"
    r"(?:[_-]?(?:logs?|data|dir|files|dumps?))?",
    re.IGNORECASE,
)
"""Names of folders that say what lies in them, not which run it is."""
_VERSION = pattern(r"v(\d{1,6})-\d{8}-\d{6}")
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


def grouped_runs(
    here: Folder, below: list[Folder], copies: WandbCopies
) -> list[Folder]:
    """Return the runs that a directory and the folders below it are: none, one or several."""
    own, kept = _split_by_wandb(here, copies.join_starts(here, _joined(here, below)))
    _take_extras(here, below)
    if not _is_one_run(here, own, kept):
        units = [*_split(here), *own]
    else:
        units = [merge_into(here, own)] if here.anchors or own else []
        if _takes_copies(units, kept, copies):
            if here.files or units or kept:
                return [merge_into(here, kept)]
            return []
    units, kept = copies.assign_by_name(units, kept)
    units = [*units, *assign_by_title(units, kept, _all_names(units))]
    if here.anchors:
        return units
    return _with_extras(here, units)


def _joined(here: Folder, below: list[Folder]) -> list[Folder]:
    """Return the runs below a directory, with the parts of one training joined: the directories of
    one W&B run, which gets a new one each time it is resumed, of processes, of which each may have
    one of its own, and of starts.
    """
    runs = _join([folder for folder in below if folder.anchors], _wandb_ids, start_date)
    runs = _join_event_files(here, _join(runs, _rank_logs))
    return _join(runs, _versions, _version_number, one_log=True)


def _join(
    runs: list[Folder],
    names: Callable[[Folder], tuple[Sequence[str], Sequence[str]]],
    order: Callable[[Folder], Any] | None = None,
    *,
    one_log: bool = False,
) -> list[Folder]:
    """Merge each run into the first one that is called as it seeks; return those that are left.

    Args:
        runs: The runs.
        names: Returns what a run seeks, and what it and what it was merged into is called.
        order: What sorts the parts, the first one first; None where they are sorted.
        one_log: Whether the logs of the parts continue each other.
    """
    firsts: dict[str, Folder] = {}
    joined: set[int] = set()
    for run in sorted(runs, key=order) if order else runs:
        sought, called = names(run)
        first = next(filter(None, map(firsts.get, sought)), None)
        if first is not None:
            for part in (first, run) if one_log else ():
                _continue_log(part, first.directory)
            merge_into(first, [run])
            joined.add(id(run))
        firsts |= dict.fromkeys(called, first or run)
    return [run for run in runs if id(run) not in joined]


def _wandb_ids(run: Folder) -> tuple[Sequence[str], Sequence[str]]:
    known = wandb_id(run.directory)
    return ((), ()) if known is None else ((known,), (known,))


def _rank_logs(run: Folder) -> tuple[Sequence[str], Sequence[str]]:
    members = (member(file.path) for file in run.anchors)
    logs = [one.log for one in members if one is not None]
    return logs, logs


def _version_number(run: Folder) -> int:
    found = _VERSION.fullmatch(run.directory.name)
    return int(found[1]) if found else -1


def _versions(run: Folder) -> tuple[Sequence[str], Sequence[str]]:
    """Return the names of two directories of ms-swift, which makes another at each start: of the
    one that a run resumed, and its own.
    """
    if _version_number(run) < 0:
        return (), ()
    arguments = run.directory / "args.json"
    try:
        resumed = _resumed(arguments, arguments.stat().st_mtime_ns)
    except OSError:
        resumed = ""
    return [resumed], [run.directory.name]


@lru_cache(maxsize=1024)  # changed at another time it has another content
def _resumed(arguments: Path, _changed: int) -> str:
    found = _RESUMED.search(head(arguments, _LARGEST))
    return found[1].decode() if found else ""


def _take_extras(here: Folder, below: list[Folder]) -> None:
    """Add the samples and settings of folders without a log to the run here."""
    ours = (None, wandb_id(here.directory))
    for folder in below:
        if not folder.anchors and wandb_id(folder.directory) in ours:
            here.extras.extend(folder.extras)


def _split_by_wandb(
    here: Folder, runs: list[Folder]
) -> tuple[list[Folder], list[Folder]]:
    """Return the runs outside and inside W&B's directory."""
    own: list[Folder] = []
    kept: list[Folder] = []
    for run in runs:
        (kept if _top(here, run) == WANDB else own).append(run)
    if here.directory.name != WANDB:
        own = _join_same_names(own)
    return own, kept


def _top(here: Folder, below: Folder) -> str:
    """Return the name of the folder in a directory that another one is or lies in."""
    return below.directory.relative_to(here.directory).parts[0]


def _is_one_run(here: Folder, own: list[Folder], kept: list[Folder]) -> bool:
    """True if a directory with all below it is one run."""
    runs = [*own, *kept]
    parts = len(runs) > 1 and all(_GENERIC.fullmatch(_top(here, run)) for run in runs)
    return bool(here.files or parts) and one_log_each([here, *own])


def _takes_copies(units: list[Folder], kept: list[Folder], copies: WandbCopies) -> bool:
    """True if what W&B kept belongs to the one run that there is."""
    if len(kept) > 1:
        return False
    return not any(copies.is_foreign(unit, copy) for copy in kept for unit in units)


def _with_extras(here: Folder, units: list[Folder]) -> list[Folder]:
    """Add the samples or settings of a directory without a log to the runs below it."""
    if not units:
        return [here] if here.extras else []
    if len(units) == 1:
        if not here.extras:
            return units
        return [merge_into(here, units)]
    samples = [file for file in here.extras if file.format is not None]
    if not samples:
        return units
    place = samples[0].path
    directory = place if is_folder(place) else place.parent
    name = str(directory.relative_to(here.directory))
    return [*units, Folder(directory, name, extras=samples)]


def _join_event_files(here: Folder, runs: list[Folder]) -> list[Folder]:
    """Join the event files of a Hugging Face trainer: each start has a folder in `runs/`.

    So have programs that have nothing to do with each other: a trainer's state shows that they are
    one training, and before its first checkpoint that they state the same name.
    """
    starts = [run for run in runs if _is_start(here, run)]
    has_state = any(file.format is trainer_state for file in here.anchors)
    if not starts or not (has_state or _state_one_name(starts)):
        return runs
    others = [run for run in runs if not _is_start(here, run)]
    for folder in starts:
        _continue_log(folder, folder.directory.parent)
    return [*others, merge_into(starts[0], starts[1:])]


def _state_one_name(starts: Sequence[Folder]) -> bool:
    names = {file.title for start in starts for file in start.anchors}
    return len(starts) > 1 and len(names) == 1 and "" not in names


def _is_start(here: Folder, run: Folder) -> bool:
    in_runs = run.directory.parent == here.directory / "runs"
    return in_runs and bool(_START.match(run.directory.name))


def _continue_log(folder: Folder, first: Path) -> None:
    """Mark the logs of a directory as continuing those of the first one."""
    folder.anchors = [file._replace(log=str(first)) for file in folder.anchors]


def _join_same_names(own: list[Folder]) -> list[Folder]:
    """Join folders of the same name in different places, if together they are one run."""
    alike: dict[str, list[Folder]] = defaultdict(list)
    for folder in own:
        for name in _names(folder):
            alike[name].append(folder)
    parts: dict[int, Folder] = {}
    for name, folders in alike.items():
        if len(folders) < 2 or not parts.keys().isdisjoint(map(id, folders)):
            continue
        if one_log_each(folders):
            joined = merge_into(Folder(folders[0].directory, name, stem=name), folders)
            parts |= dict.fromkeys(map(id, folders), joined)
    runs = [parts.get(id(folder), folder) for folder in own]
    return list({id(run): run for run in runs}.values())


def _names(folder: Folder) -> list[str]:
    """Return the names that may identify a run: its folder's, and its log's if verl chose it."""
    last = last_part(folder.name)
    nameless = _GENERIC.fullmatch(last)
    stems = [
        stem(file.path)
        for file in folder.anchors
        if nameless or file.format is filelogger
    ]
    names = dict.fromkeys([last, *stems])
    return [name for name in names if not _GENERIC.fullmatch(name)]


def _all_names(units: Iterable[Folder]) -> Mapping[str, Sequence[Folder]]:
    """Return the runs by the names of them and of their files."""
    named: dict[str, list[Folder]] = defaultdict(list)
    for unit in units:
        for name in {*_names(unit), *(stem(file.path) for file in unit.anchors)}:
            named[name].append(unit)
    return named


def _split(here: Folder) -> list[Folder]:
    """Split several logs in one directory into runs by their stems; settings go to none."""
    if here.anchors and one_log_each([here]):
        return [here]
    stems: dict[str, Folder] = {}
    for file in here.anchors:
        log = log_name(file)
        if log == str(file.path.parent):
            name = file.path.parent.name
        elif member(file.path):
            name = Path(log).name
        else:
            name = stem(file.path)
        folder = stems.setdefault(name, Folder(here.directory, name, stem=name))
        folder.anchors.append(file)
    return list(stems.values())


def named_runs(folders: list[Folder]) -> list[FoundRun]:
    """Return the runs with names that differ, each file once."""
    real_paths = RealPaths()
    taken: set[Path] = set()
    runs: list[tuple[Folder, tuple[FoundFile, ...]]] = []
    for folder in folders:
        files = _new_files(folder, taken, real_paths)
        if any(file.format for file in files):
            runs.append((folder, files))
    names = [_own_name(folder, real_paths) for folder, _ in runs]
    places = [
        [*real_paths.of(folder.directory).parts, *filter(None, [folder.stem])]
        for folder, _ in runs
    ]
    names = naming.distinct(names, places)
    return [
        FoundRun(name, folder.directory, files)
        for name, (folder, files) in zip(names, runs, strict=True)
    ]


def _new_files(
    folder: Folder, taken: set[Path], real_paths: RealPaths
) -> tuple[FoundFile, ...]:
    """Return the files of a folder that no other run has taken; settings may be shared."""
    files = []
    for file in (*sorted(folder.anchors, key=_rank), *folder.extras):
        real = real_paths.of(file.path)
        if real not in taken or file.format is None:
            taken.add(real)
            files.append(file)
    return tuple(files)


def _rank(file: FoundFile) -> int:
    """Sort the log of the first rank last: of two values for one step the last file's wins."""
    one = member(file.path)
    return -1 if one is None else -one.rank


def _own_name(folder: Folder, real_paths: RealPaths) -> str:
    """Return a run's name by its experiment, by its file, or by its place."""
    if title := _specific_title(folder):
        return title
    if folder.stem and not folder.alone and not naming.is_generic(folder.stem):
        return folder.stem
    top = folder.top or folder.directory
    if folder.alone:
        return naming.place_name((), real_paths.of(top).parts)
    below = list(filter(None, [folder.stem]))
    if top in folder.directory.parents:
        below = [*folder.directory.relative_to(top).parts, *below]
    return naming.place_name(below, real_paths.of(top).parts)


def _specific_title(folder: Folder) -> str:
    stated = (file.title for file in (*folder.extras, *folder.anchors))
    for title in (*titles(folder), *stated):
        if title and not naming.is_generic(title):
            return title
    return ""

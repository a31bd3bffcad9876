"""Which of the files that were found belong to one run.

A training leaves several files: console, metrics, events, dumps, settings. Several trainings may lie in one place.
What is decided here is decided by where files lie and what they are called, never by what they measure:

1. one file of each kind at or below one place is one run;
2. where there are several, those of one name belong together (verl names `{project}/{experiment}.jsonl`,
   `tensorboard_log/{project}/{experiment}/` and the run at W&B alike), as do Slurm's `job.out` and `job.err`;
3. a run that W&B keeps in `wandb/` under another name belongs to the log beside it that was written to the end at the
   same time.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from verl_tui.sources import console, filelogger, naming, ranks, trainer_state, versions, wandb
from verl_tui.sources.paths import is_folder
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from verl_tui.sources.format import Format

WANDB = "wandb"
"""The directory in which W&B keeps its runs."""
_WANDB_RUN = re.compile(r"^(?:offline-)?run-\d{8}_\d{6}-(.+)$")
_HPARAMS = re.compile(r"\d{10}\.\d+")
"""A folder in which torch's `SummaryWriter.add_hparams` puts an event file of its own, named by the time."""
_START = re.compile(r"[A-Z][a-z]{2}\d\d_\d\d-\d\d-\d\d_")
"""What a folder of events is called by default: when and where a program was started."""
_SAME_END = 120.0
"""Seconds within which a log and W&B's copy of it are written for the last time: heuristic."""
_GENERIC = re.compile(
    r"(?:logs?|out|outputs?|console|stdout|metrics|runs?|tb|tensorboard(?:_logs?)?|events|wandb|swanlog|samples|"
    r"rollouts?|dumps?|validations?|results?|csv|train|slurm|data)(?:[_-]?(?:logs?|data|dir|files|dumps?))?",
    re.IGNORECASE,
)
"""Names of folders that say what lies in them, not which run it is."""


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file, or a directory of dumps, and how to read it."""

    path: Path
    format: Format | None
    """None for settings."""
    log: str = ""
    """What files that continue or complete each other have in common, where their place does not tell."""
    sure: bool = True
    """False for a console without a step so far: it is a run only where no better one lies beside it."""
    title: str = ""
    """What its beginning calls the experiment."""


@dataclass(frozen=True, slots=True)
class FoundRun:
    """A run and its files."""

    name: str
    directory: Path
    files: tuple[FoundFile, ...]
    checkpoints: tuple[Path, ...] = ()
    """Directories in which its checkpoints lie."""


@dataclass(slots=True)
class Folder:
    """Files of what may be one run, while the tree is walked."""

    directory: Path
    name: str
    anchors: list[FoundFile] = field(default_factory=list)
    extras: list[FoundFile] = field(default_factory=list)
    stem: str = ""
    """What its files are called, where that is what tells it from others in its directory."""
    top: Path | None = None
    """What the user named, where the run was found below that."""
    alone: bool = False
    """Whether there was no other run."""

    @property
    def logs(self) -> set[tuple[str, str]]:
        """Its logs, by kind and name; files that continue each other are one log."""
        return {(file.format.name, log_of(file)) for file in self.anchors if file.format}

    @property
    def changed(self) -> float:
        """When a log of it was last written, 0 where that cannot be told."""
        return max((_changed(file.path) for file in self.anchors), default=0.0)


def wandb_id(path: Path) -> str | None:
    """Return the id of the W&B run in whose directory a path lies, None where it lies in none."""
    return next((found.group(1) for part in reversed(path.parts) if (found := _WANDB_RUN.match(part))), None)


def is_events(path: Path) -> bool:
    """Tell from its name whether a file is one of a TensorBoard writer, which begins another at each start."""
    return ".tfevents." in path.name


def log_of(file: FoundFile) -> str:
    """Return what files that continue or complete each other have in common."""
    if file.log:
        return file.log
    if (kept := wandb_id(file.path)) is not None:
        return f"{WANDB}/{kept}"
    if is_events(file.path):
        folder = file.path.parent
        return str(folder.parent if _HPARAMS.fullmatch(folder.name) else folder)
    if (member := ranks.member(file.path)) is not None:
        return member.log
    return f"{file.path.parent}/{stem(file.path)}"


def stem(path: Path) -> str:
    """Return a file's name without its ending: `job-7` of `job-7.out`, `train` of `train.log.gz`."""
    return path.name.removesuffix(".gz").rpartition(".")[0] or path.name


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def grouped(here: Folder, below: list[Folder]) -> list[Folder]:
    """Decide what a directory and what was found below it are: one run, several, or part of a run above."""
    runs = _went_on(_begun_again(here, _of_ranks(_resumed([folder for folder in below if folder.anchors]))))
    for folder in below:
        if not folder.anchors and wandb_id(folder.directory) in (None, wandb_id(here.directory)):
            here.extras.extend(folder.extras)
    own, kept = _apart(runs, lambda folder: folder.directory.relative_to(here.directory).parts[0] == WANDB)
    if here.directory.name != WANDB:
        own = _by_name(own)
    alone = here.anchors or here.extras or _generic(here, [*own, *kept])
    if alone and _whole([here, *own]):
        # Of a single run all that was found is part, W&B's copy of it, too.
        units = [_merged(here, own)] if here.anchors or own else []
        if len(kept) <= 1:
            return [_merged(here, kept)] if units or kept or here.extras else []
    elif here.anchors:
        units = ([here] if _whole([here]) else _split(here)) + own
    else:
        units = own
    units = _by_time(*_by_title(units, kept))
    return units if here.anchors else _with_extras(here, units)


def _with_extras(here: Folder, units: list[Folder]) -> list[Folder]:
    """Return runs found below a directory that has no log of its own, but perhaps samples or settings."""
    if not units:
        return [here] if here.extras else []
    if len(units) == 1:
        return [_merged(here, units)] if here.extras else units
    samples = [file for file in here.extras if file.format is not None]
    if not samples:
        return units
    directory = samples[0].path if is_folder(samples[0].path) else samples[0].path.parent
    return [*units, Folder(directory, str(directory.relative_to(here.directory)), extras=samples)]


def _apart(folders: list[Folder], test: Callable[[Folder], bool]) -> tuple[list[Folder], list[Folder]]:
    return [folder for folder in folders if not test(folder)], [folder for folder in folders if test(folder)]


def _whole(folders: Iterable[Folder]) -> bool:
    """Tell whether there is no second log of any kind."""
    logs = {log for folder in folders for log in folder.logs}
    return len({kind for kind, _ in logs}) == len(logs)


def _generic(here: Folder, runs: Sequence[Folder]) -> bool:
    """Tell whether the folders below say by their names that they are parts of a run, not runs."""
    tops = {folder.directory.relative_to(here.directory).parts[0] for folder in runs}
    return len(runs) > 1 and all(_GENERIC.fullmatch(top) for top in tops)


def _resumed(runs: list[Folder]) -> list[Folder]:
    """Join the directories of one W&B run: it gets a new one each time it is resumed."""
    kept = {id(folder): kept for folder in runs if (kept := wandb_id(folder.directory)) is not None}
    by_id: dict[str, Folder] = {}
    for folder in sorted((f for f in runs if id(f) in kept), key=_date):
        known = by_id.setdefault(kept[id(folder)], folder)
        if known is not folder:
            _merged(known, [folder])
    return [folder for folder in runs if id(folder) not in kept or by_id[kept[id(folder)]] is folder]


def _of_ranks(runs: list[Folder]) -> list[Folder]:
    """Join the directories of the processes of one training: each rank may have one of its own."""
    by_log: dict[str, Folder] = {}
    left = []
    for folder in runs:
        logs = [member.log for file in folder.anchors if (member := ranks.member(file.path)) is not None]
        known = next((by_log[log] for log in logs if log in by_log), None)
        if known is None:
            left.append(folder)
        else:
            _merged(known, [folder])
        by_log |= dict.fromkeys(logs, known or folder)
    return left


def _begun_again(here: Folder, runs: list[Folder]) -> list[Folder]:
    """Join the event files of a trainer of Hugging Face: each start has a folder in `runs/` of its output directory."""
    if not any(file.format is trainer_state for file in here.anchors):
        return runs
    others, starts = _apart(
        runs,
        lambda folder: folder.directory.parent == here.directory / "runs" and bool(_START.match(folder.directory.name)),
    )
    for folder in starts:
        folder.anchors = [replace(file, log=str(folder.directory.parent)) for file in folder.anchors]
    return [*others, _merged(starts[0], starts[1:])] if starts else others


def _went_on(runs: list[Folder]) -> list[Folder]:
    """Join the directories of one training of ms-swift, which begins another at each start."""
    starts = [folder for folder in runs if versions.version(folder.directory.name) is not None]
    firsts: dict[str, Folder] = {}
    joined: set[int] = set()
    for folder in sorted(starts, key=lambda folder: versions.version(folder.directory.name) or 0):
        first = firsts.get(versions.went_on_from(folder.directory) or "")
        if first is not None and len(starts) > 1:
            _continued(first, first.directory)
            _continued(folder, first.directory)
            _merged(first, [folder])
            joined.add(id(folder))
        firsts[folder.directory.name] = first or folder
    return [folder for folder in runs if id(folder) not in joined]


def _continued(folder: Folder, first: Path) -> None:
    """Let the logs of a directory be those that a training began in its first one."""
    folder.anchors = [replace(file, log=str(first)) for file in folder.anchors]


def _by_name(own: list[Folder]) -> list[Folder]:
    """Join folders that are named alike and lie in different places, where that makes them one run."""
    alike: dict[str, list[Folder]] = defaultdict(list)
    for folder in own:
        for name in _names(folder):
            alike[name].append(folder)
    parts: dict[int, Folder] = {}
    for name, folders in alike.items():
        if len(folders) > 1 and not any(id(folder) in parts for folder in folders) and _whole(folders):
            joined = _merged(Folder(folders[0].directory, name, stem=name), folders)
            parts |= dict.fromkeys(map(id, folders), joined)
    return list({id(one): one for folder in own for one in (parts.get(id(folder), folder),)}.values())


def _names(folder: Folder) -> list[str]:
    """Return what says which run a folder is: its name, or that of its log where verl names the log by the run."""
    last = _last(folder.name)
    nameless = _GENERIC.fullmatch(last)
    stems = [stem(file.path) for file in folder.anchors if nameless or file.format is filelogger]
    return [name for name in dict.fromkeys([last, *stems]) if not _GENERIC.fullmatch(name)]


def _last(name: str) -> str:
    return name.rstrip("/").rpartition("/")[2]


def _by_title(units: list[Folder], kept: list[Folder]) -> tuple[list[Folder], list[Folder]]:
    """Give W&B's runs to the log that is called as they are at W&B; return the logs and the runs that are left.

    A run that has not said its name is left out as long as there are logs whose copy it may be.
    """
    named: dict[str, list[Folder]] = defaultdict(list)
    for unit in units:
        for name in {*_names(unit), *(stem(file.path) for file in unit.anchors)}:
            named[name].append(unit)
    left = []
    for copy in sorted(kept, key=_date):
        said = _said(copy)
        logs = [unit for title in _titles(copy) for unit in named[title]]
        if len(logs) == 1:
            _merged(logs[0], [copy])
        elif said or not units:
            left.append(copy)
    return units, left


def _date(copy: Folder) -> str:
    """Return when a run of W&B began, as the name of its directory says it."""
    return copy.directory.name.removeprefix("offline-")


def _by_time(units: list[Folder], kept: list[Folder]) -> list[Folder]:
    """Give W&B's runs to the logs that ended when they did; those that none can be told for are runs themselves."""
    ends = {id(unit): unit.changed for unit in units}
    for copy in kept:
        end = copy.changed
        logs = [unit for unit in units if id(unit) in ends and abs(ends[id(unit)] - end) <= _SAME_END]
        near = [log for log in logs if _whole([log, _reduced(copy)])]
        rivals = [other for other in kept if abs(other.changed - end) <= _SAME_END]
        if len(near) == 1 and len(rivals) == 1:
            _merged(near[0], [copy])
        else:
            units = [*units, copy]
    return units


def _merged(here: Folder, runs: Iterable[Folder]) -> Folder:
    for folder in runs:
        copied = _reduced(folder) if _has_console(here) else folder
        here.anchors.extend(copied.anchors)
        here.extras.extend(copied.extras)
    return here


def _has_console(folder: Folder) -> bool:
    return any(file.format is console and wandb_id(file.path) is None for file in folder.anchors)


def _reduced(copy: Folder) -> Folder:
    """Return W&B's run without its copy of the console: of runs that have a log of their own it says all again."""
    anchors = [file for file in copy.anchors if file.format is not console or wandb_id(file.path) is None]
    return Folder(copy.directory, copy.name, anchors, copy.extras)


def _split(here: Folder) -> list[Folder]:
    """Split several logs in one directory into runs by the stem of their names; settings belong to none of them."""
    stems: dict[str, Folder] = {}
    for file in here.anchors:
        name = Path(log_of(file)).name if ranks.member(file.path) else stem(file.path)
        name = name if log_of(file) != str(file.path.parent) else file.path.parent.name
        stems.setdefault(name, Folder(here.directory, name, stem=name)).anchors.append(file)
    return list(stems.values())


def named(folders: list[Folder]) -> list[FoundRun]:
    """Return the runs with names that differ, each file once."""
    taken: set[Path] = set()
    runs: list[tuple[Folder, tuple[FoundFile, ...]]] = []
    for folder in folders:
        files = []
        for file in (*sorted(folder.anchors, key=_rank), *folder.extras):
            real = file.path.resolve()
            if real not in taken or file.format is None:
                taken.add(real)
                files.append(file)
        if any(file.format for file in files):
            runs.append((folder, tuple(files)))
    names = [_called(folder) for folder, _ in runs]
    places = [[*folder.directory.resolve().parts, *([folder.stem] if folder.stem else [])] for folder, _ in runs]
    names = [one_line(name, 120) for name in naming.apart(names, places)]
    return [FoundRun(name, folder.directory, files) for name, (folder, files) in zip(names, runs, strict=True)]


def _rank(file: FoundFile) -> int:
    """Return what puts the log of the first rank last: of two values for one step that of the last file holds."""
    member = ranks.member(file.path)
    return -member.rank if member is not None else -1


def _called(folder: Folder) -> str:
    """Return what a run is called by itself: as its experiment is, as its file is, or as its place."""
    files = (*folder.extras, *folder.anchors)
    titles = (*_titles(folder), *(file.title for file in files))
    title = next((title for title in titles if title and not naming.says_nothing(title)), "")
    if title or (folder.stem and not folder.alone and not naming.says_nothing(folder.stem)):
        return title or folder.stem
    top = folder.top or folder.directory
    if folder.alone:
        return naming.place((), top.resolve().parts)
    relative = folder.directory.relative_to(top).parts if top in folder.directory.parents else ()
    return naming.place((*relative, *([folder.stem] if folder.stem else [])), top.resolve().parts)


def _titles(copy: Folder) -> list[str]:
    """Return what a run is called at W&B, if it is: names are often paths."""
    return list(dict.fromkeys(_last(title) for title in _said(copy) if _last(title)))


def _said(copy: Folder) -> list[str]:
    """Return the names that W&B's logs say, an empty one where there is none; nothing where they do not say yet."""
    titles = (wandb.title(file.path) for file in copy.anchors if file.format is wandb)
    return [title for title in titles if title is not None]

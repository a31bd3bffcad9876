"""Which of the files that were found belong to one run.

A training leaves several files: console, metrics, events, dumps, settings. Several trainings may
lie in one place. What is decided here is decided by where files lie and what they are called, never
by what they measure:

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
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from verl_tui.sources.discovery import naming, ranks, versions
from verl_tui.sources.discovery.found import (
    WANDB,
    Folder,
    FoundFile,
    FoundRun,
    last_part,
    log_of,
    merged,
    stem,
    wandb_id,
    whole,
)
from verl_tui.sources.discovery.wandb_copies import by_title, resumed, titles
from verl_tui.sources.files.paths import is_folder
from verl_tui.sources.formats import filelogger, trainer_state
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from verl_tui.sources.discovery.wandb_copies import Copies

_START = re.compile(r"[A-Z][a-z]{2}\d\d_\d\d-\d\d-\d\d_")
"""What a folder of events is called by default: when and where a program was started."""
_GENERIC = re.compile(
    r"(?:logs?|out|outputs?|console|stdout|metrics|runs?|tb|tensorboard(?:_logs?)?|events|wandb|swanlog|samples|"
    r"rollouts?|dumps?|validations?|results?|csv|train|slurm|data)(?:[_-]?(?:logs?|data|dir|files|dumps?))?",
    re.IGNORECASE,
)
"""Names of folders that say what lies in them, not which run it is."""


def grouped(here: Folder, below: list[Folder], copies: Copies) -> list[Folder]:
    """Decide what a directory and what was found below it are: one run, several, or part of a run
    above.
    """
    runs = _went_on(
        _begun_again(here, _of_ranks(resumed([folder for folder in below if folder.anchors])))
    )
    runs = copies.joined(here, runs)
    for folder in below:
        if not folder.anchors and wandb_id(folder.directory) in (None, wandb_id(here.directory)):
            here.extras.extend(folder.extras)
    own, kept = _apart(
        runs, lambda folder: folder.directory.relative_to(here.directory).parts[0] == WANDB
    )
    if here.directory.name != WANDB:
        own = _by_name(own)
    alone = here.anchors or here.extras or _generic(here, [*own, *kept])
    if alone and whole([here, *own]):
        # Of a single run all that was found is part, W&B's copy of it, too.
        units = [merged(here, own)] if here.anchors or own else []
        if len(kept) <= 1 and not any(
            copies.is_foreign(unit, one) for unit in units for one in kept
        ):
            return [merged(here, kept)] if units or kept or here.extras else []
    elif here.anchors:
        units = ([here] if whole([here]) else _split(here)) + own
    else:
        units = own
    units, kept = copies.owned(units, kept)
    units = copies.by_time(*by_title(units, kept, _all_names(units)))
    return units if here.anchors else _with_extras(here, units)


def _with_extras(here: Folder, units: list[Folder]) -> list[Folder]:
    """Return runs found below a directory that has no log of its own, but perhaps samples or
    settings.
    """
    if not units:
        return [here] if here.extras else []
    if len(units) == 1:
        return [merged(here, units)] if here.extras else units
    samples = [file for file in here.extras if file.format is not None]
    if not samples:
        return units
    directory = samples[0].path if is_folder(samples[0].path) else samples[0].path.parent
    return [*units, Folder(directory, str(directory.relative_to(here.directory)), extras=samples)]


def _apart(
    folders: list[Folder], test: Callable[[Folder], bool]
) -> tuple[list[Folder], list[Folder]]:
    return [folder for folder in folders if not test(folder)], [
        folder for folder in folders if test(folder)
    ]


def _generic(here: Folder, runs: Sequence[Folder]) -> bool:
    """Tell whether the folders below say by their names that they are parts of a run, not runs."""
    tops = {folder.directory.relative_to(here.directory).parts[0] for folder in runs}
    return len(runs) > 1 and all(_GENERIC.fullmatch(top) for top in tops)


def _of_ranks(runs: list[Folder]) -> list[Folder]:
    """Join the directories of the processes of one training: each rank may have one of its own."""
    by_log: dict[str, Folder] = {}
    left = []
    for folder in runs:
        logs = [
            member.log for file in folder.anchors if (member := ranks.member(file.path)) is not None
        ]
        known = next((by_log[log] for log in logs if log in by_log), None)
        if known is None:
            left.append(folder)
        else:
            merged(known, [folder])
        by_log |= dict.fromkeys(logs, known or folder)
    return left


def _begun_again(here: Folder, runs: list[Folder]) -> list[Folder]:
    """Join the event files of a trainer of Hugging Face: each start has a folder in `runs/` of its
    output directory.
    """
    if not any(file.format is trainer_state for file in here.anchors):
        return runs
    others, starts = _apart(
        runs,
        lambda folder: (
            folder.directory.parent == here.directory / "runs"
            and bool(_START.match(folder.directory.name))
        ),
    )
    for folder in starts:
        folder.anchors = [
            replace(file, log=str(folder.directory.parent)) for file in folder.anchors
        ]
    return [*others, merged(starts[0], starts[1:])] if starts else others


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
            merged(first, [folder])
            joined.add(id(folder))
        firsts[folder.directory.name] = first or folder
    return [folder for folder in runs if id(folder) not in joined]


def _continued(folder: Folder, first: Path) -> None:
    """Let the logs of a directory be those that a training began in its first one."""
    folder.anchors = [replace(file, log=str(first)) for file in folder.anchors]


def _by_name(own: list[Folder]) -> list[Folder]:
    """Join folders that are named alike and lie in different places, where that makes them one
    run.
    """
    alike: dict[str, list[Folder]] = defaultdict(list)
    for folder in own:
        for name in _names(folder):
            alike[name].append(folder)
    parts: dict[int, Folder] = {}
    for name, folders in alike.items():
        if (
            len(folders) > 1
            and not any(id(folder) in parts for folder in folders)
            and whole(folders)
        ):
            joined = merged(Folder(folders[0].directory, name, stem=name), folders)
            parts |= dict.fromkeys(map(id, folders), joined)
    return list(
        {id(one): one for folder in own for one in (parts.get(id(folder), folder),)}.values()
    )


def _names(folder: Folder) -> list[str]:
    """Return what says which run a folder is: its name, or that of its log where verl names the log
    by the run.
    """
    last = last_part(folder.name)
    nameless = _GENERIC.fullmatch(last)
    stems = [stem(file.path) for file in folder.anchors if nameless or file.format is filelogger]
    return [name for name in dict.fromkeys([last, *stems]) if not _GENERIC.fullmatch(name)]


def _all_names(units: Iterable[Folder]) -> Mapping[str, Sequence[Folder]]:
    """Return the runs by all that they and their files are called."""
    named: dict[str, list[Folder]] = defaultdict(list)
    for unit in units:
        for name in {*_names(unit), *(stem(file.path) for file in unit.anchors)}:
            named[name].append(unit)
    return named


def _split(here: Folder) -> list[Folder]:
    """Split several logs in one directory into runs by the stem of their names; settings belong to
    none of them.
    """
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
    places = [
        [*folder.directory.resolve().parts, *([folder.stem] if folder.stem else [])]
        for folder, _ in runs
    ]
    names = [one_line(name, 120) for name in naming.apart(names, places)]
    return [
        FoundRun(name, folder.directory, files)
        for name, (folder, files) in zip(names, runs, strict=True)
    ]


def _rank(file: FoundFile) -> int:
    """Return what puts the log of the first rank last: of two values for one step that of the last
    file holds.
    """
    member = ranks.member(file.path)
    return -member.rank if member is not None else -1


def _called(folder: Folder) -> str:
    """Return what a run is called by itself: as its experiment is, as its file is, or as its
    place.
    """
    files = (*folder.extras, *folder.anchors)
    called = (*titles(folder), *(file.title for file in files))
    title = next((title for title in called if title and not naming.says_nothing(title)), "")
    if title or (folder.stem and not folder.alone and not naming.says_nothing(folder.stem)):
        return title or folder.stem
    top = folder.top or folder.directory
    if folder.alone:
        return naming.place((), top.resolve().parts)
    relative = folder.directory.relative_to(top).parts if top in folder.directory.parents else ()
    return naming.place((*relative, *([folder.stem] if folder.stem else [])), top.resolve().parts)

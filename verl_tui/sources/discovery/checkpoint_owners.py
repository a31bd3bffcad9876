"""Assign directories of checkpoints to runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.sources.discovery import naming
from verl_tui.sources.discovery.found import stem
from verl_tui.sources.files.checkpoint_names import HOMES
from verl_tui.sources.files.paths import is_folder
from verl_tui.sources.folders.checkpoint_folders import homes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from verl_tui.sources.discovery.found import FoundRun

_HIGHEST = 4
"""Directories gone up to where a run's logs and its checkpoints lie side by side."""


class CheckpointHome(NamedTuple):
    """A directory in which checkpoints lie."""

    path: Path
    top: Path
    """Path that the user named when it was found."""
    given: bool = False
    """True if what the user named holds nothing else."""


def homes_around(directory: Path) -> list[CheckpointHome]:
    """Return where the run with logs in a directory keeps its checkpoints: there, or beside it."""
    found = []
    place = directory
    for _ in range(_HIGHEST + 1):
        found += homes(place, 0)
        for name in HOMES:
            if is_folder(place / name):
                found += homes(place / name)
        place = Path(os.path.realpath(place))
        if not naming.is_generic(place.name):
            break
        place = place.parent
    return [CheckpointHome(home, directory) for home in found]


def with_checkpoints(
    runs: Sequence[FoundRun], found: Sequence[CheckpointHome]
) -> list[FoundRun]:
    """Return the runs with their checkpoints.

    Checkpoints belong to the run whose files lie nearest. If several are equally near, they belong
    to the one whose name is in their path; if there is none, to all: jobs that resume each other
    share them.
    """
    names = list(map(_names, runs))
    below = _by_place(runs)
    owned: list[dict[Path, None]] = [{} for _ in runs]
    for home in found:
        depth, near = _nearest(below, home, range(len(runs)))
        named = _named_in(home, {at: names[at] for at in near}, depth)
        # those that the user named alone fit no several runs
        shared = near if len(near) == 1 or not home.given else ()
        for at in named or shared:
            owned[at][home.path] = None
    return [
        run._replace(checkpoints=tuple(mine))
        for run, mine in zip(runs, owned, strict=True)
    ]


def _named_in(
    home: CheckpointHome, names: Mapping[int, set[str]], depth: int
) -> list[int]:
    """Return the runs with a name of their own in the path of checkpoints below a depth."""
    common = set.intersection(*names.values()) if len(names) > 1 else set()
    parts = set(home.path.parts[depth - home.given :])
    return [at for at, own in names.items() if (own - common) & parts]


def _names(run: FoundRun) -> set[str]:
    """Return the names that a run's checkpoints may lie under."""
    stems = {stem(file.path) for file in run.files if file.is_log}
    titles = {file.title for file in run.files}
    names = {run.name, run.directory.name, *stems, *titles}
    return {name for name in names if name and not naming.is_generic(name)}


def _by_place(runs: Sequence[FoundRun]) -> dict[tuple[str, ...], list[int]]:
    """Return the runs with files at or below each directory, by the parts of its path."""
    below: dict[tuple[str, ...], list[int]] = {}
    for at, run in enumerate(runs):
        own = {run.directory.parts, *(file.path.parts[:-1] for file in run.files)}
        places = {parts[: last + 1] for parts in own for last in range(len(parts))}
        for place in places:
            below.setdefault(place, []).append(at)
    return below


def _nearest(
    below: Mapping[tuple[str, ...], Sequence[int]],
    home: CheckpointHome,
    every: Sequence[int],
) -> tuple[int, Sequence[int]]:
    """Return the runs with the nearest files, and the number of parts of the path of that place."""
    if home.given:
        return 1, every
    parts = home.path.parts
    highest = min(len(parts), len(home.top.parts))
    for depth in range(len(parts), highest - 1, -1):
        place = parts[:depth]
        if place in below:
            return depth, below[place]
    return 0, below.get(home.top.parts, ())

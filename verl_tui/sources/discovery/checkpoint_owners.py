"""Assign directories of checkpoints to runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.sources.discovery import naming
from verl_tui.sources.discovery.found import stem
from verl_tui.sources.files.paths import HOMES
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
    below: dict[Path, list[int]] = {}
    """The runs with files at or below each directory."""
    for at, run in enumerate(runs):
        own = {run.directory, *(file.path.parent for file in run.files)}
        for place in {place for one in own for place in (one, *one.parents)}:
            below.setdefault(place, []).append(at)
    owned: list[dict[Path, None]] = [{} for _ in runs]
    for home in found:
        for at in _owners(home, names, below):
            owned[at][home.path] = None
    return [
        run._replace(checkpoints=tuple(mine))
        for run, mine in zip(runs, owned, strict=True)
    ]


def _owners(
    home: CheckpointHome,
    names: Sequence[set[str]],
    below: Mapping[Path, Sequence[int]],
) -> Sequence[int]:
    """Return the runs that checkpoints belong to."""
    places = (one for one in (home.path, *home.path.parents) if one in below)
    nearest = next(places, home.top)
    if home.given or not nearest.is_relative_to(home.top):
        nearest = home.top
    near = range(len(names)) if home.given else below.get(nearest, ())
    common = set.intersection(*(names[at] for at in near)) if len(near) > 1 else ()
    path = set(home.path.parts[0 if home.given else len(nearest.parts) :])
    named = [at for at in near if names[at].difference(common) & path]
    # those that the user named alone fit no several runs
    return named or (near if len(near) == 1 or not home.given else ())


def _names(run: FoundRun) -> set[str]:
    """Return the names that a run's checkpoints may lie under."""
    stems = {stem(file.path) for file in run.files if file.is_log}
    titles = {file.title for file in run.files}
    names = {run.name, run.directory.name, *stems, *titles}
    return {name for name in names if name and not naming.is_generic(name)}

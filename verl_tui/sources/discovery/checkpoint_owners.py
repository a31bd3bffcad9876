"""Whose checkpoints lie where: a run's own directory, one beside its logs, or one that the user
named.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.sources.discovery import naming
from verl_tui.sources.discovery.found import stem, wandb_id
from verl_tui.sources.files.checkpoint_names import HOMES
from verl_tui.sources.files.paths import is_folder
from verl_tui.sources.folders.checkpoints import homes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from verl_tui.sources.discovery.found import FoundRun

_HIGHEST = 4
"""Directories gone up to where a run's logs and its checkpoints lie side by side."""


class Home(NamedTuple):
    """A directory in which checkpoints lie."""

    path: Path
    top: Path
    """What the user named when it was found."""
    given: bool = False
    """Whether there was nothing else in what the user named."""


def around(directory: Path) -> list[Path]:
    """Return where the checkpoints of a run lie whose logs lie in a directory: there, or beside
    `logs`.
    """
    found = []
    for place in (directory, *directory.parents)[: _HIGHEST + 1]:
        found += homes(place, 0)
        found += [home for name in HOMES if is_folder(place / name) for home in homes(place / name)]
        if not naming.says_nothing(place.name) and wandb_id(place) is None:
            break
    return found


def shared_out(runs: Sequence[FoundRun], found: Sequence[Home]) -> list[FoundRun]:
    """Return the runs with their checkpoints.

    Checkpoints belong to the run whose files lie nearest. Of several that are as near they belong
    to the one whose name is in their path; where no name is, nobody can tell, and all have them:
    jobs that go on from each other do.
    """
    names = [_names(run) for run in runs] if found else []
    below = _by_place(runs) if found else {}
    owned: list[dict[Path, bool]] = [{} for _ in runs]
    for home in found:
        parts = home.path.parts
        depth, nearest = (1, range(len(runs))) if home.given else _nearest(below, home)
        common = set.intersection(*(names[at] for at in nearest)) if len(nearest) > 1 else set()
        called = [at for at in nearest if (names[at] - common) & set(parts[depth - home.given :])]
        for at in called or (nearest if not home.given or len(nearest) == 1 else ()):
            owned[at][home.path] = at in called or _holds(runs[at], home.path)
    return [
        replace(
            run,
            checkpoints=tuple(
                path for path, sure in mine.items() if sure or not any(mine.values())
            ),
        )
        for run, mine in zip(runs, owned, strict=True)
    ]


def _holds(run: FoundRun, home: Path) -> bool:
    """Tell whether a directory lies in that of a run."""
    return run.directory == home or run.directory in home.parents


def _names(run: FoundRun) -> set[str]:
    """Return what a run may be called where its checkpoints lie."""
    stems = {
        stem(file.path) for file in run.files if file.format is not None and file.format.anchor
    }
    titles = {file.title for file in run.files}
    return {
        name
        for name in {run.name, run.directory.name, *stems, *titles}
        if name and not naming.says_nothing(name)
    }


def _by_place(runs: Sequence[FoundRun]) -> dict[tuple[str, ...], list[int]]:
    """Return for every directory, as the parts of its path, the runs that have files at or below
    it.
    """
    below: dict[tuple[str, ...], list[int]] = {}
    for at, run in enumerate(runs):
        places = {run.directory.parts, *(file.path.parts[:-1] for file in run.files)}
        for place in {parts[:depth] for parts in places for depth in range(1, len(parts) + 1)}:
            below.setdefault(place, []).append(at)
    return below


def _nearest(
    below: Mapping[tuple[str, ...], Sequence[int]], home: Home
) -> tuple[int, Sequence[int]]:
    """Return the runs whose files lie nearest, and how many parts of its path that place has; none
    found elsewhere.
    """
    parts = home.path.parts
    for depth in range(len(parts), min(len(parts), len(home.top.parts)) - 1, -1):
        if parts[:depth] in below:
            return depth, below[parts[:depth]]
    return 0, below.get(home.top.parts, ())

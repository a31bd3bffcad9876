"""What a run is known by, however it is called: names change when others like it appear."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.patterns import pattern
from verl_tui.records import SourceStatus, digest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from verl_tui.runs.run import Run

_WANDB = pattern(
    r"/(?:offline-)?run-(?P<start>\d{8}_\d{6})-(?P<id>[^/]+)/|/run-(?P<log>[^/]+)\.wandb$"
)
"""Paths of what W&B keeps of a run; its directory may have been renamed."""


def run_id(run: Run) -> str:
    """Return the id of a run: W&B's, of its first start, else one made of where its log lies and
    what that begins with.
    """
    return id_of([state.status for state in run.sources.values()], run.name)


def id_of(sources: Iterable[SourceStatus], name: str) -> str:
    """Return the id of a run with these sources, see `run_id`.

    Args:
        sources: The states of its sources, of which more may be found later.
        name: Its name, by which a server knows it.
    """
    known = list(sources)
    starts = [found for one in known if (found := _WANDB.search(one.path))]
    if starts:
        return min((one["start"] or "~", one["id"] or one["log"]) for one in starts)[1]
    first = min(known, key=_age, default=None)
    if first is None or not first.origin:
        path = first.path if first is not None else ""
        return digest(path, "" if path.startswith("/") else name)
    return first.origin


def _age(source: SourceStatus) -> tuple[bool, bool, int, str]:
    """Return what sorts sources by when they mostly appear: a console, then what a trainer logs."""
    return not source.origin, source.format != "console", -source.rank, source.path

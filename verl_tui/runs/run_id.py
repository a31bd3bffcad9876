"""What a run is known by, however it is called: names change when others like it appear."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.patterns import pattern
from verl_tui.records import digest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from verl_tui.records import SourceStatus
    from verl_tui.runs.run import Run

_WANDB = pattern(
    r"/(?:offline-)?run-(?P<start>\d{8}_\d{6})-(?P<id>[^/]+)/|/run-(?P<log>[^/]+)\.wandb$"
)
"""Paths of what W&B keeps of a run; its directory may have been renamed."""


def run_id(run: Run) -> str:
    """Return the id of a run: W&B's, of its first start, else one made of where its log lies and
    what that begins with; of what only a server has, of its name there.
    """
    sources = [state.status for state in run.sources.values()]
    started = min(_wandb_starts(sources), default=None)
    if started is not None:
        return started[1]
    first = min(sources, key=_age, default=None)
    if first is not None and first.origin:
        return first.origin
    path = first.path if first is not None else ""
    return digest(path, "" if path.startswith("/") else run.name)


def _wandb_starts(sources: Iterable[SourceStatus]) -> Iterator[tuple[str, str]]:
    """Yield times and ids of the starts that W&B has kept; those of unknown time sort last."""
    for source in sources:
        if found := _WANDB.search(source.path):
            yield found["start"] or "~", found["id"] or found["log"]


def _age(source: SourceStatus) -> tuple[bool, bool, int, str]:
    """Return what sorts sources by when they mostly appear: a console, then what a trainer logs."""
    return not source.origin, source.format != "console", -source.rank, source.path

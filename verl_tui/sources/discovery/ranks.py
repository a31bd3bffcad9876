"""Recognise logs of several processes of one training: ranks, torchrun's workers, Ray's jobs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.patterns import pattern

if TYPE_CHECKING:
    from pathlib import Path

_RANK = pattern(
    r"(?:(?<=[^A-Za-z])|^)(?:local|global|node)?[._-]?rank[._-]?(\d{1,5})(?!\d)",
    re.IGNORECASE,
)
_ATTEMPT = pattern(r"attempt_\d+")
_STREAMS = ("stdout.log", "stderr.log")
"""torchrun's `--log-dir`: `{run id}/attempt_0/{local rank}/stdout.log`
(torch/distributed/elastic/multiprocessing).
"""
_WORKER = pattern(r"worker-[0-9a-f]{20,}-(?P<job>[0-9a-f]{8})-\d+\.(?:out|err)")
"""Ray's, in `/tmp/ray/session_latest/logs` (ray/_private/node.py); a worker without a job has
`ffffffff`.
"""
_RAYS_OWN = pattern(
    r"(?:raylet|gcs_server|monitor|log_monitor|dashboard|runtime_env|agent|ray_client|debug_state"
    r"|io-worker"
    r"|python-core|old|export|events?).*"
)


class Member(NamedTuple):
    """A log of one process among several."""

    log: str
    """Path that the logs of all of them have in common."""
    rank: int
    """The log of rank 0 usually holds most."""


def member(path: Path) -> Member | None:
    """Return the training and the rank of a process's log, None for the only log of a training."""
    return _of_torchrun(path) or _of_ray_job(path) or _of_named_rank(path)


def _of_torchrun(path: Path) -> Member | None:
    parts = path.parts
    if path.name not in _STREAMS or len(parts) < 4 or not parts[-2].isdecimal():
        return None
    if not _ATTEMPT.fullmatch(parts[-3]):
        return None
    return Member(str(path.parents[2]), int(parts[-2]))


def _of_ray_job(path: Path) -> Member | None:
    if path.name.startswith("job-driver-") and path.parent.name == "logs":
        return Member(str(path.parent), 0)
    worker = _WORKER.fullmatch(path.name)
    if worker is None or worker["job"] == "f" * 8:
        return None
    # The first process of a job is its driver; the names do not show which one that is.
    return Member(str(path.parent), 1)


def _of_named_rank(path: Path) -> Member | None:
    """Return the rank in the name of a file or of its directory."""
    if found := _RANK.search(path.name):
        log = path.parent / _without_rank(found)
        return Member(str(log.with_suffix("")), int(found[1]))
    found = _RANK.search(path.parent.name)
    if found:
        log = path.parent.parent / _without_rank(found) / path.name
        return Member(str(log.with_suffix("")), int(found[1]))
    return None


def _without_rank(found: re.Match[str]) -> str:
    return found.string[: found.start()] + "#" + found.string[found.end() :]


def is_of_ray(path: Path) -> bool:
    """True if a file is Ray's own bookkeeping beside the logs of its workers."""
    return (
        path.parent.name == "logs"
        and "session_" in path.parent.parent.name
        and bool(_RAYS_OWN.match(path.name))
    )

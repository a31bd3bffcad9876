"""Which logs are those of several processes of one training: of ranks, of torchrun's workers, of
one session of Ray.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

_RANK = re.compile(
    r"(?:(?<=[^A-Za-z])|^)(?:local|global|node)?[._-]?rank[._-]?(\d{1,5})(?!\d)", re.IGNORECASE
)
_ATTEMPT = re.compile(r"attempt_\d+")
_STREAMS = ("stdout.log", "stderr.log")
"""torchrun's `--log-dir`: `{run id}/attempt_0/{local rank}/stdout.log`
(torch/distributed/elastic/multiprocessing).
"""
_WORKER = re.compile(r"worker-[0-9a-f]{20,}-(?P<job>[0-9a-f]{8})-\d+\.(?:out|err)")
"""Ray's, in `/tmp/ray/session_latest/logs` (ray/_private/node.py); a worker without a job has
`ffffffff`.
"""
_RAYS_OWN = re.compile(
    r"(?:raylet|gcs_server|monitor|log_monitor|dashboard|runtime_env|agent|ray_client|debug_state|io-worker"
    r"|python-core|old|export|events?).*"
)


class Member(NamedTuple):
    """A log of one process among several."""

    log: str
    """What the logs of all of them have in common."""
    rank: int
    """0 is the one that tells most."""


def member(path: Path) -> Member | None:
    """Return of which training's process a log is, None where it is the only one as far as its name
    tells.
    """
    parts = path.parts
    if (
        path.name in _STREAMS
        and len(parts) > 3
        and _ATTEMPT.fullmatch(parts[-3])
        and parts[-2].isdecimal()
    ):
        return Member(str(path.parents[2]), int(parts[-2]))
    if worker := _WORKER.fullmatch(path.name):
        # The first process of a job runs what drives it; no name tells which that is.
        return Member(str(path.parent), 1) if worker["job"] != "f" * 8 else None
    if path.name.startswith("job-driver-") and path.parent.name == "logs":
        return Member(str(path.parent), 0)
    for at in (-1, -2):
        if len(parts) >= -at and (found := _RANK.search(parts[at])) is not None:
            name = parts[at][: found.start()] + "#" + parts[at][found.end() :]
            log = path.parent / name if at == -1 else path.parent.parent / name / path.name
            return Member(str(log.with_suffix("")), int(found[1]))
    return None


def is_of_ray(path: Path) -> bool:
    """Tell whether a file is Ray's own bookkeeping in the folder where it keeps the logs of its
    workers.
    """
    return (
        path.parent.name == "logs"
        and "session_" in path.parent.parent.name
        and bool(_RAYS_OWN.match(path.name))
    )

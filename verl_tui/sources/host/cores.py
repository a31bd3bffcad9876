"""Find how many cores this process may use."""

from __future__ import annotations

import os
from pathlib import Path

_QUOTA = Path("/sys/fs/cgroup/cpu.max")
"""Processor time that a container may take in a period, both in microseconds (kernel.org, Control
Group v2).
"""


def usable_cores(quota: Path = _QUOTA) -> int:
    """Return the number of cores this process may use, at least 1.

    Args:
        quota: The file with what its container may take.
    """
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        cores = os.cpu_count() or 1
    try:
        most, period = map(int, quota.read_text().split())
    except (OSError, ValueError):  # no container, or `max`: no limit
        return cores
    return max(1, min(cores, most // max(1, period)))

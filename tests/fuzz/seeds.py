"""Which seeds are tried, and how far: few and not far, or as the environment says.

`VERL_TUI_SEEDS=FIRST:STOP` names other seeds, `VERL_TUI_STEPS` how many steps a walk has.
"""

from __future__ import annotations

import os


def seeds(stop: int, first: int = 0) -> range:
    """Return the seeds that a call of all tests has time for, or those that are asked for."""
    asked = os.environ.get("VERL_TUI_SEEDS")
    return range(*map(int, asked.split(":"))) if asked else range(first, stop)


def steps(few: int) -> int:
    """Return the length of a walk."""
    return int(os.environ.get("VERL_TUI_STEPS", few))

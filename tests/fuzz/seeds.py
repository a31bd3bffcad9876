"""Which seeds are tried: few, or those that `VERL_TUI_SEEDS=FIRST:STOP` names."""

from __future__ import annotations

import os


def seeds(few: int) -> range:
    """Return as many seeds as a call of all tests has time for, or those that are asked for."""
    asked = os.environ.get("VERL_TUI_SEEDS")
    return range(*map(int, asked.split(":"))) if asked else range(few)

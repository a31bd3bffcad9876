"""Following runs without a screen, and running a command when one goes wrong or does better than
before.
"""

from verl_tui.guard.watcher import (
    BREAKERS,
    QUIET,
    TRIPPED,
    Guard,
    Orders,
    finding_facts,
    follow,
    limited,
)

__all__ = [
    "BREAKERS",
    "QUIET",
    "TRIPPED",
    "Guard",
    "Orders",
    "finding_facts",
    "follow",
    "limited",
]

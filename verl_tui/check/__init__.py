"""One look at runs without a screen: as data for programs, as a note for people, as an exit code
for cron.
"""

from verl_tui.check.data import VERSION, exit_code, is_readable, report
from verl_tui.check.gate import CRITICAL, HEALTHY, NOTHING_READABLE, WARNING

__all__ = [
    "CRITICAL",
    "HEALTHY",
    "NOTHING_READABLE",
    "VERSION",
    "WARNING",
    "exit_code",
    "is_readable",
    "report",
]

"""Exit codes of `check`."""

HEALTHY, WARNING, CRITICAL, NOTHING_READABLE = 0, 1, 2, 3

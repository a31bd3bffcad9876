"""Commands that the guard starts, and the lines that it writes about them."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, TypeAlias

from verl_tui.runs.run_id import run_id

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from verl_tui.runs.run import Run

EventLine = dict[str, Any]
"""One line of output: `event` is its kind, `time` its time, `run` and `run_id` whose it is."""


Process: TypeAlias = "subprocess.Popen[bytes]"
Start: TypeAlias = "Callable[[Sequence[str], Mapping[str, str]], Process]"
"""Starts a command with additional environment variables."""


def start(command: Sequence[str], facts: Mapping[str, str]) -> Process:
    """Start a command with the facts in its environment; its output goes to standard error."""
    # The user's own words are handed on as they are, through no shell.
    return subprocess.Popen(  # noqa: S603 - that is what a guard is for
        list(command),
        env={**os.environ, **facts},
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr.fileno(),
    )


def begun(
    run: Run,
    now: float,
    argv: Sequence[str],
    facts: Mapping[str, str],
    start: Start | None,
) -> tuple[Process | None, EventLine]:
    """Start a command; return it, and the line that says so, or why it cannot be started.

    Args:
        run: The run that it is for.
        now: Seconds since the epoch.
        argv: Program and arguments.
        facts: Additional environment variables.
        start: Starts it; None to say only what would be run.
    """
    process = None
    if start is not None:
        try:
            process = start(argv, facts)
        except OSError as error:
            why = f"{argv[0]}: {(error.strerror or '').lower()}"
            return None, event("problem", now, run, message=why)
    pid = None if process is None else process.pid
    dry = start is None
    return process, event("command", now, run, argv=list(argv), pid=pid, dry_run=dry)


def variables(facts: Mapping[str, object]) -> dict[str, str]:
    """Return facts as environment variables `VERL_TUI_…`; unknown ones are empty."""
    texts = {}
    for name, value in facts.items():
        text = "" if value is None else str(value)
        texts[f"VERL_TUI_{name}"] = text.replace("\0", "")
    return texts


def event(kind: str, now: float, run: Run, **more: object) -> EventLine:
    """Return one line of output."""
    time = datetime.fromtimestamp(now, timezone.utc).isoformat(timespec="milliseconds")
    return {"time": time, "event": kind, "run": run.name, "run_id": run_id(run), **more}

"""`verl-tui replay`: a recorded run played as if live."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from verl_tui.commands.shared import (
    Options,
    need_terminal,
    print_message,
)
from verl_tui.given_files import NothingError, UsageError

if TYPE_CHECKING:
    from verl_tui.replay import Recording

HELP = """
A recorded run played as if live: pause, step, seek.

--speed FACTOR  speed factor (the whole run in a few minutes, if not given)
--from STEP    begin where the run was at this step
--until STEP   pause at this step
--paused       start paused
PATH...        log, directory or quoted glob
--config FILE
--ascii
--no-mouse

for example:
    verl-tui replay logs/run_7 --speed 20
    verl-tui replay logs/run_7 --from 100 --paused

Times are those that the log states, else estimated from its progress bar or its step timers, else
one second per step; the first line says which. Runs that overlapped in time are played at their
true times, others each from its own start. All records are kept in memory. Keys: press ?, or see
the last row.

exit codes: 0 done, 3 nothing readable or no terminal
"""


def run(options: Options) -> int:
    """Play until the user leaves; return the exit code."""
    paths, config = options.paths, options.settings
    need_terminal()
    from verl_tui.replay import Playback, Recording, usual_speed

    shown = sys.stderr.isatty()
    recording = Recording.read(paths, _show if shown else None)
    if shown:
        _show(0, 0)
    print_message(*recording.discovery.problems, *recording.discovery.pending)
    if recording.empty:
        why = "nothing readable"
        if recording.runs:
            why = "no step in " + ", ".join(recording.runs)
        raise NothingError(f"nothing to replay: {why}")
    at = _moment(recording, vars(options)["from"])
    until = _moment(recording, options.until)
    from verl_tui.tui import replay

    return replay(
        Playback(
            recording,
            speed=options.speed or usual_speed(recording),
            at=at,
            until=until,
            paused=options.paused,
        ),
        config,
    )


def _show(done: int, size: int) -> None:
    """Show how much has been read, on a line that is removed at the end."""
    share, size_mb = done / max(1, size), size / 1e6
    words = f"verl-tui: reading, {share:.0%} of {size_mb:,.0f} MB; ctrl+c leaves"
    sys.stderr.write("\r\x1b[K" + words * (done < size))
    sys.stderr.flush()


def _moment(recording: Recording, step: int | None) -> float | None:
    """Return when a step was reached, None where none is given."""
    if step is None:
        return None
    moment = recording.when(step)
    if moment is None:
        raise UsageError(
            f"no run comes to step {step:,}: the last is {recording.last_step:,}"
        )
    return moment

"""The option that names the run that others are compared with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.commands.arguments import CommandError
from verl_tui.commands.output import EXIT_NOTHING, print_message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.commands.arguments import CommandParser
    from verl_tui.monitor import Monitor
    from verl_tui.runs.run import Run


def baseline_option(parser: CommandParser) -> None:
    """Add the option."""
    help = (
        "run that the others are compared with: its name, a part of it, or its path (default: the "
        "first run)"
    )
    parser.add_argument("--baseline", metavar="RUN", help=help)


def baseline_first(
    monitor: Monitor, named: str | None, now: float, purpose: str = "compare"
) -> Sequence[Run]:
    """Return the runs that contain a training, the baseline first; others are left out with a
    message.

    Args:
        monitor: Has read.
        named: The baseline, None for the first run with numbers.
        now: Seconds since the epoch.
        purpose: What runs are needed for, named in the error if there are none.

    Raises:
        CommandError: No run has numbers, or none has that name.
    """
    from verl_tui.runs.views.state import State, state

    found = list(monitor.runs.values())
    runs = [
        run for run in found if run.keys or state(run, now) is not State.NO_TRAINING
    ]
    left = [run.name for run in found if run not in runs]
    if left:
        print_message(f"left out, as there is no training in it: {', '.join(left)}")
    if not any(run.keys for run in runs):
        raise CommandError(f"no run with numbers to {purpose}", EXIT_NOTHING)
    first = _baseline(runs, named)
    return sorted(runs, key=lambda run: run is not first)


def _baseline(runs: Sequence[Run], named: str | None) -> Run:
    """Return the run that the user named, else the first one with numbers."""
    from verl_tui.comparison.run_lookup import UnknownRunError, find_run

    if named is None:
        return next(run for run in runs if run.keys)
    try:
        return find_run(runs, named)
    except UnknownRunError as error:
        raise CommandError(f"--baseline: {error}") from error

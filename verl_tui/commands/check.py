"""`verl-tui check`: one look without a screen."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from verl_tui.commands.shared import (
    Options,
    close_stdout,
    colour,
    notifier_for,
    print_message,
    unwritten,
)
from verl_tui.given_files import UsageError, is_there

if TYPE_CHECKING:
    from verl_tui.comparison.differences import Against
    from verl_tui.monitor import Monitor
    from verl_tui.notify.notifier import Notifier

HELP = """
Report once, without a screen; exits 0 healthy, 1 warning, 2 critical, 3 nothing readable.

--consequences   also write out the consequences of each finding
-v, --verbose    also name the rules that are not applicable or not checked yet, and say why
--json
--best-by METRIC  metric that picks the best checkpoint: an indicator or the log's own key, with
                 :min or :max (default: reward)
--against RUN    compare the runs with this one, a name or a path: exits 2 if a figure is worse than
                 its band, 1 if one is outside its band in another way
--band FIGURE=SHARE... with --against  width of a figure's band on either side, such as
                 final_reward=5%, throughput=20% or step_time=off; may be repeated
--strict         also exit with 3 where a run has no verdict, and none is critical: for gates in CI
--notify         send what was found (see `verl-tui notify --help`); with --state, what is new
--state FILE with --notify  file that keeps what was sent, so that the next check sends only what
                 changed
PATH...
--config FILE

for example:
    verl-tui check logs/run_7
    verl-tui check 'logs/run_*' --json | jq .runs[0].state

exit codes: 0 healthy, 1 warning, 2 critical, 3 nothing readable, or with --strict no verdict
"""


def run(options: Options) -> int:
    """Write the report; return the exit code."""
    from verl_tui.check.data import exit_code, report
    from verl_tui.runs.views.checkpoints import BestBy

    against = options.against
    widths = {} if against is None else _widths(options.band or ())
    notifier = _notifier(options)
    if against is not None and is_there(against):
        options.paths.append(against)  # it need not be among the others
    monitor = options.load()
    by = BestBy.of(options.best_by)
    held = None if against is None else _held(monitor, against, widths)
    found = report(monitor, options.now, by, held)
    text = _written(found, monitor, options)
    _report_missing(found, by.metric, strict=options.strict)
    try:
        print(text, end="", flush=True)
    except BrokenPipeError:
        # `check … | head` has seen enough; the exit code stays that of the health
        close_stdout()
    finally:
        if notifier:  # also where a full disk takes no report
            _notify(notifier, monitor, options)
    return exit_code(found, strict=options.strict)


def _written(found: Mapping[str, Any], monitor: Monitor, options: Options) -> str:
    if options.json:
        return json.dumps(found, indent=2, allow_nan=False) + "\n"
    from verl_tui.check.note import note_text

    return note_text(
        found,
        monitor,
        options.now,
        width=shutil.get_terminal_size().columns if sys.stdout.isatty() else None,
        colour=colour(),
        unfolded=options.consequences,
        verbose=options.verbose,
    )


def _widths(bands: Sequence[str]) -> Mapping[str, float | None]:
    """Return the bands of all figures: the defaults, except those that the user set."""
    from verl_tui.comparison.differences import WIDTHS

    widths = dict(WIDTHS)
    for text in bands:
        figure, _, wide = text.partition("=")
        if figure not in WIDTHS:
            raise UsageError(f"--band: {figure} is none of {', '.join(WIDTHS)}")
        share = re.fullmatch(r"(\d*\.?\d+)(%?)", wide)
        if wide == "off":
            del widths[figure]
        elif share:
            widths[figure] = float(share[1]) / (100 if share[2] else 1)
        else:
            raise UsageError(f"--band: {text} has no share such as 5% or 0.05, nor off")
    return widths


def _held(
    monitor: Monitor, named: str, widths: Mapping[str, float | None]
) -> Mapping[str, Against]:
    """Return the runs compared with the baseline."""
    from verl_tui.comparison.differences import hold
    from verl_tui.runs.run_id import all_meant

    runs = [*monitor.runs.values()]
    baseline = all_meant([run for run in runs if run.keys], named)
    # what lies beside a baseline is not held against it
    meant = (*baseline, *all_meant(runs, named))
    chosen = [run for run in runs if run not in meant]
    if not chosen:
        raise UsageError(f"--against {named}: it is all there is, no run is left")
    return {run.name: hold(run, baseline, monitor.guide, widths) for run in chosen}


def _notifier(options: Options) -> Notifier | None:
    """Return the notifier if notifications were requested, before anything is read."""
    notifier = notifier_for(options.settings) if options.notify else None
    if notifier and options.state is not None:
        notifier.read_state(options.state)
    return notifier


def _notify(notifier: Notifier, monitor: Monitor, options: Options) -> None:
    """Send the notifications that are due; problems are reported, and do not change the exit
    code.
    """
    notifier.send_changes(monitor, options.now)
    state: Path | None = options.state
    # With a state file, the next check sums up the messages that were held back.
    print_message(*notifier.close(keeps_held=state is not None))
    try:
        if state:
            notifier.write_state(state)
    except OSError as error:
        print_message(f"{unwritten(error, state)}; the next check sends the same again")


def _report_missing(found: Mapping[str, Any], best_by: str, *, strict: bool) -> None:
    """Say what the exit code alone does not."""
    from verl_tui.check.data import is_readable

    runs = found["runs"]
    if best_by != "reward" and {run["best"] is None for run in runs} == {True}:
        print_message(f"--best-by {best_by}: no run logs it")
    unjudged = ", ".join(run["name"] for run in runs if run["verdict"] is None)
    if unjudged and not is_readable(found):
        print_message(f"nothing readable so far in {unjudged}")
    elif unjudged and strict:
        print_message(f"--strict: no verdict on {unjudged}")

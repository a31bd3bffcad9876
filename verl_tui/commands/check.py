"""`verl-tui check`: one look without a screen."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from verl_tui.commands.arguments import CommandError
from verl_tui.commands.notifying import NO_ADDRESS, notifier_for
from verl_tui.commands.options import (
    config_option,
    configuration,
    paths_argument,
    paths_of,
)
from verl_tui.commands.output import (
    close_stdout,
    colour,
    print_message,
    print_messages,
)
from verl_tui.given_files import is_there

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from verl_tui.commands.arguments import CommandParser
    from verl_tui.comparison.bands import Against, Width
    from verl_tui.config import Config
    from verl_tui.monitor import Monitor
    from verl_tui.notify.notifier import Notifier
    from verl_tui.runs.run import Run

NAME = "check"
HELP = "report once, without a screen; exits 0 healthy, 1 warning, 2 critical, 3 nothing readable"
EXAMPLES = (
    "verl-tui check logs/run_7",
    "verl-tui check 'logs/run_*' --json | jq .runs[0].state",
)
EXITS = (
    "0 healthy, 1 warning, 2 critical, 3 nothing readable, or with --strict no verdict"
)


def options(parser: CommandParser) -> None:
    """Add its options."""
    parser.flag(
        "--consequences", help="also write out the consequences of each finding"
    )
    parser.flag(
        "-v",
        "--verbose",
        help="also name the rules that are not applicable or not judged yet, and say why",
    )
    parser.flag("--json", help="write JSON for programs")
    by = (
        "metric that picks the best checkpoint: an indicator or the log's own key, with :min or "
        ":max (default: reward)"
    )
    parser.add_argument("--best-by", metavar="METRIC", default="reward", help=by)
    against = (
        "compare the runs with this one, a name or a path: exits 2 if a figure is worse than its "
        "band, 1 if one is outside its band in another way"
    )
    parser.add_argument("--against", metavar="RUN", help=against)
    band = (
        "width of a figure's band on either side, such as final_reward=5%%, throughput=20%% or "
        "step_time=off; may be repeated"
    )
    parser.add_argument(
        "--band", metavar="FIGURE=SHARE", action="append", type=_band, help=band
    )
    strict = "also exit with 3 where a run has no verdict, and none is critical: for gates in CI"
    parser.flag("--strict", help=strict)
    notify = (
        "send what was found (see `verl-tui notify --help`); with --state, what is new"
    )
    parser.flag("--notify", help=notify)
    meaning = (
        "file that keeps what was sent, so that the next check sends only what changed"
    )
    parser.add_argument("--state", type=Path, metavar="FILE", help=meaning)
    paths_argument(parser)
    config_option(parser)


def _band(text: str) -> tuple[str, float | None]:
    """Return a figure and the share of its band; None for a figure that is not to be compared."""
    import argparse

    from verl_tui.comparison.bands import WIDTHS

    figure, _, wide = text.partition("=")
    if figure not in WIDTHS:
        raise argparse.ArgumentTypeError(f"{figure} is none of {', '.join(WIDTHS)}")
    if wide == "off":
        return figure, None
    try:
        found = float(wide.removesuffix("%")) / (100 if wide.endswith("%") else 1)
    except ValueError:
        found = -1.0
    if not 0 <= found < float("inf"):
        raise argparse.ArgumentTypeError(
            f"{text} has no share such as 5% or 0.05, nor off"
        )
    return figure, found


def run(options: argparse.Namespace) -> int:
    """Write the report; return the exit code."""
    import json
    import shutil

    from verl_tui.check import exit_code, report
    from verl_tui.monitor import load
    from verl_tui.runs.views.checkpoints import BestBy

    now = time.time()
    paths = paths_of(options, "verl-tui check logs/run_7")
    config = configuration(options)
    notifier = _notifier(options, config)
    monitor = load(_with_baseline(paths, options.against), config, now)
    print_messages(monitor.sentences)
    by = BestBy.of(options.best_by)
    found = report(monitor, now, by, _held(monitor, options))
    if options.json:
        text = json.dumps(found, indent=2, allow_nan=False) + "\n"
    else:
        from verl_tui.check.note import note_text

        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        text = note_text(
            found,
            monitor,
            now,
            width=width,
            colour=colour(),
            unfolded=options.consequences,
            verbose=options.verbose,
        )
    code = exit_code(found, strict=options.strict)
    _report_missing(found, by.metric, strict=options.strict)
    try:
        print(text, end="", flush=True)
    except BrokenPipeError:
        # `check … | head` has seen enough; the exit code stays that of the health
        close_stdout()
    finally:
        if notifier is not None:  # also where a full disk takes no report
            _notify(notifier, monitor, options.state, now)
    return code


def _notifier(options: argparse.Namespace, config: Config) -> Notifier | None:
    """Return the notifier if notifications were requested, before anything is read."""
    if not options.notify:
        if options.state is not None:
            raise CommandError("--state keeps what --notify has sent")
        return None
    from verl_tui.notify.state_file import StateFileError, read_state

    notifier = notifier_for(config)
    if notifier is None:
        raise CommandError(NO_ADDRESS)
    try:
        if options.state is not None:
            read_state(options.state, notifier)
    except StateFileError as error:
        raise CommandError(str(error)) from error
    return notifier


def _notify(
    notifier: Notifier, monitor: Monitor, state: Path | None, now: float
) -> None:
    """Send the notifications that are due; problems are reported, and do not change the exit
    code.
    """
    from verl_tui.notify.state_file import write_state

    notifier.look(monitor, now)
    # With a state file, the next check sums up the messages that were held back.
    print_messages(notifier.close(keeps_held=state is not None))
    if state is None:
        return
    try:
        write_state(state, notifier)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        print_message(f"{state}: {why}; the next check sends the same again")


def _with_baseline(paths: Sequence[str], named: str | None) -> Sequence[str]:
    """Return the paths to read: a baseline that is a path need not be among the others."""
    if named is not None and is_there(named):
        return [*paths, named]
    return paths


def _held(
    monitor: Monitor, options: argparse.Namespace
) -> Mapping[str, Against] | None:
    """Return the runs compared with the baseline; None if no baseline was named."""
    if options.against is None:
        if options.band:
            raise CommandError(
                "--band says how far a run may lie from that of --against RUN"
            )
        return None
    from verl_tui.comparison.bands import BaselineError, hold

    baseline = _baseline(monitor, options.against)
    names = {run.name for run in baseline}
    chosen = [run for run in monitor.runs.values() if run.name not in names]
    if not chosen:
        raise CommandError(
            f"--against {options.against}: it is all there is, no run is left"
        )
    widths = _widths(options.band or ())
    try:
        return {run.name: hold(run, baseline, monitor.guide, widths) for run in chosen}
    except BaselineError as error:
        raise CommandError(f"--against {options.against}: {error}") from error


def _baseline(monitor: Monitor, named: str) -> Sequence[Run]:
    """Return the runs with numbers that the user means as the baseline."""
    from verl_tui.comparison.run_lookup import UnknownRunError, all_meant

    try:
        return all_meant([run for run in monitor.runs.values() if run.keys], named)
    except UnknownRunError as error:
        raise CommandError(f"--against: {error}") from error


def _widths(bands: Sequence[tuple[str, float | None]]) -> Mapping[str, Width]:
    """Return the bands of all figures: the defaults, except those that the user set."""
    from verl_tui.comparison.bands import WIDTHS, Width

    widths = dict(WIDTHS)
    for figure, share in bands:
        widths.pop(figure, None)
        if share is not None:
            widths[figure] = Width(share, fixed=True)
    return widths


def _report_missing(found: Mapping[str, Any], best_by: str, *, strict: bool) -> None:
    runs = found["runs"]
    if best_by != "reward" and runs and not any(run["best"] for run in runs):
        print_message(f"--best-by {best_by}: no run logs it")
    _report_unjudged(found, strict=strict)


def _report_unjudged(found: Mapping[str, Any], *, strict: bool) -> None:
    from verl_tui.check import is_readable

    names = [run["name"] for run in found["runs"]]
    unjudged = [run["name"] for run in found["runs"] if run["verdict"] is None]
    if names and not is_readable(found):
        print_message(f"nothing readable so far in {', '.join(names)}")
    elif strict and unjudged:
        print_message(f"--strict: no verdict on {', '.join(unjudged)}")

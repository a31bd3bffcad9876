"""`verl-tui compare`: settings and outcomes of several runs side by side, with statistics."""

from __future__ import annotations

import io
import sys
import time
from typing import TYPE_CHECKING

from verl_tui.commands.arguments import CommandError, completes_paths, count
from verl_tui.commands.options import config_option, configuration, paths_argument, paths_of
from verl_tui.commands.output import EXIT_NOTHING, print_message, print_messages

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from verl_tui.commands.arguments import CommandParser
    from verl_tui.comparison.compare import Comparison
    from verl_tui.monitor import Monitor
    from verl_tui.runs.run import Run

NAME = "compare"
HELP = "settings and outcomes of several runs side by side, with differences and their intervals"
EXAMPLES = ("verl-tui compare 'logs/run_*'", "verl-tui compare 'logs/run_*' --baseline run_3 --md")


def options(parser: CommandParser) -> None:
    """Add its options."""
    baseline = (
        "run that the others are held against: its name, a part of it, or its path (the first run)"
    )
    completes_paths(parser.add_argument("--baseline", metavar="RUN", help=baseline))
    last = (
        "means are of the last N logged values (a tenth of those of the median run, 10 at least "
        "and 100 at most)"
    )
    parser.add_argument("--last", type=count, metavar="N", help=last)
    align = "compare each run at its end (default), all at the same step, or after the same time"
    parser.add_argument("--align", choices=("end", "step", "time"), default="end", help=align)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--md", action="store_true", help="write Markdown, for a pull request")
    form.add_argument("--csv", action="store_true", help="write a table of a row a run")
    form.add_argument("--json", action="store_true", help="write JSON for programs")
    paths_argument(parser)
    config_option(parser)


def run(options: argparse.Namespace) -> int:
    """Write the comparison; return the exit code."""
    from verl_tui.comparison.compare import compare
    from verl_tui.monitor import load
    from verl_tui.runs.views.alignment import Alignment

    now = time.time()
    monitor = load(paths_of(options, "verl-tui compare 'logs/run_*'"), configuration(options), now)
    print_messages(monitor.sentences)
    found = compare(
        _baseline_first(monitor, options.baseline, now),
        monitor.verdicts,
        monitor.guide,
        now,
        alignment=Alignment[options.align.upper()],
        last=options.last,
    )
    if isinstance(sys.stdout, io.TextIOWrapper) and (options.csv or options.json or options.md):
        sys.stdout.reconfigure(encoding="utf-8", newline="")
    print(_written(found, options), end="", flush=True)
    return 0


def _baseline_first(monitor: Monitor, named: str | None, now: float) -> Sequence[Run]:
    """Return the runs that hold a training, the baseline first; others are left out, which is
    said.
    """
    from verl_tui.runs.views.state import State, state

    found = list(monitor.runs.values())
    runs = [run for run in found if run.keys or state(run, now) is not State.NO_TRAINING]
    if left := [run.name for run in found if run not in runs]:
        print_message(f"left out, as there is no training in it: {', '.join(left)}")
    if not any(run.keys for run in runs):
        raise CommandError("no run with numbers to compare", EXIT_NOTHING)
    first = _baseline(runs, named)
    return sorted(runs, key=lambda run: run is not first)


def _baseline(runs: Sequence[Run], named: str | None) -> Run:
    """Return the run that the user named, else the first one with numbers."""
    from verl_tui.comparison.naming import UnknownRunError, meant

    if named is None:
        return next(run for run in runs if run.keys)
    try:
        return meant(runs, named)
    except UnknownRunError as error:
        raise CommandError(f"--baseline: {error}") from error


def _written(found: Comparison, options: argparse.Namespace) -> str:
    from verl_tui.comparison.as_data import as_csv, as_data
    from verl_tui.comparison.as_text import as_markdown, as_text

    if options.json:
        import json

        return json.dumps(as_data(found), indent=2, allow_nan=False) + "\n"
    if options.csv:
        return as_csv(found)
    if options.md:
        return as_markdown(found)
    import shutil

    return as_text(found, shutil.get_terminal_size().columns if sys.stdout.isatty() else None)

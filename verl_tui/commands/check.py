"""`verl-tui check`: one look without a screen."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from verl_tui.commands.options import config_option, configuration, paths_argument, paths_of
from verl_tui.commands.output import (
    EXIT_NOTHING,
    close_stdout,
    colour,
    print_message,
    print_messages,
)

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from verl_tui.commands.arguments import CommandParser

NAME = "check"
HELP = "report once, without a screen; exits 0 healthy, 1 warning, 2 critical, 3 nothing readable"


def options(parser: CommandParser) -> None:
    """Add its options."""
    parser.add_argument(
        "--consequences",
        action="store_true",
        help="also write out the consequences of each finding",
    )
    parser.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="also name the rules that are not applicable or not judged yet, and say why",
    )
    parser.add_argument("--json", action="store_true", help="write JSON for programs")
    by = (
        "metric of the best checkpoint: an indicator or the log's own key, with :min or :max "
        "(reward)"
    )
    parser.add_argument("--best-by", metavar="METRIC", default="reward", help=by)
    paths_argument(parser)
    config_option(parser)


def run(options: argparse.Namespace) -> int:
    """Write the report; return the exit code."""
    import json
    import shutil

    from verl_tui.check import exit_code, report, write_text
    from verl_tui.monitor import load
    from verl_tui.runs.views.best import BestBy

    now = time.time()
    monitor = load(paths_of(options, "verl-tui check logs/run_7"), configuration(options), now)
    print_messages(monitor.sentences)
    by = BestBy.of(options.best_by)
    found = report(monitor, now, by)
    if options.json:
        text = json.dumps(found, indent=2, allow_nan=False) + "\n"
    else:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        text = write_text(
            found,
            monitor,
            now,
            width=width,
            colour=colour(),
            unfolded=options.consequences,
            verbose=options.verbose,
        )
    code = exit_code(found)
    _report_missing(found["runs"], by.metric, code)
    try:
        print(text, end="", flush=True)
    except BrokenPipeError:
        close_stdout()  # `check … | head` has seen enough; the exit code stays that of the health
    return code


def _report_missing(runs: Sequence[Mapping[str, Any]], best_by: str, code: int) -> None:
    if best_by != "reward" and runs and not any(run["best"] for run in runs):
        print_message(f"--best-by {best_by}: no run logs it")
    if code == EXIT_NOTHING and runs:
        print_message("nothing readable so far in " + ", ".join(run["name"] for run in runs))

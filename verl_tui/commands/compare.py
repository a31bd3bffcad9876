"""`verl-tui compare`: settings and outcomes of several runs side by side, with statistics."""

from __future__ import annotations

import io
import sys
import time
from typing import TYPE_CHECKING

from verl_tui.commands.arguments import count
from verl_tui.commands.baseline import baseline_first, baseline_option
from verl_tui.commands.options import (
    config_option,
    configuration,
    paths_argument,
    paths_of,
)
from verl_tui.commands.output import print_messages

if TYPE_CHECKING:
    import argparse

    from verl_tui.commands.arguments import CommandParser
    from verl_tui.comparison.compare import Comparison

NAME = "compare"
HELP = "settings and outcomes of several runs side by side, with differences and their intervals"
EXAMPLES = (
    "verl-tui compare 'logs/run_*'",
    "verl-tui compare 'logs/run_*' --baseline run_3 --md",
)


def options(parser: CommandParser) -> None:
    """Add its options."""
    baseline_option(parser)
    last = (
        "average the last N logged values (default: a tenth of the median run's, at least 10 and "
        "at most 100)"
    )
    parser.add_argument("--last", type=count, metavar="N", help=last)
    align = "compare each run at its end (default), all at the same step, or after the same time"
    parser.add_argument(
        "--align", choices=("end", "step", "time"), default="end", help=align
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--md", action="store_true", help="write Markdown, for a pull request"
    )
    form.add_argument(
        "--csv", action="store_true", help="write a table with one row per run"
    )
    form.add_argument("--json", action="store_true", help="write JSON for programs")
    paths_argument(parser)
    config_option(parser)


def run(options: argparse.Namespace) -> int:
    """Write the comparison; return the exit code."""
    from verl_tui.comparison.compare import compare
    from verl_tui.monitor import load
    from verl_tui.runs.views.alignment import Alignment

    now = time.time()
    monitor = load(
        paths_of(options, "verl-tui compare 'logs/run_*'"), configuration(options), now
    )
    print_messages(monitor.sentences)
    found = compare(
        baseline_first(monitor, options.baseline, now),
        monitor.verdicts,
        monitor.guide,
        now,
        alignment=Alignment[options.align.upper()],
        last=options.last,
    )
    if isinstance(sys.stdout, io.TextIOWrapper) and (
        options.csv or options.json or options.md
    ):
        sys.stdout.reconfigure(encoding="utf-8", newline="")
    print(_written(found, options), end="", flush=True)
    return 0


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

    return as_text(
        found, shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    )

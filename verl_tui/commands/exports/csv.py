"""`verl-tui export csv`: every numeric metric as a table."""

from __future__ import annotations

import io
import sys
import time
from operator import attrgetter
from typing import TYPE_CHECKING

from verl_tui.commands.arguments import CommandError
from verl_tui.commands.options import (
    config_option,
    configuration,
    paths_argument,
    paths_of,
)
from verl_tui.commands.output import (
    EXIT_NOTHING,
    EXIT_OWN_ERROR,
    check_target,
    print_messages,
    print_note,
    unwritten,
)

if TYPE_CHECKING:
    import argparse

    from verl_tui.commands.arguments import CommandParser

NAME = "csv"
HELP = "every numeric metric, one row per step"
EXAMPLES = (
    "verl-tui export csv logs/run_7 -o run_7.csv",
    "verl-tui export csv logs/run_7 | head",
)


def options(parser: CommandParser) -> None:
    """Add its options."""
    parser.add_argument(
        "-o",
        "--output",
        default="-",
        metavar="FILE|-|DIR",
        help="- is standard output (default)",
    )
    paths_argument(parser)
    config_option(parser)


def _write_plainly() -> None:
    """Have standard output write tables as they are."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", newline="")


def run(options: argparse.Namespace) -> int:
    """Write the tables; return the exit code."""
    from verl_tui.exporters.csv import ExportError, export
    from verl_tui.monitor import load
    from verl_tui.runs.views.provenance import ESTIMATED, has_estimated_steps

    paths = paths_of(options, "verl-tui export csv logs/run_7 -o run_7.csv")
    check_target(options.output, replaces=True)
    monitor = load(paths, configuration(options), time.time())
    print_messages(monitor.sentences)
    runs = list(filter(attrgetter("keys"), monitor.runs.values()))
    if not runs:
        raise CommandError("no numbers to export", EXIT_NOTHING)
    _write_plainly()
    try:
        exported = export(runs, options.output)
    except ExportError as error:
        raise CommandError(str(error)) from error
    except BrokenPipeError:
        raise
    except OSError as error:
        raise unwritten(error, options.output) from error
    estimated = [
        f"{one.name}: {ESTIMATED}" for one in filter(has_estimated_steps, runs)
    ]
    for words in estimated + [f"wrote {path}" for path in exported.files]:
        print_note(words)
    print_messages(exported.problems)
    return EXIT_OWN_ERROR if exported.problems else 0

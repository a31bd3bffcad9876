"""`verl-tui export`: take the data elsewhere."""

from __future__ import annotations

import io
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from verl_tui.commands import export_prometheus
from verl_tui.commands.arguments import CommandError, completes_paths, count, seconds
from verl_tui.commands.options import config_option, configuration, paths_argument, paths_of
from verl_tui.commands.output import EXIT_NOTHING, tell, unwritten
from verl_tui.commands.until_signal import write_until_stopped

if TYPE_CHECKING:
    import argparse

    from verl_tui.commands.arguments import Parser

NAME = "export"
HELP = "take the data elsewhere"


def options(parser: Parser) -> None:
    """Add its kinds, each a command of its own."""
    csv = parser.add_command("csv", run_csv, "every numeric metric, one row a step")
    out = csv.add_argument(
        "-o", "--output", default="-", metavar="FILE|-|DIR", help="- is standard output (default)"
    )
    completes_paths(out)
    paths_argument(csv)
    config_option(csv)
    board = parser.add_command(
        "tensorboard", run_tensorboard, "TensorBoard's event files, a directory a run"
    )
    into = board.add_argument(
        "-o", "--output", required=True, metavar="DIR", help="holds a directory a run"
    )
    completes_paths(into, directories=True)
    board.add_argument(
        "--follow", action="store_true", help="go on until ctrl+c: what is new is written as well"
    )
    every = "between two writings with --follow (default: %(default)g)"
    board.add_argument("--interval", type=seconds, default=30.0, metavar="SECONDS", help=every)
    some = "samples of a step that become texts (default: %(default)d)"
    board.add_argument("--samples", type=count, default=4, metavar="N", help=some)
    paths_argument(board)
    config_option(board)
    served = "metrics for Prometheus to scrape, at a port or in a file"
    export_prometheus.options(parser.add_command("prometheus", export_prometheus.run, served))


run = None
"""Nothing: one of its kinds must be named."""


def run_csv(options: argparse.Namespace) -> int:
    """Write the tables; return the exit code."""
    from verl_tui.exporters.csv import ExportError, export
    from verl_tui.monitor import load

    monitor = load(
        paths_of(options, "verl-tui export csv logs/run_7 -o run_7.csv"),
        configuration(options),
        time.time(),
    )
    tell(monitor.sentences)
    runs = [run for run in monitor.runs.values() if run.keys]
    if not runs:
        raise CommandError("no numbers to export", EXIT_NOTHING)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", newline="")
    try:
        written = export(runs, options.output)
    except ExportError as error:
        raise CommandError(str(error)) from error
    except BrokenPipeError:
        raise
    except OSError as error:
        raise unwritten(error, options.output) from error
    for path in written:
        print(f"wrote {path}", file=sys.stderr)
    return 0


def run_tensorboard(options: argparse.Namespace) -> int:
    """Write event files; return the exit code."""
    from verl_tui.exporters.tensorboard import Board
    from verl_tui.monitor import load

    paths = paths_of(options, "verl-tui export tensorboard logs/run_* -o board")
    config = configuration(options)
    board = Board(Path(options.output), options.samples)
    try:
        if options.follow:
            return write_until_stopped(
                paths,
                config,
                lambda monitor: tell(board.write(tuple(monitor.runs.values()), time.time())),
                interval=options.interval,
            )
        monitor = load(paths, config, time.time())
        tell(monitor.sentences)
        if not any(run.keys or run.samples.places for run in monitor.runs.values()):
            raise CommandError("nothing to export", EXIT_NOTHING)
        tell(board.write(tuple(monitor.runs.values()), time.time()))
    except OSError as error:
        raise unwritten(error, options.output) from error
    return 0

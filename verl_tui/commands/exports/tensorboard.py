"""`verl-tui export tensorboard`: event files, once or as the runs go on."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from verl_tui.commands.arguments import CommandError, count, seconds
from verl_tui.commands.options import (
    config_option,
    configuration,
    paths_argument,
    paths_of,
)
from verl_tui.commands.output import (
    EXIT_NOTHING,
    EXIT_OWN_ERROR,
    print_messages,
    unwritten,
)
from verl_tui.commands.until_signal import write_until_stopped

if TYPE_CHECKING:
    import argparse

    from verl_tui.commands.arguments import CommandParser
    from verl_tui.monitor import Monitor

NAME = "tensorboard"
HELP = "TensorBoard event files, one directory per run"
EXAMPLES = (
    "verl-tui export tensorboard 'logs/run_*' -o board",
    "verl-tui export tensorboard logs/run_7 -o board --follow",
)


def options(parser: CommandParser) -> None:
    """Add its options."""
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="DIR",
        help="gets one directory per run",
    )
    parser.flag("--follow", help="keep writing what is new until ctrl+c")
    every = "time between two writes with --follow (default: %(default)g)"
    parser.add_argument(
        "--interval", type=seconds, default=30.0, metavar="SECONDS", help=every
    )
    some = "samples of a step that become texts (default: %(default)d)"
    parser.add_argument("--samples", type=count, default=4, metavar="N", help=some)
    paths_argument(parser)
    config_option(parser)


def run(options: argparse.Namespace) -> int:
    """Write event files; return the exit code."""
    from verl_tui.exporters.tensorboard import LogDirectories
    from verl_tui.monitor import load

    paths = paths_of(options, "verl-tui export tensorboard logs/run_* -o board")
    config = configuration(options)
    directories = LogDirectories(Path(options.output), options.samples)

    def write_new(monitor: Monitor) -> None:
        print_messages(directories.write(tuple(monitor.runs.values()), time.time()))

    try:
        if options.follow:
            return write_until_stopped(
                paths,
                config,
                write_new,
                interval=options.interval,
            )
        monitor = load(paths, config, time.time())
        print_messages(monitor.sentences)
        if not any(run.keys or run.samples.places for run in monitor.runs.values()):
            raise CommandError("nothing to export", EXIT_NOTHING)
        write_new(monitor)
    except OSError as error:
        raise unwritten(error, options.output) from error
    if directories.failed:
        return EXIT_OWN_ERROR
    if directories.is_empty:
        raise CommandError("nothing was written", EXIT_NOTHING)
    return 0

"""`verl-tui demo`: a simulated training, opened live."""

from __future__ import annotations

import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from verl_tui.commands.arguments import CommandError, seconds
from verl_tui.commands.options import configuration, need_terminal, screen_options
from verl_tui.commands.output import EXIT_OUTPUT, unwritten

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from verl_tui.commands.arguments import CommandParser
    from verl_tui.config import Config
    from verl_tui.demo import Simulation

NAME = "demo"
HELP = "a simulated training that writes real logs, opened live"
EXAMPLES = ("verl-tui demo", "verl-tui demo --headless --dir demo")
EXITS = "0 done, 3 no terminal"


def options(parser: CommandParser) -> None:
    """Add its options."""
    parser.add_argument("--dir", type=Path, metavar="DIR", help="keep the logs in DIR")
    parser.add_argument(
        "--pace",
        type=seconds,
        metavar="SECONDS",
        help="time between two steps (default: 1)",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=7,
        metavar="N",
        help="seed of the simulation (default: 7)",
    )
    parser.add_argument(
        "--headless", action="store_true", help="only write the logs, open nothing"
    )
    screen_options(parser)


def run(options: argparse.Namespace) -> int:
    """Simulate until the user leaves; return the exit code."""
    config = configuration(options)
    if not options.headless:
        need_terminal()
    from verl_tui.demo import PACE_S, Simulation

    with _demo_directory(options.dir) as directory:
        simulation = Simulation(directory, options.seed, time.time)
        taken = [
            run.directory.name for run in simulation.runs if run.directory.exists()
        ]
        if taken:
            raise CommandError(
                f"{directory} already holds {', '.join(taken)}: name another directory",
                EXIT_OUTPUT,
            )
        simulation.prepare()
        pace = options.pace or PACE_S
        if options.headless:
            return _demo_headless(simulation, pace)
        return _demo_live(simulation, pace, config)


def _demo_headless(simulation: Simulation, pace: float) -> int:
    import shlex
    import threading

    pattern = shlex.quote(str(simulation.directory / "run_*"))
    print(f"writing simulated runs; watch them with: verl-tui {pattern}", flush=True)
    simulation.run(threading.Event(), pace)
    return 0


def _demo_live(simulation: Simulation, pace: float, config: Config) -> int:
    import glob
    import threading

    from verl_tui.tui import watch

    stop = threading.Event()
    writer = threading.Thread(
        target=simulation.run, args=(stop, pace), name="simulation", daemon=True
    )
    writer.start()
    try:
        return watch([glob.escape(str(simulation.directory)) + "/run_*"], config)
    finally:
        stop.set()
        writer.join()


@contextmanager
def _demo_directory(wanted: Path | None) -> Iterator[Path]:
    """Make the directory for a demo: the user's, which is kept, or one that goes with the demo."""
    import tempfile

    if wanted is None:
        with tempfile.TemporaryDirectory(
            prefix="verl-tui-demo-", ignore_cleanup_errors=True
        ) as directory:
            yield Path(directory)
        return
    try:
        wanted.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritten(error, wanted) from error
    try:
        yield wanted
    finally:
        if any(wanted.iterdir()):
            print(f"the simulated runs are in {wanted}", flush=True)

"""`verl-tui demo`: a simulated training, opened live."""

from __future__ import annotations

import glob
import shlex
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from verl_tui.commands.arguments import CommandError
from verl_tui.commands.options import SCREEN, configuration, need_terminal
from verl_tui.commands.output import EXIT_OUTPUT, writing

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

HELP = "a simulated training that writes real logs, opened live"
EXAMPLES = ("verl-tui demo", "verl-tui demo --headless --dir demo")
EXITS = "0 done, 3 no terminal"
OPTIONS = f"""
--dir DIR       keep the logs in DIR
--pace SECONDS  time between two steps (default: 1)
--seed SEED     seed of the simulation (default: 7)
--headless      only write the logs, open nothing
{SCREEN}"""


def run(options: argparse.Namespace) -> int:
    """Simulate until the user leaves; return the exit code."""
    config = configuration(options)
    if not options.headless:
        need_terminal()
    from verl_tui.demo.simulation import Simulation

    with _demo_directory(options.dir) as directory:
        simulation = Simulation(directory, options.seed, time.time)
        runs = [run.directory for run in simulation.runs]
        taken = [path.name for path in runs if path.exists()]
        if taken:
            raise CommandError(
                f"{directory} already holds {', '.join(taken)}: name another directory",
                EXIT_OUTPUT,
            )
        simulation.prepare()
        stop = threading.Event()
        if options.headless:
            pattern = shlex.quote(str(directory / "run_*"))
            print(
                f"writing simulated runs; watch them with: verl-tui {pattern}",
                flush=True,
            )
            simulation.run(stop, options.pace)
            return 0
        from verl_tui.tui import watch

        writer = threading.Thread(
            target=simulation.run,
            args=(stop, options.pace),
            name="simulation",
            daemon=True,
        )
        writer.start()
        try:
            return watch([glob.escape(str(directory)) + "/run_*"], config)
        finally:
            stop.set()
            writer.join()


@contextmanager
def _demo_directory(wanted: Path | None) -> Iterator[Path]:
    """Make the directory for a demo: the user's, which is kept, or one that goes with the demo."""
    if wanted is None:
        with tempfile.TemporaryDirectory(
            prefix="verl-tui-demo-", ignore_cleanup_errors=True
        ) as directory:
            yield Path(directory)
        return
    with writing(wanted):
        wanted.mkdir(parents=True, exist_ok=True)
    try:
        yield wanted
    finally:
        if any(wanted.iterdir()):
            print(f"the simulated runs are in {wanted}", flush=True)

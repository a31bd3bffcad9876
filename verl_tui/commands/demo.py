"""`verl-tui demo`: a simulated training, opened live."""

from __future__ import annotations

import glob
import shlex
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from verl_tui.commands.shared import (
    Options,
    need_terminal,
    writing,
)
from verl_tui.given_files import OutputError

if TYPE_CHECKING:
    from verl_tui.config import Config

HELP = """
A simulated training that writes real logs, opened live.

--dir DIR       keep the logs in DIR
--pace SECONDS  time between two steps (default: 1)
--seed SEED     seed of the simulation (default: 7)
--headless      only write the logs, open nothing
--config FILE
--ascii
--no-mouse

for example:
    verl-tui demo
    verl-tui demo --headless --dir demo

exit codes: 0 done, 3 no terminal
"""


def run(options: Options) -> int:
    """Simulate until the user leaves; return the exit code."""
    config = options.settings
    if not options.headless:
        need_terminal()
    kept: Path | None = options.dir
    if not kept:
        temporary = tempfile.TemporaryDirectory(
            prefix="verl-tui-demo-", ignore_cleanup_errors=True
        )
        with temporary as directory:
            return _play(Path(directory), options, config)
    with writing(kept):
        kept.mkdir(parents=True, exist_ok=True)
    try:
        return _play(kept, options, config)
    finally:
        if any(kept.iterdir()):
            print(f"the simulated runs are in {kept}", flush=True)


def _play(directory: Path, options: Options, config: Config) -> int:
    from verl_tui.demo.grpo import Simulation

    simulation = Simulation(directory, options.seed, time.time)
    runs = [run.directory for run in simulation.runs]
    if taken := ", ".join(path.name for path in runs if path.exists()):
        raise OutputError(f"{directory} already holds {taken}: name another directory")
    simulation.prepare()
    stop = threading.Event()
    if options.headless:
        pattern = shlex.quote(str(directory / "run_*"))
        print(
            f"writing simulated runs; watch them with: verl-tui {pattern}", flush=True
        )
        simulation.run(stop, options.pace)
        return 0
    from verl_tui.tui import watch

    writer = threading.Thread(
        target=simulation.run, args=(stop, options.pace), daemon=True
    )
    writer.start()
    try:
        return watch([glob.escape(str(directory)) + "/run_*"], config)
    finally:
        stop.set()
        writer.join()

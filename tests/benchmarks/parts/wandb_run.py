"""How soon all of a long W&B run is on the screen, beside wandb's own terminal program, LEET."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from measuring import APP, Row, has_read, medians, on_screen, seconds, shows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from measuring import Effort

SIZE = (140, 45)
_METRICS = 100
_WRITER = """
import math, sys, wandb
settings = wandb.Settings(console="off", silent=True)
run = wandb.init(mode="offline", dir=sys.argv[1], project="benchmark", settings=settings)
for step in range(int(sys.argv[2])):
    run.log({f"actor/metric_{n}": math.sin(step / 50 + n) for n in range(int(sys.argv[3]))}, step=step)
run.finish()
"""


def measure(folder: Path, effort: Effort) -> Iterator[Row]:
    """An offline run that wandb itself wrote."""
    steps = effort.size(10_000, 300)
    name = f"{steps * _METRICS:,} points of an offline W&B run, all there"
    log = _offline_run(folder, steps)
    if log is None:
        yield Row(name, "skipped: wandb cannot be imported here", goal="≥ 2")
        return
    works = [lambda: on_screen([*APP, log], SIZE, has_read(steps - 1))]
    if effort.wandb is not None:
        leet: list[str | Path] = [effort.wandb, "leet", "run", log]
        works.append(lambda: on_screen(leet, SIZE, shows("Finished")))
    ours, *peer = medians(effort.tries(3), *works)
    yield Row(
        f"{name}: `wandb leet` ÷ verl-tui",
        seconds(ours),
        seconds(peer[0])
        if peer
        else "skipped: there is no command `wandb`, see --wandb",
        peer[0].wall / ours.wall if peer else None,
        "≥ 2",
    )


def _offline_run(folder: Path, steps: int) -> Path | None:
    """Return the log of a run that wandb has written, None where it is not installed."""
    command: list[str | Path] = [
        sys.executable,
        "-c",
        _WRITER,
        folder,
        str(steps),
        str(_METRICS),
    ]
    try:
        import wandb  # noqa: F401
    except ImportError:
        return None
    subprocess.run(
        command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    (log,) = folder.glob("wandb/offline-run-*/*.wandb")
    return Path(log)

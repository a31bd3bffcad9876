"""Makes the trainings of the bench, two at a time; those that are there already are kept.

python tests/producers/pathologies/make.py [NAME...]

They go to `pathologies` below `$VERL_TUI_PRODUCERS`, else below the user's cache directory, beside
TRL's environment.
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from producers.environments import QUIET, TRL, home, python_with
from producers.pathologies.training import halves

if TYPE_CHECKING:
    from collections.abc import Iterable

    from producers.pathologies.training import Half, Training

_HERE = Path(__file__).parent
_AT_ONCE = 2


def place(half: Half, training: Training) -> Path:
    """Return the directory of a training."""
    return home() / "pathologies" / half / training.name


def wanted(half: Half, training: Training) -> str:
    """Return all that a run depends on, as JSON."""
    asked = {
        "half": half,
        "task": training.task,
        "steps": training.steps,
        "seed": training.seed,
    }
    return json.dumps({**asked, "options": training.options}, sort_keys=True)


def made(half: Half, training: Training) -> bool:
    """Tell whether a training is there as it is asked for."""
    said = place(half, training) / "made.json"
    return said.exists() and said.read_text() == wanted(half, training)


def make(asked: Iterable[tuple[Half, Training]]) -> None:
    """Make trainings, two at a time."""
    python = python_with("trl-1.16", TRL)
    waiting = queue.SimpleQueue[tuple["Half", "Training"]]()
    for half in halves():
        if not (base := home() / "pathologies" / f"base-{half}").exists():
            subprocess.run(
                [python, _HERE / "words.py", half, base],
                env={**os.environ, **QUIET},
                check=True,
            )
    for one in asked:
        waiting.put(one)
    workers = [
        threading.Thread(target=_work, args=(python, waiting)) for _ in range(_AT_ONCE)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def _work(python: Path, waiting: queue.SimpleQueue[tuple[Half, Training]]) -> None:
    """Have one process train what waits, one after the other."""
    with subprocess.Popen(
        [python, _HERE / "train.py"],
        env={**os.environ, **QUIET},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as trainer:
        while not waiting.empty():
            try:
                half, training = waiting.get_nowait()
            except queue.Empty:  # another worker was faster
                break
            sys.stdout.write(
                f"{half} {training.name}: {_train(trainer, half, training)}\n"
            )
            sys.stdout.flush()


def _train(trainer: subprocess.Popen[str], half: Half, training: Training) -> str:
    """Train once; return how it ended."""
    target = place(half, training)
    words = wanted(half, training)
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    base = str(home() / "pathologies" / f"base-{half}")
    print(
        json.dumps({**json.loads(words), "out": str(target), "base": base}),
        file=trainer.stdin,
        flush=True,
    )
    said = json.loads(
        trainer.stdout.readline() or '{"status": "no word from its process"}'
    )
    _tidy(target)
    if said["status"]:
        return f"failed ({said['status']}), see {target / 'train.log'}"
    (target / "made.json").write_text(words)
    return f"{said['seconds']} s"


def _tidy(target: Path) -> None:
    """Keep what tells of a training, without its model."""
    for name in ("trainer_state.json", "completions"):
        if (target / "out" / name).exists():
            (target / "out" / name).rename(target / name)
    for events in (target / "out").glob("runs/*/events*"):
        events.rename(target / events.name)
    shutil.rmtree(target / "out", ignore_errors=True)


def main(names: list[str]) -> None:
    """Make all, or those of these names."""
    chosen = [
        (half, one)
        for half, ones in halves().items()
        for one in ones
        if not names or one.name in names
    ]
    if unknown := set(names) - {one.name for _, one in chosen}:
        sys.exit(f"no training is called {', '.join(sorted(unknown))}")
    make([one for one in chosen if not made(*one)])


if __name__ == "__main__":
    main(sys.argv[1:])

"""Logs for the benchmark: as large as asked for, and alike each time."""

from __future__ import annotations

import json
import math
import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

METRICS = (
    "critic/score/mean", "critic/score/max", "critic/score/min", "actor/ppo_kl", "actor/kl_loss", "actor/pg_loss",
    "actor/entropy", "actor/grad_norm", "actor/pg_clipfrac", "response_length/mean", "perf/throughput", "timing_s/step",
    *(f"timing_s/part_{n}" for n in range(20)), *(f"other/metric_{n}" for n in range(85)),
)  # fmt: skip
_STEP = "\0"
"""Stands for the step in a text."""
_PERIOD = 200
"""Steps after which a long log repeats its values: they are made once, as floats take time."""
_DRIVER = "\x1b[36m(TaskRunner pid=19847)\x1b[0m "
_WORKER = "\x1b[36m(WorkerDict pid=20311)\x1b[0m "
_WORDS = [
    "so",
    "the",
    "sum",
    "of",
    "both",
    "is",
    "then",
    "we",
    "see",
    "that",
    "x",
    "equals",
    "y",
    "times",
    "three",
    "plus",
    "one",
    "hence",
    "answer",
    "首先",
    "把",
    "两个",
    "数",
    "相加",
]


def values(step: int) -> dict[str, float]:
    """Return 117 metrics of a step, with the noise that real ones have."""
    chance = random.Random(step)
    return {
        key: math.sin(step / 50 + n) * 0.3 + 0.5 + chance.gauss(0.0, 0.05)
        for n, key in enumerate(METRICS)
    }


def line(step: int) -> str:
    """Return a step as verl's file logger writes it."""
    return (
        json.dumps({"step": step, "data": values(step)}, separators=(",", ":")) + "\n"
    )


def _file_text(at: int) -> str:
    return line(at).replace(f'"step":{at},', f'"step":{_STEP},', 1)


def _console_text(at: int) -> str:
    """Return a step as verl's console has it, with progress and a few words of the workers: of real
    logs without samples the half and more are step lines.
    """
    numbers = " - ".join(f"{key}:{value}" for key, value in values(at).items())
    noise = f"{_WORKER}INFO 11-23 10:00:00 [block_pool.py:378] Successfully reset prefix cache\n"
    bar = f"Training Progress:  12%|█▏        | {_STEP}/1000000 [1:23:20<12:34:56,  5.00s/it]"
    return f"{noise * 12}{_DRIVER}step:{_STEP} - {numbers}\n{_DRIVER}{bar}\n"


def _wordy_text(at: int) -> str:
    """Return the same with the prompts and responses that a reward function prints: they are 19 of
    20 bytes.
    """
    chance = random.Random(at)
    samples = []
    for _ in range(8):
        thoughts = "".join(
            f"{_DRIVER}{' '.join(chance.choices(_WORDS, k=20))}\n" for _ in range(70)
        )
        samples.append(
            f"{_DRIVER}[prompt] system\n{_DRIVER}user\n{_DRIVER}How many eggs are left?\n"
            f"{_DRIVER}[response] Let us think.\n{thoughts}{_DRIVER}\\boxed{{72}}\n"
            f"{_DRIVER}[ground_truth] 72\n{_DRIVER}[score] 1.0\n"
        )
    return "".join(samples) + _console_text(at)


def write_file_log(path: Path, megabytes: float) -> int:
    """Write a log of verl's file logger; return its last step."""
    return _write(path, megabytes, _file_text)


def write_batch_keys(path: Path, megabytes: float, *, varying: bool) -> None:
    """Write a log of verl's file logger with a score for each source of a step's data, of which
    each batch has others; or, to compare, all of them the same.
    """
    step = 0
    with path.open("w", encoding="utf-8") as file:
        while file.tell() < megabytes * 1e6:
            step += 1
            sources = (
                random.Random(step).sample(range(60), 20) if varying else range(20)
            )
            data = values(step) | {f"source/{n}/score/mean": 0.5 for n in sources}
            file.write(json.dumps({"step": step, "data": data}) + "\n")


def write_console(path: Path, megabytes: float) -> int:
    """Write a console of verl; return its last step."""
    return _write(path, megabytes, _console_text)


def write_wordy_console(path: Path, megabytes: float) -> int:
    """Write a console of verl that is mostly printed samples; return its last step."""
    return _write(path, megabytes, _wordy_text)


def _write(path: Path, megabytes: float, text: Callable[[int], str]) -> int:
    """Write steps until there are so many MB, from 1 on; return the last."""
    made: list[str] = []
    step = 0
    with path.open("wb") as file:
        while file.tell() < megabytes * 1e6:
            step += 1
            if step <= _PERIOD:
                made.append(text(step))
            file.write(made[step % _PERIOD - 1].replace(_STEP, str(step)).encode())
    return step


def write_runs(folder: Path, runs: int, steps: int, metrics: int) -> list[Path]:
    """Write a file log for each of many runs; return the paths."""
    keys = [*METRICS, *(f"more/metric_{n}" for n in range(metrics))][:metrics]
    texts = []
    for at in range(steps):
        data = {key: math.sin(at / 50 + n) * 0.3 + 0.5 for n, key in enumerate(keys)}
        texts.append(json.dumps({"step": at + 1, "data": data}) + "\n")
    paths = [folder / f"run-{number:03}" / "train.jsonl" for number in range(runs)]
    for path in paths:
        path.parent.mkdir()
        path.write_text("".join(texts), encoding="utf-8")
    return paths

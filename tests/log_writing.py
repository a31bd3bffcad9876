"""Writes logs of all formats of which parts can be read; of each step the values tell how many came
before it.
"""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from tensorboardX.event_file_writer import EventsWriter
from tensorboardX.proto.event_pb2 import Event
from tensorboardX.summary import scalar, text
from wandb_writing import history, stats, written

if TYPE_CHECKING:
    from collections.abc import Iterable

BEGAN = 1_700_000_000.0
"""Seconds since the epoch at which logs begin that state times."""


def values_of(at: int, step: int) -> dict[str, float]:
    """Return what a training logs in a row: a validation at every seventh step."""
    found = {"actor/ppo_kl": at / 7, "actor/entropy": 1 / (at + 1)}
    return found | ({"val/acc": at / 3} if step % 7 == 0 else {})


def file_log(steps: list[int]) -> bytes:
    return rows(
        {"step": step, "data": values_of(at, step)} for at, step in enumerate(steps)
    )


def rows(of: Iterable[dict[str, Any]]) -> bytes:
    return "".join(f"{json.dumps(one)}\n" for one in of).encode()


def tutorial_log(steps: list[int]) -> bytes:
    lines = []
    for at, step in enumerate(steps):
        lines.append({"scope": "system", "gpu_util": at})
        stamp = {"step": step, "timestamp": BEGAN + step}
        lines.append({"scope": "ppo", **stamp, **values_of(at, step)})
    return rows(lines)


def swift_log(steps: list[int]) -> bytes:
    return rows(
        {**values_of(at, step), "global_step/max_steps": f"{step}/5000"}
        for at, step in enumerate(steps)
    )


def llama_factory_log(steps: list[int]) -> bytes:
    return rows(
        {"current_steps": step, "total_steps": 5000, **values_of(at, step)}
        for at, step in enumerate(steps)
    )


def console_log(steps: list[int]) -> bytes:
    lines = ["(TaskRunner pid=1) Total training steps: 5000"]
    for at, step in enumerate(steps):
        figures = values_of(at, step).items()
        numbers = " - ".join(f"{key}:{value}" for key, value in figures)
        lines += ["(TaskRunner pid=1) INFO nothing to see here"] * 3
        lines.append(f"(TaskRunner pid=1) step:{step} - actor/pg_loss:{at} - {numbers}")
    return "".join(f"{line}\n" for line in lines).encode()


def csv_log(steps: list[int]) -> bytes:
    out = io.StringIO()
    keys = ["step", "time", "actor/ppo_kl", "actor/entropy", "val/acc"]
    writer = csv.DictWriter(out, keys)
    writer.writeheader()
    for at, step in enumerate(steps):
        stamp = {"step": step, "time": f"2026-11-23T10:00:{step % 60:02}Z"}
        writer.writerow({**stamp, **values_of(at, step)})
    return out.getvalue().encode()


def event_log(steps: list[int], note: str = "") -> bytes:
    """Return what tensorboardX writes: a record for each value, settings at the beginning."""
    with TemporaryDirectory() as directory:
        writer = EventsWriter(str(Path(directory) / "run"))
        summaries = [(0, text("args", json.dumps({"lr": 0.5}) + note))]
        summaries += [
            (step, scalar(key, value))
            for at, step in enumerate(steps)
            for key, value in values_of(at, step).items()
        ]
        for at, (step, summary) in enumerate(summaries):
            event = Event(wall_time=BEGAN + at / 8, step=step, summary=summary)
            writer.write_event(event)
        writer.close()
        (path,) = Path(directory).iterdir()
        return path.read_bytes()


def wandb_log(steps: list[int], trainers: int = 0) -> bytes:
    """Return a run's log; every so many steps the trainer's own, ten times W&B's, is stated."""
    records = []
    for at, step in enumerate(steps):
        numbers = {key: repr(value) for key, value in values_of(at, step).items()}
        if trainers and step % trainers == 0:
            numbers["train/global_step"] = str(10 * step)
        numbers["_timestamp"] = repr(BEGAN + step)
        records += [history(step, numbers), stats(BEGAN + step, {"cpu": "1"})]
    return written(records)

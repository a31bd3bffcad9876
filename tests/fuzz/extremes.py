"""Runs at the ends of what a log can hold: values, times, steps, names, and many of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from fuzz.worlds import FILES, NAMES, STEPS, TEXTS, TIMES, VALUES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

COUNT = 40
"""Steps of a run: enough to be judged."""


def _write(path: Path, records: Iterable[object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps(record, ensure_ascii=False) for record in records)
    path.write_bytes(
        "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass")
    )


def _row(step: int, data: Mapping[str, Any] | None = None) -> dict[str, Any]:
    usual = {"critic/score/mean": 0.5, "actor/ppo_kl": 0.01, "timing_s/step": 3.0}
    return {"step": step, "data": {**usual, **(data or {})}}


def times(folder: Path) -> None:
    """Write runs whose times no calendar has, each beside one that it has."""
    for at, time in enumerate(TIMES):
        rows = (
            {
                "scope": "ppo",
                "step": step,
                "timestamp": moment,
                "kl_div": 0.1,
                "reward_mean": 1.0,
            }
            for step in range(1, COUNT)
            for moment in (time if step % 3 else step,)
        )
        _write(folder / f"time {at}" / "verl_logs.jsonl", rows)


def values(folder: Path) -> None:
    """Write runs in which a metric is not finite throughout, or at both ends of the numbers."""
    names = (
        "critic/score/mean",
        "actor/ppo_kl",
        "actor/entropy",
        "response_length/mean",
        "loss",
    )
    for at, value in enumerate(VALUES):
        rows = (_row(step, dict.fromkeys(names, value)) for step in range(1, COUNT))
        _write(folder / f"value {at}" / "log.jsonl", rows)
    ends = (1e308, 1e-308, -1e308, 5e-324)
    rows = (
        _row(step, dict.fromkeys(names, ends[step % 4])) for step in range(1, COUNT)
    )
    _write(folder / "all ends" / "log.jsonl", rows)


def steps(folder: Path) -> None:
    """Write runs whose steps are as large, as small and as far apart as numbers are."""
    for at, step in enumerate(STEPS):
        _write(
            folder / f"step {at}" / "log.jsonl", [_row(step + n) for n in (0, 1, 2, -9)]
        )
    _write(folder / "all steps" / "log.jsonl", map(_row, STEPS))


def names(folder: Path) -> None:
    """Write a run with each hostile name of a metric, and each hostile name of a run."""
    for at, name in enumerate(NAMES):
        rows = (
            _row(step, {name: step / 7, name.upper(): 1}) for step in range(1, COUNT)
        )
        _write(folder / f"name {at}" / "log.jsonl", rows)
    for name in FILES:
        _write(folder / name / "log.jsonl", map(_row, range(1, COUNT)))


def texts(folder: Path) -> None:
    """Write runs that hold each hostile text wherever a text can stand."""
    for at, text in enumerate(TEXTS):
        place = folder / f"text {at}"
        _write(
            place / "log.jsonl",
            (_row(step, {text[:50]: 1}) for step in range(1, COUNT)),
        )
        sample = {
            "prompt": text,
            "response": text,
            "score": 1,
            "group": text,
            text[:50]: text,
        }
        samples = [{**sample, "step": step, "uid": text} for step in (1, 2)]
        _write(place / "samples.jsonl", samples)
        lines = [
            f"(TaskRunner pid={text[:30]}) step:{step} - critic/score/mean:1 - {text[:90]}:2"
            for step in range(1, COUNT)
        ]
        lines += [text, "Traceback (most recent call last):", f"ValueError: {text}"]
        data = "\n".join((f"trainer.experiment_name={text}", *lines)) + "\n"
        (place / "train.log").write_bytes(data.encode("utf-8", "surrogatepass"))
        config = place / ".hydra" / "config.yaml"
        config.parent.mkdir()
        config.write_text(
            json.dumps({"trainer": {"name": text, text[:50]: text}, "lr": 1e-6})
        )


def mixed(folder: Path) -> None:
    """Write three small runs with something of all this: enough for a quick look."""
    named = dict.fromkeys(NAMES)
    rows = (
        _row(
            step,
            {name: VALUES[(at + step) % len(VALUES)] for at, name in enumerate(named)},
        )
        for step in range(1, 15)
    )
    _write(folder / FILES[9] / "log.jsonl", rows)
    samples = (
        {"prompt": text, "response": text, "score": 1, "step": 3} for text in TEXTS
    )
    _write(folder / FILES[9] / "samples.jsonl", samples)
    lines = [
        f"step:{at} - critic/score/mean:1 - {text}:2"
        for at, text in enumerate(TEXTS, 1)
    ]
    lines += [
        "Traceback (most recent call last):",
        f"ValueError: {TEXTS[3]} {TEXTS[4]}",
    ]
    console = folder / FILES[8] / "train.log"
    console.parent.mkdir(parents=True)
    console.write_bytes("\n".join(lines).encode("utf-8", "surrogatepass"))
    odd = (
        {
            "scope": "ppo",
            "step": step,
            "timestamp": time,
            "kl_div": 0.1,
            "reward_mean": 1.0,
        }
        for step, time in zip((*STEPS, 1, 2), TIMES, strict=True)
    )
    _write(folder / FILES[4] / "verl_logs.jsonl", odd)


def metrics(folder: Path) -> None:
    """Write a run of 5,000 metrics."""
    many = {f"group {at % 17}/metric {at}": at / 7 for at in range(5000)}
    _write(
        folder / "many metrics" / "log.jsonl",
        (_row(step, many) for step in range(1, 6)),
    )


def runs(folder: Path) -> None:
    """Write 1,000 runs."""
    for at in range(1000):
        _write(folder / f"run {at}" / "log.jsonl", map(_row, range(1, 6)))


EXTREMES: dict[str, Callable[[Path], None]] = {
    one.__name__: one
    for one in (times, values, steps, names, texts, mixed, metrics, runs)
}
"""By name: what writes runs into a folder."""

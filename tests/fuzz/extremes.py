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
TRACE = "Traceback (most recent call last):"


def _write(path: Path, records: Iterable[object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps(record, ensure_ascii=False) for record in records)
    path.write_bytes(
        "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass")
    )


def _row(step: int, data: Mapping[str, Any] | None = None) -> dict[str, Any]:
    usual = {"critic/score/mean": 0.5, "actor/ppo_kl": 0.01, "timing_s/step": 3.0}
    return {"step": step, "data": {**usual, **(data or {})}}


def _dated(step: int, time: float) -> dict[str, Any]:
    figures = {"kl_div": 0.1, "reward_mean": 1.0}
    return {"scope": "ppo", "step": step, "timestamp": time, **figures}


def _console(path: Path, lines: Iterable[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("\n".join((*lines, "")).encode("utf-8", "surrogatepass"))


def times(folder: Path) -> None:
    """Write runs whose times no calendar has, each beside one that it has."""
    for at, time in enumerate(TIMES):
        rows = (_dated(step, time if step % 3 else step) for step in range(1, COUNT))
        _write(folder / f"time {at}" / "verl_logs.jsonl", rows)


def values(folder: Path) -> None:
    """Write runs in which a metric is not finite throughout, or at both ends of the numbers."""
    names = ("critic/score/mean", "actor/ppo_kl", "actor/entropy", "response_length/mean", "loss")  # fmt: skip
    ends = {f"value {at}": (value,) for at, value in enumerate(VALUES)}
    for name, of in (ends | {"all ends": (1e308, 1e-308, -1e308, 5e-324)}).items():
        rows = (_row(step, dict.fromkeys(names, of[step % len(of)])) for step in range(1, COUNT))  # fmt: skip
        _write(folder / name / "log.jsonl", rows)


def steps(folder: Path) -> None:
    """Write runs whose steps are as large, as small and as far apart as numbers are."""
    for at, step in enumerate(STEPS):
        around = [_row(step + n) for n in (0, 1, 2, -9)]
        _write(folder / f"step {at}" / "log.jsonl", around)
    _write(folder / "all steps" / "log.jsonl", map(_row, STEPS))


def names(folder: Path) -> None:
    """Write a run with each hostile name of a metric, and each hostile name of a run."""
    for at, name in enumerate(NAMES):
        rows = (_row(step, {name: step / 7, name.upper(): 1}) for step in range(1, COUNT))  # fmt: skip
        _write(folder / f"name {at}" / "log.jsonl", rows)
    for name in FILES:
        _write(folder / name / "log.jsonl", map(_row, range(1, COUNT)))


def texts(folder: Path) -> None:
    """Write runs that hold each hostile text wherever a text can stand."""
    for at, text in enumerate(TEXTS):
        place, key = folder / f"text {at}", text[:50]
        _write(place / "log.jsonl", (_row(step, {key: 1}) for step in range(1, COUNT)))
        said = {"prompt": text, "response": text, "group": text, "uid": text, key: text}
        samples = ({**said, "score": 1, "step": step} for step in (1, 2))
        _write(place / "samples.jsonl", samples)
        printed = (
            f"(TaskRunner pid={text[:30]}) step:{step} - critic/score/mean:1 - {text[:90]}:2"
            for step in range(1, COUNT)
        )
        named = f"trainer.experiment_name={text}"
        _console(place / "train.log", (named, *printed, text, TRACE, f"ValueError: {text}"))  # fmt: skip
        config = {"trainer": {"name": text, key: text}, "lr": 1e-6}
        _write(place / ".hydra" / "config.yaml", [config])


def mixed(folder: Path) -> None:
    """Write three small runs with something of all this: enough for a quick look."""
    named = dict.fromkeys(NAMES)
    rows = (
        _row(step, {name: VALUES[(at + step) % len(VALUES)] for at, name in enumerate(named)})
        for step in range(1, 15)
    )  # fmt: skip
    _write(folder / FILES[9] / "log.jsonl", rows)
    samples = ({"prompt": one, "response": one, "score": 1, "step": 3} for one in TEXTS)
    _write(folder / FILES[9] / "samples.jsonl", samples)
    printed = (f"step:{at} - critic/score/mean:1 - {one}:2" for at, one in enumerate(TEXTS, 1))  # fmt: skip
    error = f"ValueError: {TEXTS[3]} {TEXTS[4]}"
    _console(folder / FILES[8] / "train.log", (*printed, TRACE, error))
    odd = map(_dated, (*STEPS, 1, 2), TIMES)
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

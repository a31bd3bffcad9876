"""A TRL run's scalars as verl would have logged them: the same training under verl's names.

What TRL alone logs has no name of verl's and is left out (`reward_std`, `clip_ratio/low_min`, the
maxima of ratios); of what verl alone logs, only the extremes of advantages follow from TRL's
figures.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

_NAMES: Mapping[str, tuple[str, ...]] = {
    # TRL adds no KL penalty to rewards (`beta` is a term of the loss), so that verl's score and
    # reward are the same.
    "reward": ("critic/score/mean", "critic/rewards/mean"),
    "loss": ("actor/pg_loss",),
    "kl": ("actor/kl_loss",),
    "entropy": ("actor/entropy",),
    "grad_norm": ("actor/grad_norm",),
    "learning_rate": ("actor/lr",),
    "clip_ratio/region_mean": ("actor/pg_clipfrac",),
    "completions/mean_length": ("response_length/mean",),
    "completions/max_length": ("response_length/max",),
    "completions/min_length": ("response_length/min",),
    "completions/clipped_ratio": ("response_length/clip_ratio",),
    "step_time": ("timing_s/step", "perf/time_per_step"),
    "epoch": ("training/epoch",),
    "eval_reward": ("val-core/trl/reward/mean@1",),
}
"""TRL's name -> verl's."""
_WIDEST = 2.0
"""An advantage as large as a group with any spread has one, in standard deviations."""


class Row(NamedTuple):
    """One step's scalars."""

    step: int
    values: Mapping[str, float]


def history(trainer_state: Path) -> list[Mapping[str, Any]]:
    """Return the records of a `trainer_state.json` that have a reward, oldest first; the closing
    summary has none.
    """
    state = json.loads(trainer_state.read_text(encoding="utf-8"))
    return [record for record in state["log_history"] if "reward" in record]


def under_verl_names(records: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Return a TRL run's records under verl's names; a number that is None there was not finite."""
    rows, tokens = [], 0.0
    for record in records:
        figures = {
            name: math.nan if value is None else float(value)
            for name, value in record.items()
        }
        values = {"training/global_step": figures["step"]}
        for old, names in _NAMES.items():
            if old in figures:
                values |= dict.fromkeys(names, figures[old])
        values |= _components(figures) | _advantages(figures)
        if "num_tokens" in figures:
            values["perf/total_num_tokens"], tokens = (
                figures["num_tokens"] - tokens,
                figures["num_tokens"],
            )
        rows.append(Row(int(figures["step"]), values))
    return rows


def _components(figures: Mapping[str, float]) -> dict[str, float]:
    """Return the parts of the reward under the names that verl's users log them by."""
    parts = (
        name.split("/")
        for name in figures
        if name.startswith("rewards/") and name.endswith("/mean")
    )
    return {
        f"reward_extra/{part}/mean": figures[f"rewards/{part}/mean"]
        for _, part, _ in parts
    }


def _advantages(figures: Mapping[str, float]) -> dict[str, float]:
    """Return the extremes of advantages, which are 0 where no group of samples has any spread in
    its rewards.
    """
    if "frac_reward_zero_std" not in figures:
        return {}
    widest = 0.0 if figures["frac_reward_zero_std"] >= 1.0 else _WIDEST
    return {"critic/advantages/max": widest, "critic/advantages/min": -widest}


def console(rows: Sequence[Row]) -> str:
    """Return the rows as verl's console prints them through Ray."""
    return "".join(
        f"\x1b[36m(TaskRunner pid=4711)\x1b[0m step:{step} - "
        + " - ".join(f"{name}:{value!r}" for name, value in values.items())
        + "\n"
        for step, values in rows
    )


def file_logger(rows: Sequence[Row]) -> str:
    """Return the rows as verl's `FileLogger` writes them, which has null for what is not finite."""
    return "".join(
        json.dumps(
            {
                "step": step,
                "data": {name: _or_null(value) for name, value in values.items()},
            }
        )
        + "\n"
        for step, values in rows
    )


def _or_null(value: float) -> float | None:
    return value if math.isfinite(value) else None


FORMS: Mapping[str, tuple[str, Callable[[Sequence[Row]], str]]] = {
    "console": ("train.log", console),
    "file": ("experiment.jsonl", file_logger),
}
"""How verl writes its scalars -> a file's name, and its text."""


def write(rows: Sequence[Row], directory: Path, form: str) -> Path:
    """Write the rows as the one file of a run; return its directory."""
    directory.mkdir(parents=True, exist_ok=True)
    name, text = FORMS[form]
    (directory / name).write_text(text(rows), encoding="utf-8")
    return directory

"""The scalars of a training as a small file, and the same scalars as other trainers would have
written them.

An extract is JSON, one metric a line, four significant digits, `null` where the trainer logged
nothing and `"NaN"` where what it logged was not finite. Counters that say nothing of health are
left out.
"""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from scenarios import verl_names

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

Record = dict[str, float]

_LEFT_OUT = re.compile(
    r"(?:eval_)?(?:step|epoch|num_tokens|runtime|samples_per_second|steps_per_second|total_flos|train_.*|clip_ratio/(?!region_mean).*"
    r"|completions/\w*terminated\w*|(?:eval_)?rewards/.*/std)"
    r"|eval_(?:completions|clip_ratio|runtime|samples|steps|entropy|frac|kl|num).*"
)
_SETTINGS = """
learning_rate lr_scheduler_type warmup_steps beta epsilon max_grad_norm temperature loss_type
max_completion_length num_generations per_device_train_batch_size num_iterations steps_per_generation
scale_rewards logging_steps eval_steps max_steps
""".split()  # noqa: SIM905 - to be read as text


class Extract(NamedTuple):
    """The scalars of one training."""

    name: str
    settings: dict[str, Any]
    """By TRL's names."""
    records: dict[int, Record]
    """Step -> what was logged at it, by TRL's names; what was not finite is NaN."""


def extract(directory: Path, settings: dict[str, Any]) -> Extract:
    """Return the scalars of a training that was made.

    Args:
        directory: The training's, with its `trainer_state.json`.
        settings: By TRL's names; those that matter to health are kept.
    """
    records: dict[int, Record] = {}
    for row in json.loads((directory / "trainer_state.json").read_text())[
        "log_history"
    ]:
        kept = {
            key: _rounded(value)
            for key, value in row.items()
            if not _LEFT_OUT.fullmatch(key)
        }
        if kept:
            records.setdefault(row["step"], {}).update(kept)
    return Extract(
        directory.name,
        {key: settings[key] for key in _SETTINGS if key in settings},
        records,
    )


def _rounded(value: float | None) -> float:
    return (
        math.nan if value is None or not math.isfinite(value) else float(f"{value:.4g}")
    )


def write(made: Extract, path: Path) -> None:
    """Write an extract as a file."""
    keys = dict.fromkeys(key for record in made.records.values() for key in record)
    lines = [
        f'"settings": {json.dumps(made.settings)}',
        f'"step": {json.dumps(list(made.records))}',
    ]
    for key in keys:
        cells = (record.get(key) for record in made.records.values())
        lines.append(f"{json.dumps(key)}: [{', '.join(map(_cell, cells))}]")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def _cell(value: float | None) -> str:
    if value is None:
        return "null"
    return '"NaN"' if math.isnan(value) else f"{value:.4g}"


def read(path: Path) -> Extract:
    """Return the extract that a file holds."""
    columns = json.loads(path.read_text(encoding="utf-8"))
    settings = columns.pop("settings")
    steps = columns.pop("step")
    records = {
        step: {
            key: float(cells[at])
            for key, cells in columns.items()
            if cells[at] is not None
        }
        for at, step in enumerate(steps)
    }
    return Extract(path.stem, settings, records)


VERL_SETTINGS = {
    "learning_rate": "actor_rollout_ref.actor.optim.lr",
    "beta": "actor_rollout_ref.actor.kl_loss_coef",
    "epsilon": "actor_rollout_ref.actor.clip_ratio",
    "max_grad_norm": "actor_rollout_ref.actor.grad_clip",
    "temperature": "actor_rollout_ref.rollout.temperature",
    "num_generations": "actor_rollout_ref.rollout.n",
    "max_completion_length": "data.max_response_length",
    "max_steps": "trainer.total_training_steps",
    "eval_steps": "trainer.test_freq",
}
"""TRL's setting -> verl's."""


def _as_trl(made: Extract, home: Path) -> None:
    history = [{**record, "step": step} for step, record in made.records.items()]
    history = [
        {key: None if math.isnan(value) else value for key, value in one.items()}
        for one in history
    ]
    state = {
        "global_step": max(made.records),
        "max_steps": made.settings.get("max_steps"),
        "log_history": history,
    }
    (home / "trainer_state.json").write_text(json.dumps(state), encoding="utf-8")
    _write_settings(made.settings, home)


def _as_console(made: Extract, home: Path) -> None:
    verl_names.write(_rows(made), home, "console")
    _write_settings(
        {
            VERL_SETTINGS[key]: value
            for key, value in made.settings.items()
            if key in VERL_SETTINGS
        },
        home,
    )


def _as_file(made: Extract, home: Path) -> None:
    verl_names.write(_rows(made), home, "file")


def _rows(made: Extract) -> Sequence[verl_names.Row]:
    return verl_names.under_verl_names(
        {"step": step, **record} for step, record in made.records.items()
    )


def _write_settings(settings: dict[str, Any], home: Path) -> None:
    lines = "".join(f"{key}: {json.dumps(value)}\n" for key, value in settings.items())
    (home / "config.yaml").write_text(lines, encoding="utf-8")


FORMS: dict[str, Callable[[Extract, Path], None]] = {
    "TRL's scalars": _as_trl,
    "verl's console": _as_console,
    "verl's file logger": _as_file,
}
"""Who writes the scalars of an extract; verl's file logger writes no settings."""


def replay(made: Extract, form: str, home: Path) -> Path:
    """Write an extract into a new directory as a trainer would have; return the directory."""
    home.mkdir(parents=True, exist_ok=True)
    FORMS[form](made, home)
    return home

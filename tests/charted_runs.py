"""Runs with a handful of metrics, to be drawn as charts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from run_views import NOW, logged, make_run, make_view

from verl_tui.records import MetricRows

if TYPE_CHECKING:
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.runs.run import Run


VALIDATION = "val-core/gsm8k/acc/mean@1"
KEYS = (
    "actor/ppo_kl",
    "actor/pg_loss",
    "actor/entropy",
    "my/own",
    "timing_s/gen",
    VALIDATION,
)


def rich_run(steps: int = 60, **more: Any) -> Run:
    """Return a run with a handful of metrics, validation on the reward's scale among them."""
    columns = {key: [0.1 + n % 7 for n in range(steps)] for key in KEYS}
    columns[VALIDATION] = [0.1 + n % 7 / 10 for n in range(steps)]
    return make_run(steps=steps, columns=columns, **more)


def view_of(run: Run | None, **more: Any) -> View:
    """Return a view of a run with one band for every metric."""
    return make_view(*([run] if run else []), band=(0.0, 0.05), **more)


def add_step(run: Run, step: int, value: float = 0.5, time: float = NOW) -> None:
    """Have a run get a further step, logged at a time."""
    logged(run, MetricRows(("critic/score/mean",), [step], [[value]], [0], [time]))

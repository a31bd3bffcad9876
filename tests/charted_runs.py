"""Runs with a handful of metrics, to be drawn as charts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from run_views import NOW, make_run, make_view

from verl_tui.records import Batch, MetricRows, SourceStatus

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
    """Return a view of a run whose configuration wants no charts, with one band for every metric."""
    view = make_view(*([run] if run else []), **more)
    view.monitor.config = type("Config", (), {"charts": (), "targets": {}})()
    view.monitor.band = lambda *_: (0.0, 0.05)
    return view


def add_step(run: Run, step: int, value: float = 0.5, time: float = NOW) -> None:
    """Have a run get a further step, logged at a time."""
    status = SourceStatus(f"/logs/{run.name}", "verl", modified=NOW)
    run.apply(
        Batch(
            run.name,
            status,
            (MetricRows(("critic/score/mean",), [step], [[value]], [0], [time]),),
        ),
        NOW,
    )

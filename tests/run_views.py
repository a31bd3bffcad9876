"""Runs and views as panels are given them, made without files or an app."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from verl_tui.records import Batch, MetricRows, Progress, SourceStatus
from verl_tui.rendering.session.snapshot import ActionNames, View
from verl_tui.runs.run import Run
from verl_tui.runs.views.devices import DeviceHistory

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from verl_tui.health.finding import Verdict
    from verl_tui.monitor import Monitor
    from verl_tui.records import GpuReading, Record

NOW = 1_800_000_000.0
ACTIONS = ActionNames()
HOSTILE = (
    "[red]not red[/red] [/INST] [@click=app.quit]quit[/] [/",
    "数学强化学习" * 50,
    "👍🏽🚀" * 100,
    "x" * 300,
    "line\nbreak \x1b[31m \u202e \x00",
    "",
)


def make_run(
    name: str = "grpo",
    steps: int = 120,
    total: int | None = 500,
    *,
    columns: Mapping[str, Iterable[float]] | None = None,
    quiet: float = 0.0,
) -> Run:
    """Return a run with a step every 30 s, the last one `quiet` seconds ago."""
    run = Run(name)
    numbers = list(range(1, steps + 1))
    data = {
        "critic/score/mean": [1 - math.exp(-n / 60) for n in numbers],
        **(columns or {}),
    }
    times = [NOW - quiet - (steps - n) * 30.0 for n in numbers]
    values = [list(column)[:steps] for column in data.values()]
    table = MetricRows(tuple(data), numbers, values, list(range(steps)), times)
    status = SourceStatus(
        f"/logs/{name}", "verl", modified=NOW - quiet, size=100, bytes_read=45
    )
    run.apply(
        Batch(name, status, (table, Progress(steps, total)) if steps else ()), NOW
    )
    return run


def logged(run: Run, *records: Record, **status: Any) -> Run:
    """Have a source of a run bring records; return the run."""
    status = {"path": f"/logs/{run.name}", "format": "verl", "modified": NOW, **status}
    run.apply(Batch(run.name, SourceStatus(**status), records), NOW)
    return run


def make_view(
    *runs: Run,
    verdicts: Mapping[str, Verdict] | None = None,
    gpus: GpuReading | None = None,
    rules: Iterable[str] = ("kl-high", "kl-low", "reward-low"),
    band: tuple[float | None, float | None] = (None, None),
    **more: Any,
) -> View:
    """Return a view of these runs that shows the first."""
    known = [SimpleNamespace(id=rule) for rule in rules]
    guide = SimpleNamespace(rules=known, silenced=frozenset())
    monitor = SimpleNamespace(
        runs={run.name: run for run in runs},
        verdicts=dict(verdicts or {}),
        gpus=gpus,
        gpu_history=DeviceHistory(),
        guide=guide,
        config=SimpleNamespace(charts=more.pop("charts", ()), targets={}),
        band=lambda *_: band,
        problems=more.pop("problems", ()),
        passed=more.pop("passed", ()),
        waiting=more.pop("waiting", ()),
        unreached=more.pop("unreached", ()),
        loaded=lambda: 0.45,
    )
    monitor.sentences = (*monitor.problems, *monitor.waiting)
    shown = {"run": runs[0] if runs else None, "now": NOW, **more}
    return View(monitor=cast("Monitor", monitor), **shown)

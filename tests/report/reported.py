"""Reports on runs made of values, read and judged by a monitor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.config import Config
from verl_tui.monitor import Monitor
from verl_tui.records import Batch, MetricRows, Sample, Settings, SourceStatus
from verl_tui.rendering.session.notes import NoteBook
from verl_tui.report.record import Report, make_report

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NOW = 1_790_000_000.0
REWARD, KL, LENGTH = "critic/score/mean", "actor/ppo_kl", "response_length/mean"
COMMAND = "verl-tui report runs -o r.html"


def monitor_of(
    runs: Mapping[str, Mapping[str, Sequence[float]]],
    samples: Mapping[str, Sequence[Sample]] | None = None,
) -> Monitor:
    """Return a monitor that has judged runs of 30 s a step, each given as its columns."""
    monitor = Monitor(Config())
    monitor.problems = ("a: b",)
    for name, columns in runs.items():
        count = len(next(iter(columns.values())))
        times = [NOW - (count - at) * 30.0 for at in range(1, count + 1)]
        values = [list(column) for column in columns.values()]
        rows = MetricRows(
            tuple(columns), range(1, count + 1), values, range(count), times
        )
        said = Settings(
            {"actor_rollout_ref.actor.optim.lr": len(name) * 1e-6}, "console"
        )
        status = SourceStatus(name, "verl console", records=count, modified=NOW)
        own = tuple((samples or {}).get(name, ()))
        monitor.apply(Batch(name, status, (rows, said, *own)), NOW)
    monitor.judge(NOW)
    return monitor


def report_of(
    runs: Mapping[str, Mapping[str, Sequence[float]]],
    samples: Mapping[str, Sequence[Sample]] | None = None,
) -> Report:
    """Return the report on runs, the first one the baseline."""
    monitor = monitor_of(runs, samples)
    return make_report(monitor, [*monitor.runs.values()], NOW, COMMAND, NoteBook())


def rising(count: int = 60, by: float = 0.01, start: float = 0.1) -> list[float]:
    """Return values on a straight line."""
    return [start + by * at for at in range(count)]

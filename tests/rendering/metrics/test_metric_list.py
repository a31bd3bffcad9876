"""The list of metrics that the user filters and sorts."""

from __future__ import annotations

from run_views import make_run

from verl_tui.rendering.metrics.listing import MetricList

RUN = make_run(
    columns={"actor/kl": [0.1] * 120, "actor/lr": [9.0] * 120, "perf/mfu": [0.3] * 120}
)


def test_a_broken_filter_leaves_the_one_before() -> None:
    metrics = MetricList()
    metrics.type_filter("perf")
    metrics.type_filter("/(/")
    metrics.update(RUN)
    assert metrics.problem
    assert metrics.keys == ["perf/mfu"]
    metrics.type_filter("")
    assert metrics.problem == ""

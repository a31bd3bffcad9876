"""The list of metrics that the user filters and sorts."""

from __future__ import annotations

from run_views import make_run, make_view

from verl_tui.rendering.metrics.listing import MetricOrder
from verl_tui.rendering.metrics.metric_list import MetricList

RUN = make_run(
    columns={"actor/kl": [0.1] * 120, "actor/lr": [9.0] * 120, "perf/mfu": [0.3] * 120}
)


def test_a_filter_leaves_what_it_matches() -> None:
    metrics = MetricList()
    metrics.update(RUN)
    assert set(metrics.keys) == {
        "critic/score/mean",
        "actor/kl",
        "actor/lr",
        "perf/mfu",
    }
    metrics.type_filter("actor !lr")
    metrics.update(RUN)
    assert metrics.keys == ["actor/kl"]
    assert [chart.key for chart in metrics.charts(RUN)] == ["actor/kl"]
    assert metrics.charts(None) == metrics.charts(make_run("other")) == []


def test_a_broken_filter_leaves_the_one_before() -> None:
    metrics = MetricList()
    metrics.type_filter("perf")
    metrics.type_filter("/(/")
    metrics.update(RUN)
    assert metrics.problem
    assert metrics.keys == ["perf/mfu"]
    metrics.type_filter("")
    assert metrics.problem == ""


def test_sorted_by_value_without_groups() -> None:
    metrics = MetricList()
    metrics.order = MetricOrder("last")
    metrics.update(RUN)
    assert metrics.keys[0] == "actor/lr"
    assert len(metrics.groups) == 1


def test_the_reason_where_no_metric_is_listed() -> None:
    metrics = MetricList()
    metrics.type_filter("nothing")
    assert metrics.if_empty(make_view(RUN)) == (
        "no metric matches “nothing”\nesc clears the filter"
    )
    assert "no run yet" in metrics.if_empty(make_view())
    metrics.update(None)
    assert metrics.keys == []

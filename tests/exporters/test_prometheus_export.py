"""What Prometheus is given of runs, read back by its own client library."""

from __future__ import annotations

from contextlib import ExitStack, closing
from typing import TYPE_CHECKING

import pytest
from command_line import placed
from hypothesis import example, given
from hypothesis import strategies as st
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from verl_tui.check.data import CRITICAL, exit_code, report
from verl_tui.config import Config
from verl_tui.exporters.endpoint import MetricsServer
from verl_tui.exporters.prometheus import exposition
from verl_tui.health.finding import Episode, Finding, Severity, Verdict
from verl_tui.monitor import Monitor, load
from verl_tui.prometheus_names import named
from verl_tui.records import Batch, MetricRows, SourceStatus

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from verl_tui.runs.run import Run

NOW = 1_790_000_000.0
CAUSE = Finding("policy-collapse", Severity.CRITICAL, "it collapsed")
OVER = Episode("grad-norm-spike", Severity.WARNING, 1, 1, 2)
Labels = frozenset[tuple[str, str]]


def feed(
    monitor: Monitor, run: str, columns: Mapping[str, Sequence[float]], **status: object
) -> None:
    """Have a monitor take a run's columns, a row a step from 1; each step takes ten seconds."""
    count = len(next(iter(columns.values())))
    times = [NOW - 10 * (count - at) for at in range(count)]
    steps, values = range(1, count + 1), [*columns.values()]
    rows = MetricRows(tuple(columns), steps, values, range(count), times)
    said = SourceStatus(run, "test", records=count, modified=NOW - 5, **status)  # type: ignore[arg-type]
    monitor.apply(Batch(run, said, (rows,)), NOW)


def scraped(monitor: Monitor, **limits: int) -> dict[str, dict[Labels, float]]:
    """Return what a scraper reads, by name of the series and labels."""
    text = generate_latest(exposition(monitor, NOW, **limits)).decode()
    found: dict[str, dict[Labels, float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            series = found.setdefault(sample.name, {})
            labels = frozenset(sample.labels.items())
            assert labels not in series
            series[labels] = sample.value
    return found


def of(**labels: str) -> Labels:
    return frozenset(labels.items())


@pytest.fixture
def monitor():
    return Monitor(Config())


def test_every_metric_is_there_in_base_units_and_leads_back_to_its_key(monitor):
    columns = {"actor/ppo_kl": [0.5, 0.02], "perf/max_memory_allocated_gb": [1, 2]}
    columns |= {"odd key!": [3, 4], "system/gpu.1.memoryAllocatedBytes": [5e10, 6e10]}
    feed(monitor, "a", columns)
    found = scraped(monitor)
    assert found["verl_actor_ppo_kl"] == {of(run="a"): 0.02}
    assert found["verl_perf_max_memory_allocated_bytes"] == {of(run="a"): 2 * 2**30}
    assert found["verl_gpu_memory_used_bytes"] == {of(run="a", device="1"): 6e10}
    infos = [dict(labels) for labels in found["verl_metric_info"]]
    back = {one["name"]: one["key"] for one in infos}
    assert back[named("odd key!").name] == "odd key!"
    assert back["verl_actor_ppo_kl"] == "actor/ppo_kl"


def test_bands_are_those_of_the_run_s_own_names_in_base_units(monitor):
    verl = {
        "critic/score/mean": [0.5],
        "actor/ppo_kl": [0.01],
        "system/gpu_util": [87.0],
    }
    feed(monitor, "a", verl)
    feed(monitor, "b", {"ppo/kl_div": [0.02], "rollout/reward_mean": [2.5]})
    found = scraped(monitor)["verl_indicator_band"]
    assert found == {
        of(run="a", indicator="policy_kl", bound="high"): 0.1,
        of(run="a", indicator="gpu_utilization", bound="low"): pytest.approx(0.7),
        of(run="b", indicator="policy_kl", bound="low"): 0.01,
        of(run="b", indicator="policy_kl", bound="high"): 0.05,
        of(run="b", indicator="reward", bound="low"): 2.0,
        of(run="b", indicator="reward", bound="high"): 4.0,
    }


def test_findings_are_reported_by_cause_and_those_that_are_over_are_0(monitor):
    feed(monitor, "a", {"actor/ppo_kl": [0.01, 0.02]})
    sign = Finding("kl-high", Severity.WARNING, "high", consequence_of=CAUSE.id)
    monitor.verdicts["a"] = Verdict((CAUSE, sign), history=(OVER,))
    found = scraped(monitor)
    assert found["verl_finding_active"] == {
        of(run="a", id="policy-collapse", severity="critical"): 1,
        of(run="a", id="grad-norm-spike", severity="warning"): 0,
    }
    follows = of(run="a", id="kl-high", severity="warning", cause="policy-collapse")
    assert found["verl_finding_follows"] == {follows: 1}


@pytest.mark.parametrize("served", [False, True])
def test_what_an_exporter_has_found_is_no_healthy_run_for_who_reads_it(
    monitor, tmp_path, served
):
    feed(monitor, "a", {"actor/ppo_kl": [0.01, 0.02]})
    monitor.verdicts["a"] = Verdict((CAUSE,), history=(OVER,))
    found = exposition(monitor, NOW)
    page = tmp_path / "page.prom"
    page.write_bytes(generate_latest(found))
    with ExitStack() as running:
        place = str(page)
        if served:
            server = running.enter_context(closing(MetricsServer("127.0.0.1", 0)))
            server.show(found)
            place = server.address
        reading = load([place], Config(), NOW)
    found = report(reading, NOW)
    (run,) = found["runs"]
    (told,) = run["findings"]
    assert (told["id"], told["severity"]) == ("policy-collapse", "critical")
    assert told["message"].startswith("stated by verl-tui's exporter")
    assert exit_code(found) == CRITICAL


def test_the_health_of_sources_is_reported_by_format(monitor):
    how = {"unreadable": 3, "problem": "permission denied"}
    feed(monitor, "a", {"actor/ppo_kl": [0.01, 0.02]}, **how)
    found = scraped(monitor)
    where = of(run="a", format="test")
    assert found["verl_source_up"] == {where: 0}
    assert found["verl_source_records_total"] == {where: 2}
    assert found["verl_source_unreadable_total"] == {where: 3}
    assert found["verl_source_modified_timestamp_seconds"] == {where: NOW - 5}
    assert found["verl_last_step_timestamp_seconds"] == {of(run="a"): NOW - 10}


def test_what_is_beyond_the_limits_is_said_and_indicators_come_first(monitor):
    others = {f"custom/{number}": [1.0] for number in range(8)}
    for run in "abc":
        feed(monitor, run, {**others, "actor/ppo_kl": [0.01]})
    page = exposition(monitor, NOW, most_runs=2, most_metrics=3)
    assert page.left_out == (
        "1 run left out: at most 2 exported",
        "12 metrics left out: at most 3 of a run exported",
    )
    found = scraped(monitor, most_runs=2, most_metrics=3)
    assert found["verl_exporter_left_out"][of(kind="runs")] == 1
    assert found["verl_exporter_left_out"][of(kind="metrics")] == 12
    assert len(found["verl_actor_ppo_kl"]) == 2
    assert {"verl_custom_0", "verl_custom_1"} <= found.keys()
    assert "verl_custom_2" not in found


NAMES = st.text(max_size=40)


@example([("a\nb", ""), ("a\nb (2)", ""), ("a b", "")])
@given(st.lists(st.tuples(NAMES, NAMES), min_size=1, max_size=6))
def test_whatever_runs_and_metrics_are_called_a_scraper_reads_it(named):
    monitor = Monitor(Config())
    for run, key in named:
        feed(monitor, run, {key: [1.0], f"{key}/": [2.0]})
    runs = {dict(labels)["run"] for labels in scraped(monitor)["verl_run_state"]}
    assert len(runs) == len({run for run, _ in named})


def test_a_run_that_fails_costs_no_other(monkeypatch):
    from verl_tui.exporters import prometheus

    monitor = Monitor(Config())
    for name in ("bad", "good"):
        feed(monitor, name, {"critic/score/mean": [0.25, 0.5]})
    real = prometheus.logged_devices

    def fails(run: Run) -> object:
        if run.name == "bad":
            raise KeyError("limit")
        return real(run)

    monkeypatch.setattr(prometheus, "logged_devices", fails)
    assert scraped(monitor)["verl_average_reward"][of(run="good")] == 0.5
    (left_out,) = exposition(monitor, NOW).left_out
    assert placed(left_out) == "bad: metrics are missing: KeyError in PLACE"

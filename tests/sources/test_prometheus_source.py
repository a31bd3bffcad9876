"""A real Prometheus as a source: runs are found, their past is what the log said, machines and
engines come along.
"""

from __future__ import annotations

import math
import time
from itertools import chain
from typing import TYPE_CHECKING

import pytest
from prometheus_server import SCRAPE, needs_prometheus, serving

from verl_tui.check.data import NOTHING_READABLE, exit_code, report
from verl_tui.config import Config
from verl_tui.monitor import Monitor, load
from verl_tui.records import Batch, MetricRows, SourceStatus
from verl_tui.runs.views.devices import logged_devices
from verl_tui.runs.views.state import State, state
from verl_tui.sources.http.addresses import AskedAddress
from verl_tui.sources.http.client import ask
from verl_tui.sources.http.prometheus_server import Server

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from prometheus_server import Sample


pytestmark = [pytest.mark.prometheus, needs_prometheus]


def now() -> float:
    """Return the last moment of a scrape: a real server lives by the real clock."""
    return math.floor((time.time() - 5) / SCRAPE) * SCRAPE


def said(
    at: float, labels: Mapping[str, str], values: Mapping[str, float]
) -> list[Sample]:
    """Return samples of one moment; a bucket's bound stands behind `<=`."""
    return [
        (
            name.partition("<=")[0],
            {**labels, "le": le} if le else {**labels},
            float(value),
            at,
        )
        for name, value in values.items()
        for le in [name.partition("<=")[2]]
    ]


def moments(count: int, end: float, every: float = SCRAPE) -> list[float]:
    """Return when something was scraped, `end` the last time."""
    return [end - (count - 1 - at) * every for at in range(count)]


def exported(
    name: str, columns: Mapping[str, Sequence[float | None]], end: float
) -> Iterator[Sample]:
    """Yield what our exporter tells Prometheus of a run, scraped once after each step."""
    from verl_tui.exporters.prometheus import exposition

    monitor = Monitor(Config())
    count = len(next(iter(columns.values())))
    for at in range(count):
        time = end - (count - 1 - at) * SCRAPE
        logged = {
            key: [value]
            for key, column in columns.items()
            if (value := column[at]) is not None
        }
        rows = MetricRows(
            tuple(logged), (at + 1,), list(logged.values()), (at,), (time - 1.5,)
        )
        status = SourceStatus(
            f"{name}.jsonl", "test", records=at + 1, modified=time - 1.5, absolute=True
        )
        monitor.apply(Batch(name, status, (rows,)), time)
        for family in exposition(monitor, time).collect():
            for sample in family.samples:
                labels = {
                    **sample.labels,
                    "job": "verl-tui",
                    "instance": "127.0.0.1:9750",
                }
                counts = family.type == "counter" and not sample.name.endswith("_total")
                yield (
                    f"{sample.name}_total" if counts else sample.name,
                    labels,
                    sample.value,
                    time,
                )


VALIDATIONS = {1: 0.25, 11: 0.26, 21: 0.26, 31: 0.25}
"""By step; pages hold on to them in between, and two came out alike."""
COLUMNS: dict[str, list[float | None]] = {
    "critic/score/mean": [0.1 + at / 100 for at in range(40)],
    "actor/entropy": [1.5 - at / 50 for at in range(40)],
    "timing_per_token_ms/gen": [3.25 + at for at in range(40)],
    "actor/lr": [1e-6] * 40,
    "actor/pg_loss": [math.nan if at == 7 else -0.01 * at for at in range(40)],
    "actor/perf/max_memory_allocated_gb": [61.5] * 40,
    "val-core/openai/gsm8k/acc/mean@1": [VALIDATIONS.get(at + 1) for at in range(40)],
}


def test_a_log_comes_back_from_prometheus_as_it_was(tmp_path):
    end = now()
    with serving(tmp_path, exported("grpo/qwen 3", COLUMNS, end)) as address:
        monitor = load([address], Config(), time.time())
    assert monitor.sentences == ()
    (run,) = monitor.runs.values()
    assert run.name == "grpo/qwen 3"
    assert run.step == 40
    for key, column in COLUMNS.items():
        series = run.series(key)
        assert series is not None, key
        logged = {at + 1: value for at, value in enumerate(column) if value is not None}
        assert list(series.steps) == list(logged), key
        assert list(series.values) == pytest.approx(
            list(logged.values()), rel=1e-12, nan_ok=True
        ), key
    reward = run.series("critic/score/mean")
    assert reward is not None
    assert reward.times[-1] == pytest.approx(end - 1.5)
    assert not [key for key in run.keys if key.startswith("verl_")]
    assert exit_code(report(monitor, time.time())) != NOTHING_READABLE


def test_runs_of_rl_insight_and_of_the_tutorials_are_found(tmp_path):
    end = now()
    insight = {
        "project": "p",
        "experiment_name": "e",
        "instance": "n:9092",
        "job": "trainer_metrics",
    }
    tutorial = {"instance": "n:8000", "job": "verl_training"}
    past: list[Sample] = []
    for at, moment in enumerate(moments(20, end)):
        logged = {"training_global_step": at, "critic_score_mean": at / 10}
        named = {f"rl_insight_monitor_{name}": one for name, one in logged.items()}
        told = {
            "verl_training_steps_total": 100 + at,
            "verl_average_reward": at / 20,
            "verl_sample_generation_seconds_bucket<=1.0": 10 * at,
            "verl_sample_generation_seconds_bucket<=2.0": 20 * at,
            "verl_sample_generation_seconds_bucket<=+Inf": 20 * at,
        }
        memory = {"verl_gpu_memory_used_bytes": 6e10}
        past += said(moment, insight, named)
        past += said(moment, tutorial, told)
        past += said(moment, {**tutorial, "device": "0"}, memory)
    with serving(tmp_path, past) as address:
        monitor = load([address], Config(), time.time())
    assert {
        name: run.step for name, run in monitor.runs.items() if run.step is not None
    } == {
        "e": 19,
        "verl_training": 119,
    }
    series = monitor.runs["e"].series("critic/score/mean")
    assert series is not None
    assert list(series.values) == pytest.approx([at / 10 for at in range(20)])
    run = monitor.runs["verl_training"]
    assert run.indicators["reward"] == "verl_average_reward"
    devices = logged_devices(run)
    assert [one.gpu.memory_used for one in devices] == [60_000_000_000]


def trained(run: str, count: int, end: float) -> list[Sample]:
    """Return what a run of some steps left, the last of them at `end`."""
    labels = {"run": run, "instance": "n:1", "job": "j"}
    return [
        sample
        for at, moment in enumerate(moments(count, end))
        for sample in said(
            moment,
            labels,
            {"verl_training_steps_total": at, "verl_critic_score_mean": at / 100},
        )
    ]


def cluster(count: int, end: float, nodes: int = 2, gpus: int = 8) -> list[Sample]:
    """Return what DCGM, Ray, node_exporter, vLLM and TransferQueue say of a cluster."""
    past: list[Sample] = []
    latency = "vllm:e2e_request_latency_seconds_bucket"
    for at, moment in enumerate(moments(count, end)):
        for node in range(nodes):
            for gpu in range(gpus):
                dcgm = {
                    "Hostname": f"node-{node:02}",
                    "gpu": str(gpu),
                    "instance": f"10.0.0.{node}:9400",
                    "job": "dcgm",
                }
                ray = {"ip": f"10.0.0.{node}", "GpuIndex": str(gpu), "job": "ray"}
                device = {"GPU_UTIL": 50 + gpu, "FB_USED": 60_000, "FB_FREE": 20_000}
                named = {f"DCGM_FI_DEV_{name}": one for name, one in device.items()}
                past += said(moment, dcgm, named)
                past += said(moment, ray, {"ray_node_gpus_utilization": 1})
            host = {"instance": f"node-{node:02}:9100", "job": "node"}
            for mode, seconds in (("idle", 5 * at), ("user", 10 * at)):
                of = {**host, "mode": mode, "cpu": "0"}
                past += said(moment, of, {"node_cpu_seconds_total": seconds})
            memory = {"MemTotal": 100, "MemAvailable": 25}
            named = {f"node_memory_{name}_bytes": one for name, one in memory.items()}
            past += said(moment, host, named)
        for engine in ("0", "1"):
            vllm = {"engine": engine, "model_name": "m", "job": "rollout"}
            figures = {
                "vllm:num_requests_running": 4,
                "vllm:kv_cache_usage_perc": 0.5,
                "vllm_generation_tokens_total": 1500 * at,
                "vllm:corrupted_requests_total": 1,
                f"{latency}<=1.0": 0,
                f"{latency}<=2.0": 10 * at,
                f"{latency}<=+Inf": 10 * at,
            }
            past += said(moment, vllm, figures)
        queue = {"task_name": "train", "job": "tq"}
        past += said(moment, queue, {"tq_partition_production_progress": 0.75})
    return past


def test_a_clusters_machines_and_engines_are_those_of_the_run_that_goes_on(tmp_path):
    end = now()
    past = [
        *trained("old", 20, end - 3600),
        *trained("grpo", 20, end),
        *cluster(20, end),
    ]
    with serving(tmp_path, past) as address:
        monitor = load([address], Config(), time.time())
    assert list(monitor.runs) == ["grpo", "old"]
    run = monitor.runs["grpo"]
    devices = logged_devices(run)
    assert [(one.node, one.gpu.index) for one in devices] == [
        (f"node-{node:02}", str(gpu)) for node in range(2) for gpu in range(8)
    ]
    assert devices[3].gpu.utilization == 53.0
    assert devices[3].gpu.memory_total == pytest.approx(80_000 * 2**20, rel=1e-6)
    figures = {
        "vllm:num_requests_running": 8.0,
        "vllm:kv_cache_usage_perc": 0.5,
        "vllm:generation_tokens_per_second": 200.0,
        "vllm:corrupted_requests_total": 2.0,
        "vllm:e2e_request_latency_seconds/p95": 1.95,
        "tq_partition_production_progress/train": 0.75,
        "cluster/cpu/l:node-01": pytest.approx(200 / 3),
        "cluster/memory_percent/l:node-00": 75.0,
    }
    assert {key: run.tail(key, 1)[0] for key in figures} == figures
    assert not logged_devices(monitor.runs["old"])
    assert any(
        finding.id == "corrupted-requests"
        for finding in monitor.verdicts["grpo"].findings
    )


def test_a_run_is_followed_and_its_points_come_once(tmp_path):
    end = now()
    gather: dict[str, list[int]] = {}
    with serving(tmp_path, [*trained("grpo", 40, end), *cluster(40, end)]) as address:
        asked: list[str] = []

        def answer(path: str, form: str | None) -> bytes:
            asked.append(path)
            return ask(f"{address}{path}", form)

        server = Server(AskedAddress(address), answer)
        for moment in (
            end - 20 * SCRAPE + 2,
            end - 10 * SCRAPE + 2,
            end - 10 * SCRAPE + 3,
            end + 2,
        ):
            server.ask(moment)
        run = server.runs["grpo"]
        reads = iter(run.read, ((), False))
        for record in chain.from_iterable(records for records, _ in reads):
            if isinstance(record, MetricRows):
                for key in record.keys:
                    gather.setdefault(key, []).extend(record.steps)
    assert gather["critic/score/mean"] == list(range(40))
    assert sorted(gather["vllm:num_requests_running"]) == list(range(40))
    # Three questions a minute find runs, one asks for a run, one for machines and engines.
    assert len(asked) == 5 + 5 + 0 + 5


def test_a_local_log_and_prometheus_are_one_run(tmp_path):
    end = now()
    log = tmp_path / "logs" / "grpo.jsonl"
    log.parent.mkdir()
    log.write_text(
        "".join(
            f'{{"step": {at}, "data": {{"critic/score/mean": {at}}}}}\n'
            for at in range(1, 20)
        )
    )
    with serving(tmp_path, [*trained("grpo", 20, end), *cluster(20, end)]) as address:
        monitor = load([str(log), address], Config(), time.time())
    (run,) = monitor.runs.values()
    assert run.step == 19
    assert (
        next(source.status.format for source in run.sources.values())
        == "verl file logger"
    )
    reward = run.series("critic/score/mean")
    assert reward is not None
    assert reward.at(7) == (7, 7.0)  # the log's own value holds
    assert len(logged_devices(run)) == 16
    assert not run.restarts


def test_a_run_that_is_over_is_no_hang_though_its_series_and_its_cluster_go_on(
    tmp_path,
):
    end = now()
    labels = {"project": "p", "experiment_name": "e", "job": "trainer_metrics"}
    past = cluster(60, end)
    for at, moment in enumerate(moments(60, end)):
        logged = {"training_global_step": min(at, 20), "critic_score_mean": 0.5}
        named = {f"rl_insight_monitor_{name}": one for name, one in logged.items()}
        past += said(moment, labels, named)
    with serving(tmp_path, past) as address:
        monitor = load([address], Config(), time.time())
    run = monitor.runs["e"]
    assert state(run, time.time()) is State.ENDED
    assert not [
        finding for finding in monitor.verdicts["e"].findings if finding.id == "hang"
    ]

"""Saved pages of metrics: recognised by what they hold, and never a crash."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from log_reading import notes, read_run

from verl_tui.records import MetricRows, Unreadable
from verl_tui.runs.views.devices import logged_devices
from verl_tui.sources.fields.row_batcher import MetricRow
from verl_tui.sources.formats.catalog import FORMATS
from verl_tui.sources.formats.prometheus_text import reader as exposition
from verl_tui.sources.formats.prometheus_text.reader import PageFigures, read_page
from verl_tui.sources.formats.prometheus_text.series import StepRows

TUTORIAL = b"""\
# HELP verl_training_steps_total Total training steps
# TYPE verl_training_steps_total counter
verl_training_steps_total 120.0
# TYPE verl_average_reward gauge
verl_average_reward 0.42
# TYPE verl_sample_generation_seconds histogram
verl_sample_generation_seconds_bucket{le="0.1"} 0.0
verl_sample_generation_seconds_bucket{le="1.0"} 50.0
verl_sample_generation_seconds_bucket{le="2.0"} 100.0
verl_sample_generation_seconds_bucket{le="+Inf"} 100.0
verl_sample_generation_seconds_count 100.0
verl_sample_generation_seconds_sum 90.0
# TYPE verl_gpu_memory_used_bytes gauge
verl_gpu_memory_used_bytes{device="0"} 6e+10
verl_gpu_memory_used_bytes{device="cuda:1"} 7e+10
# TYPE python_info gauge
python_info{version="3.11"} 1.0
"""


def read(*pieces: bytes) -> list[object]:
    reader = exposition.reader(Path("nowhere.prom"))
    return [record for piece in pieces for record in reader.feed(piece)] + list(
        reader.finish()
    )


def values(records: list[object]) -> dict[str, float]:
    rows = [record for record in records if isinstance(record, MetricRows)]
    return {
        key: column[-1]
        for one in rows
        for key, column in zip(one.keys, one.columns, strict=True)
    }


def test_a_page_is_known_by_what_it_holds():
    recognised = next(one for one in FORMATS if one.matches(Path("saved"), TUTORIAL))
    assert recognised is exposition
    assert exposition.matches(Path("x.prom"), b"verl_average_reward 0.42\n")
    for foreign in (
        b"",
        b"# a heading\n\nsome words\n",
        b"step 1 reward 2\n",
        b"{}\n",
        b"# TYPE is a word\nx y z\n",
    ):
        assert not exposition.matches(Path("x.log"), foreign)


def test_the_tutorials_names_become_steps_rewards_devices_and_quantiles():
    records = read(TUTORIAL)
    rows = [record for record in records if isinstance(record, MetricRows)]
    assert {step for one in rows for step in one.steps} == {120}
    assert values(records) == {
        "verl_average_reward": 0.42,
        "verl_sample_generation_seconds": 0.9,
        "verl_sample_generation_seconds/p50": 1.0,
        "verl_sample_generation_seconds/p95": 1.9,
        "system/gpu.0.memoryAllocatedBytes": 6e10,
        "system/gpu.1.memoryAllocatedBytes": 7e10,
    }


def test_a_file_that_is_replaced_is_a_further_scrape(tmp_path):
    file = tmp_path / "run.prom"
    reader = exposition.reader(file)
    found: dict[str, float] = {}
    for step, tokens, time in ((1, 100, 1000), (2, 400, 1010)):
        page = f"# TYPE tokens_total counter\ntokens_total {tokens}\nverl_training_steps_total {step}\n"
        file.write_text(page)
        os.utime(file, (time, time))
        assert reader.goes_on()
        found = values([*reader.feed(page.encode()), *reader.finish()])
    assert found == {"tokens_per_second": 30.0}


def test_a_file_of_several_runs_is_not_mixed_up():
    (flaw,) = read(b'# TYPE r gauge\nshared 5\nr{run="a"} 1\nr{run="b"} 2\n')
    assert isinstance(flaw, Unreadable)
    assert flaw.reason.startswith("holds 2 runs")


def test_a_saved_page_is_a_run_with_devices(tmp_path):
    (tmp_path / "scrape.prom").write_bytes(TUTORIAL)
    run = read_run(tmp_path)
    assert run.step == 120
    assert run.indicators["reward"] == "verl_average_reward"
    devices = logged_devices(run)
    assert [(one.gpu.index, one.gpu.memory_used) for one in devices] == [
        ("0", 60_000_000_000),
        ("1", 70_000_000_000),
    ]


def test_of_a_page_without_a_step_minutes_are_said_to_be_counted(tmp_path):
    (tmp_path / "scrape.prom").write_text("# TYPE reward gauge\nreward 0.5\n")
    assert notes(read_run(tmp_path)) == "no step is stated: minutes are counted"


# -- from pages to figures -------------------------------------------------------------------------


def rows(*pages: str) -> list[MetricRow]:
    """Return what is said of the pages of a process, ten seconds between two."""
    figures, run = PageFigures("a"), StepRows()
    said: list[object] = []
    for at, text in enumerate(pages):
        samples = next(iter(read_page(text.encode()).runs.values()))
        said += run.records(figures.series(samples, 10.0 * (at + 1)))
    return [one for one in said if isinstance(one, MetricRow)]


def metrics(*moments: str) -> list[dict[str, float]]:
    """Return the metrics of each row that is said of pages."""
    return [dict(zip(row.keys, row.values, strict=True)) for row in rows(*moments)]


@pytest.mark.parametrize(
    ("moments", "expected"),
    [
        (  # counters are rates, and a process that began anew counts from nothing
            [
                f'# TYPE vllm:t_total counter\nvllm:t_total{{engine="0"}} {first}\n'
                f'vllm:t_total{{engine="1"}} {second}\n'
                for first, second in ((100, 50), (200, 70), (30, 90))
            ],
            [{"vllm:t_per_second": 12.0}, {"vllm:t_per_second": 5.0}],
        ),
        (  # also where what it had counted was no number
            [
                f"# TYPE vllm:t summary\nvllm:t_sum {total}\nvllm:t_count {count}\n"
                for total, count in ((2, 4), ("+Inf", 5), (8, 2))
            ],
            [{"vllm:t": 0.5}, {"vllm:t": float("inf")}, {"vllm:t": 4.0}],
        ),
        (  # over processes levels are averaged, amounts added
            [
                'verl_average_reward{pid="1"} 0.25\nvllm:num_requests_running{pid="1"} 3\n'
                'verl_average_reward{pid="2"} 0.75\nvllm:num_requests_running{pid="2"} 4\n'
            ],
            [{"verl_average_reward": 0.5}, {"vllm:num_requests_running": 7.0}],
        ),
        (  # labels that say of what tell metrics apart
            [
                'tq_partition_production_progress{task_name="rollout",instance="a"} 0.5\n'
                'tq_partition_production_progress{task_name="train",instance="a"} 0.25\n'
            ],
            [
                {
                    "tq_partition_production_progress/rollout": 0.5,
                    "tq_partition_production_progress/train": 0.25,
                }
            ],
        ),
        (  # hosts tell their load between two pages
            [
                f'# TYPE node_cpu_seconds_total counter\nnode_cpu_seconds_total{{instance="n1:9100",mode="idle",cpu="0"}} {idle}\n'
                f'node_cpu_seconds_total{{instance="n1:9100",mode="user",cpu="0"}} {busy}\n'
                'node_memory_MemTotal_bytes{instance="n1:9100"} 100\n'
                'node_memory_MemAvailable_bytes{instance="n1:9100"} 40\n'
                for idle, busy in ((100, 100), (104, 112))
            ],
            [
                {"cluster/memory_percent/l:n1": 60.0},
                {"cluster/memory_percent/l:n1": 60.0, "cluster/cpu/l:n1": 75.0},
            ],
        ),
        (  # what is no step reached is none
            ["total_training_steps 5\nmax_train_steps 5\nsteps_per_epoch 5\n"],
            [{"total_training_steps": 5, "max_train_steps": 5, "steps_per_epoch": 5}],
        ),
    ],
)
def test_figures_of_pages(moments, expected):
    assert metrics(*moments) == expected


def test_our_exporters_names_lead_back_to_the_logs_own_keys_and_units():
    page = """\
verl_metric_info{name="verl_perf_x_seconds",key="timing_per_token_ms/gen"} 1
verl_perf_x_seconds{run="r"} 0.0035
verl_average_reward{run="r"} 0.5
verl_training_steps_total{run="r"} 3
verl_last_step_timestamp_seconds{run="r"} 1000.5
"""
    (row,) = rows(page)
    assert (row.step, row.keys, row.time) == (3, ("timing_per_token_ms/gen",), 1000.5)
    assert row.values[0] == pytest.approx(3.5)


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        (  # many nodes have keys as W&B's; of several exporters the first counts
            'DCGM_FI_DEV_GPU_UTIL{gpu="3",Hostname="node-07"} 97\n'
            'DCGM_FI_DEV_FB_USED{gpu="3",Hostname="node-07"} 60000\n'
            'DCGM_FI_DEV_FB_FREE{gpu="3",Hostname="node-07"} 20000\n'
            'DCGM_FI_DEV_GPU_TEMP{gpu="3",Hostname="node-07"} 9223372036854775794\n'
            'ray_node_gpus_utilization{ip="10.0.0.7",GpuIndex="3"} 96\n'
            'DCGM_FI_DEV_GPU_UTIL{gpu="3",Hostname="node-07",GPU_I_ID="1"} 5\n',
            {
                "cluster/gpu.3.gpu/l:node-07": 97.0,
                "cluster/gpu.3.memoryAllocatedBytes/l:node-07": 60_000 * 2**20,
                "cluster/gpu.3.memoryAllocated/l:node-07": 75.0,
            },
        ),
        (
            'ray_node_gram_used{ip="10.0.0.7",GpuIndex="0"} 1000\n'
            'ray_node_gpu_power_milliwatts{ip="10.0.0.7",GpuIndex="0"} 350000\n',
            {
                "cluster/gpu.0.memoryAllocatedBytes/l:10.0.0.7": 1000 * 2**20,
                "cluster/gpu.0.powerWatts/l:10.0.0.7": 350.0,
            },
        ),
        (
            'npu_chip_info_hbm_used_memory{id="5",instance="node9:8082"} 16\n'
            'npu_chip_info_hbm_total_memory{id="5",instance="node9:8082"} 64\n',
            {
                "cluster/gpu.5.memoryAllocatedBytes/l:node9": 16 * 2**20,
                "cluster/gpu.5.memoryAllocated/l:node9": 25.0,
            },
        ),
    ],
)
def test_figures_of_machines(page, expected):
    assert metrics(page) == [expected]


@pytest.mark.parametrize(
    ("page", "flaw"),
    [
        (b"a 1\nb{x 3\nc 2\n", (2, "cannot be read from here on: ")),
        (b"a 1\nb 2.", (2, "its last line has no end")),
        (b"# TYPE a gauge\na 1\n# EOF", None),
    ],
)
def test_of_a_damaged_page_what_came_before_is_read(page, flaw):
    read = read_page(page)
    assert [(one.name, one.value) for one in read.runs[""]] == [("a", 1.0)]
    if flaw is None:
        assert read.flaw is None
    else:
        assert read.flaw is not None
        assert (read.flaw[0], read.flaw[1][: len(flaw[1])]) == flaw


def test_without_prometheus_client_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    (flaw,) = read(TUTORIAL)
    assert isinstance(flaw, Unreadable)
    assert "pip install 'verl-tui[prometheus]'" in flaw.reason

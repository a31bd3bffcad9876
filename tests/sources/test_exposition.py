"""Saved pages of metrics: recognised by what they hold, read line by line, and never a crash."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_reading import read_run
from prometheus_client.parser import text_string_to_metric_families

from verl_tui.records import MetricRows, Unreadable
from verl_tui.runs.views.devices import logged_devices
from verl_tui.sources.fields.row_batcher import MetricRow
from verl_tui.sources.formats.catalog import FORMATS
from verl_tui.sources.formats.prometheus_text import reader as exposition
from verl_tui.sources.formats.prometheus_text.figures import PageFigures
from verl_tui.sources.formats.prometheus_text.names import machine_figures
from verl_tui.sources.formats.prometheus_text.page import read_page
from verl_tui.sources.formats.prometheus_text.rows import StepRows
from verl_tui.text import one_line

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


def test_a_page_is_known_by_what_it_holds() -> None:
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


def test_the_tutorials_names_become_steps_rewards_devices_and_quantiles() -> None:
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


def test_a_file_that_is_replaced_is_a_further_scrape(tmp_path: Path) -> None:
    file = tmp_path / "run.prom"
    reader = exposition.reader(file)
    found: dict[str, float] = {}
    for step, tokens, time in ((1, 100, 1000), (2, 400, 1010)):
        page = f"# TYPE tokens_total counter\ntokens_total {tokens}\nverl_training_steps_total {step}\n"
        file.write_text(page)
        os.utime(file, (time, time))
        assert reader.restart("replaced") == ()
        found = values([*reader.feed(page.encode()), *reader.finish()])
    assert found == {"tokens_per_second": 30.0}


def test_a_file_of_several_runs_is_not_mixed_up() -> None:
    (flaw,) = read(b'# TYPE r gauge\nshared 5\nr{run="a"} 1\nr{run="b"} 2\n')
    assert isinstance(flaw, Unreadable)
    assert flaw.reason.startswith("holds 2 runs")


def test_a_saved_page_is_a_run_with_devices(tmp_path: Path) -> None:
    (tmp_path / "scrape.prom").write_bytes(TUTORIAL)
    run = read_run(tmp_path)
    assert run.step == 120
    assert run.indicators["reward"] == "verl_average_reward"
    devices, _ = logged_devices(run)
    assert [(one.gpu.index, one.gpu.memory_used) for one in devices] == [
        ("0", 60_000_000_000),
        ("1", 70_000_000_000),
    ]


# -- from pages to figures -------------------------------------------------------------------------


def rows(*moments: dict[str, str]) -> list[MetricRow]:
    """Return what is said of pages, given by worker and moment, ten seconds between two."""
    figures, run = PageFigures(), StepRows()
    said: list[object] = []
    for at, pages in enumerate(moments):
        time = 10.0 * (at + 1)
        taken = {
            worker: (read_page(text.encode()).runs.popitem()[1], time)
            for worker, text in pages.items()
        }
        said += run.take(*figures.take(taken, time))
    return [one for one in said if isinstance(one, MetricRow)]


def metrics(*moments: dict[str, str]) -> list[dict[str, float]]:
    """Return the metrics of each row that is said of pages."""
    return [dict(zip(row.keys, row.values, strict=True)) for row in rows(*moments)]


@pytest.mark.parametrize(
    ("moments", "expected"),
    [
        (  # counters are rates, and a process that began anew counts from nothing
            [
                {
                    "a": f'vllm:t_total{{engine="0"}} {first}\nvllm:t_total{{engine="1"}} {second}\n'
                }
                for first, second in ((100, 50), (200, 70), (30, 90))
            ],
            [{"vllm:t_per_second": 12.0}, {"vllm:t_per_second": 5.0}],
        ),
        (  # workers are one run: levels are averaged, amounts added
            [
                {
                    "a": "verl_training_steps_total 7\nverl_average_reward 0.25\nx_requests 3\n",
                    "b": "verl_training_steps_total 8\nverl_average_reward 0.75\nx_requests 4\n",
                }
            ],
            [{"verl_average_reward": 0.5, "x_requests": 7.0}],
        ),
        (  # labels that say of what tell metrics apart
            [
                {
                    "": 'tq_partition_production_progress{task_name="rollout",instance="a"} 0.5\n'
                    'tq_partition_production_progress{task_name="train",instance="a"} 0.25\n'
                }
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
                {
                    "": f'node_cpu_seconds_total{{instance="n1:9100",mode="idle",cpu="0"}} {idle}\n'
                    f'node_cpu_seconds_total{{instance="n1:9100",mode="user",cpu="0"}} {busy}\n'
                    'node_memory_MemTotal_bytes{instance="n1:9100"} 100\n'
                    'node_memory_MemAvailable_bytes{instance="n1:9100"} 40\n'
                }
                for idle, busy in ((100, 100), (104, 112))
            ],
            [
                {"cluster/memory_percent/l:n1": 60.0},
                {"cluster/memory_percent/l:n1": 60.0, "cluster/cpu/l:n1": 75.0},
            ],
        ),
        (  # what is no step reached is none
            [{"": "total_training_steps 5\nmax_train_steps 5\nsteps_per_epoch 5\n"}],
            [{"total_training_steps": 5, "max_train_steps": 5, "steps_per_epoch": 5}],
        ),
    ],
)
def test_figures_of_pages(
    moments: list[dict[str, str]], expected: list[dict[str, float]]
) -> None:
    assert metrics(*moments) == expected


def test_our_exporters_names_lead_back_to_the_logs_own_keys_and_units() -> None:
    page = """\
verl_metric_info{name="verl_perf_x_seconds",key="timing_per_token_ms/gen"} 1
verl_perf_x_seconds{run="r"} 0.0035
verl_average_reward{run="r"} 0.5
verl_training_steps_total{run="r"} 3
verl_last_step_timestamp_seconds{run="r"} 1000.5
"""
    (row,) = rows({"": page})
    assert (row.step, row.keys, row.time) == (3, ("timing_per_token_ms/gen",), 1000.5)
    assert row.values[0] == pytest.approx(3.5)


def test_devices_of_many_nodes_have_keys_as_wandbs() -> None:
    labels = {"gpu": "3", "Hostname": "node-07", "UUID": "GPU-1"}
    figures_seen = [
        ("DCGM_FI_DEV_GPU_UTIL", labels, 97.0),
        ("DCGM_FI_DEV_FB_USED", labels, 60_000.0),
        ("DCGM_FI_DEV_FB_FREE", labels, 20_000.0),
        ("DCGM_FI_DEV_GPU_TEMP", labels, 9223372036854775794.0),
        ("ray_node_gpus_utilization", {"ip": "10.0.0.7", "GpuIndex": "3"}, 96.0),
        ("DCGM_FI_DEV_GPU_UTIL", {**labels, "GPU_I_ID": "1"}, 5.0),
    ]
    assert machine_figures(figures_seen) == {
        "cluster/gpu.3.gpu/l:node-07": 97.0,
        "cluster/gpu.3.memoryAllocatedBytes/l:node-07": 60_000 * 2**20,
        "cluster/gpu.3.memoryAllocated/l:node-07": 75.0,
    }


def test_rays_and_ascends_units_become_bytes_and_watts() -> None:
    ray = {"ip": "10.0.0.7", "GpuIndex": "0"}
    figures_seen = [
        ("ray_node_gram_used", ray, 1000.0),
        ("ray_node_gpu_power_milliwatts", ray, 350_000.0),
    ]
    assert machine_figures(figures_seen) == {
        "cluster/gpu.0.memoryAllocatedBytes/l:10.0.0.7": 1000 * 2**20,
        "cluster/gpu.0.powerWatts/l:10.0.0.7": 350.0,
    }
    npu = {"id": "5", "instance": "node9:8082", "model_name": "910B"}
    figures_seen = [
        ("npu_chip_info_hbm_used_memory", npu, 16.0),
        ("npu_chip_info_hbm_total_memory", npu, 64.0),
    ]
    assert (
        machine_figures(figures_seen)["cluster/gpu.5.memoryAllocated/l:node9"] == 25.0
    )


_TEXT = st.text(alphabet='ab é"\\\\,={}#\u202e', max_size=6)


@given(
    labels=st.dictionaries(st.sampled_from(["a", "b", "le", "x_1"]), _TEXT, max_size=3),
    value=st.floats(),
    comma=st.booleans(),
)
def test_plain_lines_are_read_as_prometheus_client_reads_them(
    labels: dict[str, str], value: float, comma: bool
) -> None:
    escaped = {
        name: text.replace("\\", "\\\\").replace('"', '\\"')
        for name, text in labels.items()
    }
    words = ",".join(f'{name}="{text}"' for name, text in escaped.items()) + (
        "," if comma and labels else ""
    )
    number = repr(value).replace("inf", "Inf").replace("nan", "NaN")
    (family,) = text_string_to_metric_families(f"name{{{words}}} {number}\n")
    (expected,) = family.samples
    (scrape,) = read_page(f"name{{{words}}} {number}\n".encode()).runs.values()
    ((_, read), number_read) = next(iter(scrape.samples.items()))
    assert read == tuple(
        sorted((name, one_line(text, 300)) for name, text in expected.labels.items())
    )
    assert repr(number_read) == repr(float(expected.value))

"""Records of several devices and ranks: devices in the panel, means over ranks, no name
averaged.
"""

from __future__ import annotations

import json

import pytest
from log_reading import read_run, values

from verl_tui.runs.views.devices import logged_devices
from verl_tui.sources.fields.device_fields import is_name

GIB = 2**30


def run_of(tmp_path, *records):
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return read_run(path)


def seen(run):
    return {
        one.gpu.index: (one.gpu.utilization, one.gpu.memory_used, one.gpu.temperature)
        for one in logged_devices(run)[0]
    }


def note(run):
    (state,) = [state for state in run.sources.values() if state.status.records]
    return state.status.note


def test_the_tutorials_system_records_are_devices(tmp_path):
    records = [
        {
            "scope": "system",
            "step": step,
            "gpu_util": util,
            "memory_util": 40,
            "temperature_c": 60 + gpu,
            "gpu_id": gpu,
        }
        for step in (1, 2)
        for gpu, util in enumerate((90, 10))
    ]
    run = run_of(tmp_path, *records)
    assert seen(run) == {"0": (90.0, None, 60.0), "1": (10.0, None, 61.0)}
    assert values(run, "system/gpu_util") == {1: 50.0, 2: 50.0}
    assert "system/gpu_id" not in run.keys
    assert run.indicators["gpu_utilization"] == "system/gpu_util"


@pytest.mark.parametrize(
    "records",
    [
        [{"step": 1, "gpus": {"0": {"util": 93, "memory_used_gb": 70}, "1": {"util": 5, "memory_used_gb": 2}}}],
        [
            {"step": 1, "gpu_0_utilization": 93, "gpu_0_memory_used_mb": 71680}
            | {"gpu_1_utilization": 5, "gpu_1_memory_used_mb": 2048}
        ],
        [
            {"step": 1, "device": "cuda:0", "utilization": 0.93, "memory_used": 71680, "memory_total": 81920},
            {"step": 1, "device": "cuda:1", "utilization": 0.05, "memory_used": 2048, "memory_total": 81920},
        ],
    ],
)  # fmt: skip
def test_devices_by_other_names(tmp_path, records):
    run = run_of(tmp_path, *records)
    assert seen(run) == {"0": (93.0, 70 * GIB, None), "1": (5.0, 2 * GIB, None)}


def test_metrics_of_ranks_are_averaged_and_said(tmp_path):
    records = [
        {
            "step": step,
            "rank": rank,
            "local_rank": rank,
            "loss": step + rank,
            "pid": 4000 + rank,
            "effective_rank": 7.0,
        }
        for step in (1, 2, 3)
        for rank in range(4)
    ]
    run = run_of(tmp_path, *records)
    assert values(run, "loss") == {1: 2.5, 2: 3.5, 3: 4.5}
    assert set(run.keys) == {"loss", "effective_rank"}
    assert run.restarts == []
    assert note(run) == "figures are means over 4 ranks"


def test_one_ranks_file_alone_is_fine_and_ranks_may_start_anew(tmp_path):
    alone = run_of(
        tmp_path,
        *({"step": step, "rank": 3, "loss": float(step)} for step in (1, 2, 3, 2, 3)),
    )
    assert (values(alone, "loss"), note(alone)) == ({1: 1.0, 2: 2.0, 3: 3.0}, None)
    assert [mark.step for mark in alone.restarts] == [2]
    again = [
        {"step": step, "rank": rank, "loss": loss}
        for loss, steps in ((1.0, (1, 2, 3)), (5.0, (2, 3)))
        for step in steps
        for rank in (0, 1)
    ]
    run = run_of(tmp_path, *again)
    assert values(run, "loss") == {1: 1.0, 2: 5.0, 3: 5.0}
    assert [mark.step for mark in run.restarts] == [2]


def test_what_names_something_and_what_measures():
    names = [
        "gpu_id",
        "rank",
        "local_rank",
        "node_rank",
        "pid",
        "seed",
        "data/seed",
        "batch_idx",
        "run_id",
        "port",
        "dp_rank",
    ]
    figures = [
        "effective_rank",
        "mean_rank",
        "loss",
        "epoch",
        "grad_norm",
        "invalid",
        "grid",
        "import",
        "speed",
        "kl_valid",
    ]
    assert [is_name(name) for name in names] == [True] * len(names)
    assert [name for name in figures if is_name(name)] == []

"""Many devices: the matrix and its looks, the summary, and what stands out."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from verl_tui.records import POWER_CAP, Gpu
from verl_tui.rendering.gpus.places import callouts, device_summary, matrix
from verl_tui.rendering.text.ascii_table import in_ascii
from verl_tui.rendering.text.piece import text_of
from verl_tui.runs.views.devices import Device

GIB = 1 << 30
BUSY = Gpu(
    "0", "NVIDIA H100 80GB HBM3", 97.0, 60 * GIB, 80 * GIB, 60.0, 500.0, 700.0, ()
)


def device(index, percent=97.0, node="", **more):
    gpu = replace(BUSY, index=str(index), utilization=percent, **more)
    return Device(gpu, node, (), None if gpu.fault else percent)


def texts(devices, width, height):
    return [text_of(row).rstrip() for row in matrix(devices, width, height)]


NODES = [
    device(i, 3.0 if (node, i) == (1, 2) else 95.0, f"worker-{node}")
    for node in range(3)
    for i in range(4)
]


def test_marks():
    devices = [
        device(0),
        device(1, 0.0, throttle=("thermal",)),
        device(2, throttle=("thermal",)),
        device(3, temperature=90.0),
        device(4, memory_used=80 * GIB),
        device(5, None),
        device(6, throttle=(POWER_CAP,)),
        device(7, None, fault="fell off the bus"),
    ]
    line, *legend = texts(devices, 40, 2)
    assert line == " 97▇   0▁! 97▇v 97▇^ 97▇#  ?   97▇   x"
    words = "% busy, x lost, ! idle, v throttled, ^ hot, # memory full, ? unknown"
    assert " ".join(legend) == words


def test_where_rows_are_few_a_device_is_a_level():
    percents = [0, 3, 20, 40, 55, 70, 90, 100, 200, None, None]
    devices = [device(i, percents[i % 11], f"worker-{i // 11}") for i in range(33)]
    *rows, legend = texts(devices, 40, 4)
    assert rows == [f"worker-{node} !!▁▃▄▅▆▇▇??" for node in range(3)]
    assert legend.startswith("▁ 0 to ▇ 100% busy, ! idle,")
    assert len({*in_ascii("▁▃▄▆▇")}) == 5


def test_summary():
    assert device_summary(NODES) == ["GPUs 12", "busy 87%", "memory 75%", "6.0 kW"]
    empty = device(1, 0.0, power=None, memory_used=0)
    assert device_summary([device(0, power=90.0), empty]) == [
        "GPUs 1 of 2",
        "busy 97%",
        "memory 75%",
        "90 W",
    ]
    assert device_summary([Device(Gpu("0", "H100"))]) == ["GPUs 1"]


@pytest.mark.parametrize(
    ("devices", "words"),
    [
        ([device(0), device(1, 9.9)], ["lately idle: GPU 1"]),
        ([device(0), device(1, 10.0)], ["lately behind the others: GPU 1 10%"]),
        ([device(0), device(1, 59.0)], []),
        ([device(0, 59.0), device(1, 20.0)], []),
        ([device(0), device(1, 0.0, memory_used=GIB)], []),
        ([device(0), *(device(i, 0.0) for i in range(1, 8))], ["lately idle: GPU 1, 2, 3, 4 +3 more"]),
        (
            [device(0), device(1, 0.0)._replace(worked=False), device(2, 0.0)],
            ["lately idle: GPU 2", "never at work, maybe not this run's: GPU 1"],
        ),
        ([device(0, throttle=(POWER_CAP,))], []),
        ([device(0, throttle=("power brake", POWER_CAP), node="a")], ["throttled: GPU a:0 power brake"]),
        ([device(0, temperature=88.0)], ["hot: GPU 0 88°C"]),
        ([device(0, memory_used=80 * GIB)], ["memory full: GPU 0"]),
        (
            [device(0), device(1, 9.9, fault="needs a reset"), device(2, 9.9, fault="is gone")],
            ["needs a reset: GPU 1", "is gone: GPU 2"],
        ),
    ],
)  # fmt: skip
def test_what_stands_out(devices, words):
    assert list(callouts(devices)) == words


@given(
    st.lists(
        st.builds(
            Device,
            st.builds(
                Gpu,
                st.integers(0, 70).map(str),
                st.just("H100"),
                st.none() | st.floats(0, 110) | st.floats(),
                temperature=st.none() | st.floats(),
                power=st.none() | st.floats(),
                memory_used=st.none() | st.integers(0, 2**64),
                memory_total=st.none() | st.integers(0, 2**64),
            ),
            st.sampled_from(["", "worker-1", "数学强化学习" * 5]),
        ),
        max_size=70,
    ),
    st.integers(1, 60),
    st.integers(-3, 20),
)
def test_any_devices_in_any_room(devices, width, height):
    for line in texts(devices, width, height):
        assert cell_len(line) <= width
    assert all([*device_summary(devices), *callouts(devices)])

"""Rows of devices: what fits, what aligns, what an unknown value looks like."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len

from verl_tui.health.guide_settings import load_guide
from verl_tui.records import Gpu
from verl_tui.rendering.gpus.device_rows import GOOD, LOW, device_rows, gpu_model
from verl_tui.rendering.gpus.places import detail_rows
from verl_tui.rendering.text.piece import text_of
from verl_tui.runs.views.devices import WORKS, Device
from verl_tui.text import one_line

GIB = 1 << 30
H100 = Gpu("0", "NVIDIA H100 80GB HBM3", 87.0, int(62.1 * GIB), int(79.6 * GIB), 71.0, 512.0, 700.0)  # fmt: skip

NUMBERS = st.none() | st.floats(0, 110) | st.floats()
SIZES = st.none() | st.integers(0, 200 * GIB) | st.integers(0, 2**64)
GPUS = st.builds(
    Gpu,
    index=st.from_regex(r"[0-9]{1,2}(:[0-6])?", fullmatch=True),
    name=st.sampled_from(["NVIDIA H100 80GB HBM3", "NVIDIA H100 80GB HBM3 MIG 1g.10gb"])
    | st.text().map(one_line),
    utilization=NUMBERS,
    memory_used=SIZES,
    memory_total=SIZES,
    temperature=NUMBERS,
    power=NUMBERS,
    power_limit=NUMBERS,
)


def texts(*gpus: Gpu, width: int) -> list[str]:
    return [text_of(row) for row in device_rows([*map(Device, gpus)], width)]


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA H100 NVL", "H100 NVL"),
        ("NVIDIA A100-SXM4-80GB", "A100"),
        ("NVIDIA A100-PCIE-40GB", "A100"),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "MIG 1g.5gb"),
        ("NVIDIA GH200 480GB", "GH200"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
        ("NVIDIA RTX 6000 Ada Generation", "RTX 6000 Ada"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX PRO 6000"),
        ("Tesla V100-SXM2-32GB", "V100"),
        ("NVIDIA", "NVIDIA"),
        ("GPU", "GPU"),
        ("", ""),
    ],
)
def test_short_name(name, short):
    assert gpu_model(name) == short


@given(gpus=st.lists(GPUS, max_size=4), width=st.integers(1, 200))
@example(gpus=[replace(H100, power=1e308)], width=200)
@example(gpus=[replace(H100, name="漢" * 20, index="10:6")], width=4)
def test_never_wider_than_asked_and_aligned(gpus, width):
    rows = device_rows([*map(Device, gpus)], width)
    assert len(rows) == len(gpus)
    lines = [*map(text_of, rows)]
    assert all(cell_len(line) <= width for line in lines)
    if any(len(line.split()) > 1 for line in lines):
        assert len({cell_len(line) for line in lines}) == 1
    assert all(piece for row in rows for piece, _ in row)


def test_on_a_full_screen_a_history_says_how_long_a_time_it_covers():
    device = Device(H100, "", (50.0,) * 20, 50.0, span=750.0, live=True)
    above, *rows = detail_rows([device], 120, 8, lambda _: "")
    assert text_of(above).startswith("0 H100")
    assert text_of(rows[-1]).startswith("    −12m 0% █")
    assert len(rows) > 1
    (alone,) = detail_rows([device], 120, 1, lambda _: "")
    assert "−10m ▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄ now" in text_of(alone)  # 17 of 20 columns
    narrow = detail_rows([device], 50, 8, lambda _: "")
    assert all(cell_len(text_of(row)) <= 50 for row in narrow)


@pytest.mark.parametrize(
    ("lately", "used", "worked", "role"),
    [
        (95.0, 60 * GIB, True, "good"),
        (69.0, 60 * GIB, True, "gauge"),
        (49.0, 60 * GIB, True, "warning"),
        (0.0, 60 * GIB, True, "warning"),
        (0.0, GIB, True, "gauge"),
        (0.0, 60 * GIB, False, "gauge"),
        (None, 60 * GIB, True, "gauge"),
    ],
)
def test_utilisation_is_coloured_where_a_run_needs_the_device(
    lately, used, worked, role
):
    """By the bounds of the rules on GPUs, one that holds nothing by none."""
    gpu = replace(H100, memory_used=used)
    (row,) = device_rows([Device(gpu, lately=lately, worked=worked)], 120)
    assert next(look for words, look in row if "━" in words) == role


def test_the_time_that_a_history_covers_stands_beside_the_first():
    devices = [
        Device(H100, "", (50.0,) * 60, 50.0, span=at, live=True)
        for at in (600.0, 599.0)
    ]
    first, second = map(text_of, device_rows(devices, 160))
    assert first.endswith("▄ now")
    assert "  −6m ▄▄" in first  # 40 of 60 columns
    assert second.endswith("▄    ")
    (logged,) = device_rows([devices[0]._replace(live=False)], 160)
    assert "  6m ▄▄" in text_of(logged)
    assert "now" not in text_of(logged)


def test_the_panel_and_the_rules_have_the_same_bounds():
    guide = load_guide()
    bounds = {rule.id: rule.threshold for rule in guide.rules}
    assert bounds["gpu-idle"] == LOW
    assert bounds["gpu-low"] == WORKS
    assert bounds["gpu-uneven"] == WORKS / 100
    assert guide.band("gpu_utilization", "verl") == (GOOD, None)

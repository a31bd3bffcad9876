"""A run in one row, at any width; and screens of few rows."""

from __future__ import annotations

import re

import pytest
from rich.cells import cell_len
from run_views import make_run, make_view
from watching import NOW, showing

from verl_tui.records import Gpu, GpuReading
from verl_tui.rendering.status_line import one_row
from verl_tui.rendering.text.piece import text_of

GPUS = GpuReading(NOW, (Gpu("0", "H100", 97.0), Gpu("1", "H100", 91.0)))


@pytest.fixture
def view(collapse, monkeypatch):
    """The run that collapses, on a host with two GPUs."""
    monkeypatch.setattr(collapse, "gpus", GPUS)
    return showing(collapse).view_at(NOW)


@pytest.mark.parametrize("alone", [True, False])
def test_every_width_is_kept_to(view, *, alone):
    for width in range(20, 221):
        row = text_of(one_row(view, width, alone=alone))
        assert cell_len(row) <= width
        assert row == row.lstrip()
        assert "300" in row, "how far it is"


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (20, ("run", "300", "✖")),
        (50, ("300", "✖ policy collapse")),
        (80, ("run_grpo_high_lr", "finished", "300", "reward 0", "KL 0.287", "✖ policy collapse")),
        (120, ("run_grpo_high_lr", "reward 0 →", "KL 0.287 →", "✖ policy collapse since step 144", "GPU 94%")),
        (200, ("finished  all 300 steps", "reward ▅▆", "KL ▁▁▁", "since step 144", "GPU 94%", "ended ")),
    ],
)  # fmt: skip
def test_the_most_important_is_said_at_every_width(view, width, expected):
    row = text_of(one_row(view, width, alone=True))
    assert [part for part in expected if part not in row] == [], row


@pytest.mark.parametrize("width", [60, 80, 100, 140, 200])
def test_nothing_comes_and_goes_from_one_second_to_the_next(width):
    kinds = {
        tuple(re.findall(r"[a-z/]{2,}|━+", text_of(one_row(view, width, alone=False))))
        for steps in range(110, 130, 2)
        for quiet in range(0, 20, 2)
        for view in (make_view(make_run("run_grpo_8", steps, quiet=quiet)),)
    }
    named = {tuple(word for word in kind if word not in AGES) for kind in kinds}
    assert len({len(kind) for kind in named}) == 1, named
    assert {"running", "reward"} <= {*next(iter(named))}
    assert width < 80 or "ends" in next(iter(named)), "when it is done"


AGES = ("now", "ago", "s")

"""A run in one row, at any width; and screens of few rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from rich.cells import cell_len
from watching import (
    NOW,
    check_layout,
    in_sight,
    lines,
    press,
    settle,
    showing,
    text,
)

from verl_tui.records import Gpu, GpuReading
from verl_tui.rendering.one_row import one_row

if TYPE_CHECKING:
    from verl_tui.monitor import Monitor
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.rendering.text.piece import Piece

GPUS = GpuReading(NOW, (Gpu("0", "H100", 97.0), Gpu("1", "H100", 91.0)))


@pytest.fixture
def view(collapse: Monitor, monkeypatch: pytest.MonkeyPatch) -> View:
    """The run that collapses, on a host with two GPUs."""
    monkeypatch.setattr(collapse, "gpus", GPUS)
    return showing(collapse).view_at(NOW)


def words(row: list[Piece]) -> str:
    return "".join(piece for piece, _ in row)


@pytest.mark.parametrize("alone", [True, False])
def test_every_width_is_kept_to(view: View, *, alone: bool) -> None:
    for width in range(20, 221):
        row = words(one_row(view, width, alone=alone))
        assert cell_len(row) <= width
        assert row == row.strip()
        assert "300" in row, "how far it is"


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (20, ("run", "300", "✖1")),
        (50, ("300", "✖ policy-collapse")),
        (
            80,
            (
                "run_grpo_high_lr",
                "finished",
                "300",
                "reward 0",
                "KL 0.287",
                "✖ policy-collapse",
            ),
        ),
        (
            120,
            (
                "run_grpo_high_lr",
                "reward 0 →",
                "KL 0.287 →",
                "✖ policy-collapse since 144",
                "2 GPUs 94%",
            ),
        ),
        (
            200,
            (
                "finished  all 300 steps",
                "reward ▆▆▇",
                "KL ▁▁▁",
                "since 144",
                "2 GPUs 94%",
                "last record now",
            ),
        ),
    ],
)
def test_the_most_important_is_said_at_every_width(
    view: View, width: int, expected: tuple[str, ...]
) -> None:
    row = words(one_row(view, width, alone=True))
    assert [part for part in expected if part not in row] == [], row


async def test_few_rows_look_designed(collapse: Monitor) -> None:
    app = showing(collapse)
    async with app.run_test(size=(20, 1)) as pilot:
        for size in [
            *((20, 1), (60, 1), (220, 1), (40, 2), (20, 3)),
            *((120, 3), (80, 6), (20, 6), (40, 12)),
        ]:
            await pilot.resize_terminal(*size)
            await settle(pilot)
            check_layout(app)
            shown = lines(app)
            assert "300" in shown[0]
            assert not {"╭", "╰"} & set(text(app)), (
                "frames take the rows that there are"
            )
            assert any("reward" in row for row in shown) or size[1] == 1
            assert "✖" in text(app) or size == (40, 2)
            for row in shown[1:]:
                assert row.strip(), "no row is wasted"
        # In a single row tab goes through the panels.
        await pilot.resize_terminal(80, 1)
        await settle(pilot)
        assert "run_grpo_high_lr" in text(app)
        await press(pilot, "tab")
        await settle(pilot)
        assert in_sight(app) == {"charts"}
        assert "reward" in text(app)
        await press(pilot, "tab")
        await settle(pilot)
        assert "policy-collapse" in text(app)
        await press(pilot, "escape")
        await settle(pilot)
        assert "300" in text(app)

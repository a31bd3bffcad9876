"""Many runs with long names: the list stays readable, and takes room where the screen has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from watching import (
    check_layout,
    dashboard,
    lines,
    loaded,
    press,
    settle,
    until,
    write_run,
)

from verl_tui.tui.panels.charts import ChartsPanel
from verl_tui.tui.panels.runs import RunsPanel

if TYPE_CHECKING:
    from pathlib import Path

    from verl_tui.tui.app import VerlApp

NAMES = [f"exp{number:03}_grpo_gsm8k_lr1e-6" for number in range(40)]


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    """Forty runs whose names differ in a number."""
    for name in NAMES:
        write_run(tmp_path, name, 3)
    return tmp_path


def rows(app: VerlApp) -> list[str]:
    """Return the rows of the run list."""
    panel = dashboard(app).query_one(RunsPanel)
    inner = panel.content_region
    shown = (line[inner.x : inner.right] for line in lines(app)[inner.y : inner.bottom])
    return [row for row in shown if row.strip()]


async def test_no_two_rows_look_alike(sweep: Path) -> None:
    app = loaded(sweep)
    async with app.run_test(size=(140, 45)) as pilot:
        for size, whole in (((140, 45), True), ((120, 40), False), ((200, 50), True)):
            await pilot.resize_terminal(*size)
            await settle(pilot)
            said = [row[4:].split()[0] for row in rows(app)]
            assert len(said) > 20
            assert len(set(said)) == len(said)
            assert all(
                "ended" not in row or row.split()[-2] in NAMES for row in rows(app)
            ), "the word goes first"
            if whole:
                assert said == NAMES[: len(said)]
            else:
                assert said[7].startswith("exp007")
            check_layout(app)
        # The list gives the room back.
        await pilot.resize_terminal(140, 45)
        await settle(pilot)
        assert dashboard(app).query_one(RunsPanel).size.width > 26
        for size in [(120, 40), (80, 24), (40, 12), (140, 45), (60, 20)]:
            await pilot.resize_terminal(*size)
            await settle(pilot)
            check_layout(app)
            charts = dashboard(app).query_one(ChartsPanel)
            if size[0] < 120:
                await until(
                    pilot,
                    lambda on=charts, wide=size[0]: on.outer_size.width == wide,
                )
        await press(pilot, "f2")
        check_layout(app)

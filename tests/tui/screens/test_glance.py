"""A run in one row, at any width; and screens of few rows."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from watching import (
    NOW,
    check_layout,
    dashboard,
    in_sight,
    lines,
    press,
    settle,
    showing,
    text,
)

from verl_tui.config import Config
from verl_tui.health.finding import Verdict
from verl_tui.monitor import load
from verl_tui.records import Gpu, GpuReading
from verl_tui.rendering.one_row import Variant, fitting, one_row
from verl_tui.rendering.run_list.run_entries import EntryCache

if TYPE_CHECKING:
    from pathlib import Path

    from verl_tui.monitor import Monitor
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.tui.widgets.line import Piece

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
        assert "8400" in row, "how far it is"


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (20, ("run", "8400", "✖1")),
        (50, ("8400", "✖ policy-collapse")),
        (
            80,
            (
                "run_ppo_collapse",
                "finished",
                "8400",
                "0.0631",
                "KL 0.315",
                "✖ policy-collapse",
            ),
        ),
        (
            120,
            (
                "run_ppo_collapse",
                "reward 0.0631 →",
                "KL 0.315 →",
                "✖ policy-collapse since 5000",
                "2 GPUs 94%",
            ),
        ),
        (
            200,
            (
                "finished  all 8400 steps",
                "reward ▅▆▇",
                "KL ▁▁▁",
                "since 5000",
                "2 GPUs 94%",
                "sources ok",
            ),
        ),
    ],
)
def test_the_most_important_is_said_at_every_width(
    view: View, width: int, expected: tuple[str, ...]
) -> None:
    row = words(one_row(view, width, alone=True))
    assert [part for part in expected if part not in row] == [], row


def test_a_preview_is_called_one(view: View, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view.run, "preview", True)
    row = words(one_row(replace(view, loading=True), 200, alone=True))
    assert re.search(r"preview, reading \d+%", row), row
    assert "policy-collapse" in row, "what its end shows"
    monkeypatch.setitem(
        view.monitor.verdicts, view.run.name if view.run else "", Verdict()
    )
    row = words(one_row(replace(view, loading=True), 200, alone=True))
    assert "nothing found" not in row, "the rest has not been read"


def test_its_place_among_the_runs_is_said_in_forty_columns(tmp_path: Path) -> None:
    steps = "".join(f"step:{step} - critic/score/mean:0.5\n" for step in range(1, 48))
    for number in range(1, 13):
        path = tmp_path / f"an-experiment-{number}.log"
        path.write_text(
            f"{steps}Traceback (most recent call last):\nRuntimeError: no disk\n"
        )
        os.utime(path, (NOW - 3600.0, NOW - 3600.0))
    row = words(
        one_row(
            showing(load([str(tmp_path)], Config(), NOW)).view_at(NOW), 40, alone=True
        )
    )
    assert "/12  crashed  47  ✖ crash" in row


FIGURES = {
    "reward": 0.4,
    "kl": 0.01,
    "entropy": 0.5,
    "completions/mean_length": 200.0,
}


@pytest.mark.parametrize(
    ("figures", "said", "badge"),
    [
        (FIGURES, ("✓ nothing found", "good"), "ok"),
        ({"reward": 0.4, "kl": 0.01}, ("○ nothing found", "dim"), "dim"),
        ({"my_number": 0.4}, ("○ nothing to judge", "dim"), "nothing"),
    ],
)
def test_green_is_what_was_judged_in_all(
    figures: dict[str, float], said: tuple[str, str], badge: str, tmp_path: Path
) -> None:
    path = tmp_path / "log.jsonl"
    steps = [
        {"step": i, **{key: value + i % 7 / 100 for key, value in figures.items()}}
        for i in range(1, 90)
    ]
    path.write_text("".join(json.dumps(step) + "\n" for step in steps))
    os.utime(path, (NOW, NOW))
    view = showing(load([str(path)], Config(), NOW)).view_at(NOW)
    row = one_row(view, 120, alone=True)
    assert said in row
    assert ("good" in [role for _, role in row]) is (badge == "ok")
    assert view.run is not None
    assert EntryCache().badge(view, view.run).badge == badge


def displayed(tmp_path: Path, total: int | None) -> str:
    """Return the row of a run that has just made its thirtieth step."""
    path = tmp_path / "verl_logs.jsonl"
    lines = [
        {"scope": "rollout", "step": step, "reward_mean": 2.5} for step in range(1, 31)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    os.utime(path, (NOW - 5.0, NOW - 5.0))
    if total:
        (tmp_path / "config.yaml").write_text(
            f"trainer: {{total_training_steps: {total}}}\n"
        )
    view = showing(load([str(tmp_path)], Config(), NOW)).view_at(NOW)
    return words(one_row(view, 200, alone=True))


def test_progress_is_said_as_a_colleague_would(tmp_path: Path) -> None:
    assert "running  step 30; total unknown" in displayed(tmp_path, None)
    assert "running  step 30 of 60 (50%)" in displayed(tmp_path, 60)
    assert "finished  all 30 steps" in displayed(tmp_path, 30)


def test_whether_there_are_samples_is_said(tmp_path: Path, collapse: Monitor) -> None:
    assert "  no samples  " in displayed(tmp_path, 30)
    view = showing(collapse).view_at(NOW)
    assert "samples of " in words(one_row(view, 250, alone=True))


def test_a_number_of_steps_says_that_it_is_one(tmp_path: Path) -> None:
    folder = tmp_path / "qwen2"
    folder.mkdir()
    path = folder / "train.log"
    text = "".join(f"step:{step} - critic/score/mean:0.5\n" for step in range(1, 211))
    path.write_text(text)
    (folder / "config.yaml").write_text("trainer: {total_training_steps: 210}\n")
    os.utime(path, (NOW - 420.0, NOW - 420.0))
    view = showing(load([str(folder)], Config(), NOW)).view_at(NOW)
    assert words(one_row(view, 42, alone=False)).endswith(
        "finished  all 210 steps  7m ago"
    )
    assert words(one_row(view, 27, alone=False)).endswith("finished  210 steps")
    assert words(one_row(view, 25, alone=False)).endswith("finished  step 210")


def test_a_crash_is_reported_where_there_is_room_for_it(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_text(
        "step:1 - a:1\nTraceback (most recent call last):\nRuntimeError: no disk\n"
    )
    view = showing(load([str(path)], Config(), NOW)).view_at(NOW)
    assert "✖ the run crashed at step 1: RuntimeError: no disk" in words(
        one_row(view, 120, alone=True)
    )


def test_without_rewards_and_losses_the_first_chart_is_said(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    lines = [{"step": step, "data": {"distance": 2.5}} for step in (1, 2)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    view = showing(load([str(path)], Config(), NOW)).view_at(NOW)
    assert "distance ▄▄ 2.5" in words(one_row(view, 70, alone=True))


def test_where_there_are_no_rewards_the_loss_is_said(tmp_path: Path) -> None:
    path = tmp_path / "sft.log"
    path.write_text(
        "".join(f"step:{n} - train/loss:{1 / n} - train/lr:0.1\n" for n in (1, 2))
    )
    view = showing(load([str(path)], Config(), NOW)).view_at(NOW)
    assert "loss █▁ 0.5" in words(one_row(view, 200, alone=True))


def test_the_score_of_validation_is_said_in_sixty_columns(tmp_path: Path) -> None:
    lines = [
        f"step:{n} - critic/score/mean:0.9 - val-core/gsm8k/acc/mean@1:0.49{n}"
        for n in (1, 2)
    ]
    path = tmp_path / "qwen2_7b_function_rm.log"
    path.write_text("\n".join([*lines, ""]))
    view = showing(load([str(path)], Config(), NOW)).view_at(NOW)
    assert "val 0.492" in words(one_row(view, 58, alone=False))


def test_of_an_evaluation_nothing_is_found_and_nothing_is_missed(
    tmp_path: Path,
) -> None:
    path = tmp_path / "eval.jsonl"
    path.write_text(
        json.dumps({"prompt": "2 + 2", "response": "4", "score": 1.0}) + "\n"
    )
    view = showing(load([str(path)], Config(), NOW)).view_at(NOW)
    row = words(one_row(view, 200, alone=True))
    assert "val 1" in row
    assert "nothing found" not in row, "no rule has judged it"


def test_after_a_restart_the_value_is_of_the_newest_segment(tmp_path: Path) -> None:
    lines = [(step, 0.25) for step in range(1, 40)] + [
        (step, 0.75) for step in range(1, 5)
    ]
    text = "".join(
        f'{{"step":{step},"data":{{"critic/score/mean":{value}}}}}\n'
        for step, value in lines
    )
    (tmp_path / "m.jsonl").write_text(text)
    row = words(
        one_row(
            showing(load([str(tmp_path)], Config(), NOW)).view_at(NOW), 200, alone=True
        )
    )
    assert "reward ▄▄▄▄ 0.75 →" in row, "nothing of what was before"


def test_where_charts_are_in_sight_their_values_are_not_said_twice(view: View) -> None:
    assert "reward" not in words(one_row(view, 120, alone=False))


@given(
    st.lists(
        st.lists(
            st.tuples(st.integers(0, 9), st.integers(1, 30)), min_size=1, max_size=4
        ),
        min_size=1,
        max_size=6,
    ),
    st.integers(30, 120),
)
def test_a_row_is_as_long_as_it_may_be(
    parts: list[list[tuple[int, int]]], width: int
) -> None:
    made = [
        [
            Variant(worth, (("x" * cells, ""),))
            for worth, cells in sorted(part, key=lambda one: -one[1])
        ]
        for part in parts
    ]
    row = words(fitting(made, width))
    assert 0 < len(row) <= width
    whole = sum(part[0].width for part in made) + 2 * (len(made) - 1)
    assert len(row) == whole or whole > width, (
        "nothing is left out where all of it fits"
    )


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
            assert "8400" in shown[0]
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
        assert "run_ppo_collapse" in text(app)
        await press(pilot, "tab")
        await settle(pilot)
        assert in_sight(app) == {"charts"}
        assert "reward" in text(app)
        await press(pilot, "tab")
        await settle(pilot)
        assert "policy-collapse" in text(app)
        await press(pilot, "escape")
        await settle(pilot)
        assert "8400" in text(app)


async def test_what_is_opened_in_few_rows_says_something(collapse: Monitor) -> None:
    app = showing(collapse)
    async with app.run_test(size=(60, 1)) as pilot:
        for rows in (1, 2):
            await pilot.resize_terminal(60, rows)
            for key in ("enter", "c", "t", "i", "C", "A", "question_mark"):
                await press(pilot, "f3", key)
                assert app.screen is not dashboard(app), key
                assert not {"╭", "╰"} & set(text(app)), key
                assert "Back" not in text(app), "keys are no news"
                assert lines(app)[0].strip(), key
                check_layout(app)
                await press(pilot, "escape")

"""The validation score beside the reward."""

from __future__ import annotations

import math
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st
from run_views import make_run, make_view

from verl_tui.rendering.charts.chart_data import ChartData, ChartLine
from verl_tui.rendering.charts.chart_row import chart_row
from verl_tui.rendering.charts.renderer import ChartRenderer
from verl_tui.rendering.charts.symbols import ASCII, UNICODE
from verl_tui.rendering.charts.title_row import title_row
from verl_tui.rendering.charts.validation import (
    newest_and_best,
    on_one_scale,
    score_beside,
)
from verl_tui.rendering.one_row import one_row
from verl_tui.runs.pyramid import Pyramid

SCORE = "val-core/math/acc/mean@1"


class Column:
    """A series as a chart wants it."""

    def __init__(self, values: list[float], apart: int = 1) -> None:
        self.steps = array("q", range(0, len(values) * apart, apart))
        self.values = array("d", values)
        self.pyramid = Pyramid(self.steps, self.values)
        self.pyramid.catch_up()


@pytest.mark.parametrize(
    ("reward", "score", "together"),
    [
        ([0.1, 0.7], [0.6, 0.65], True),
        ([-1.0, 1.0], [0.0, 0.4], True),
        ([0.02, 0.05], [0.3, 0.5], True),
        ([0.0001, 0.001], [0.3, 0.5], False),
        ([-5.0, 5.0], [0.0, 1.0], False),
        ([0.0, 0.9], [20.0, 70.0], False),
        ([-400.0, -150.0], [-380.0, -200.0], True),
        ([0.0, 2.0], [0.2, 0.9], True),
        ([0.0, 0.0], [0.2, 0.9], True),
        ([math.nan], [0.2], True),
        ([], [], True),
        ([math.inf, 0.5], [0.2], True),
    ],
)
def test_what_is_of_about_the_same_size_shares_an_axis(
    reward: list[float], score: list[float], *, together: bool
) -> None:
    assert on_one_scale(Column(reward), Column(score)) is together
    assert on_one_scale(Column(score), Column(reward)) is together


@given(st.lists(st.floats(), max_size=9), st.lists(st.floats(), max_size=9))
def test_no_value_is_too_odd_to_be_judged(one: list[float], other: list[float]) -> None:
    assert on_one_scale(Column(one), Column(other)) in (True, False)


def scored(values: list[float], **more: list[float]) -> object:
    return make_run(steps=len(values), columns={SCORE: values, **more})


def test_newest_and_best_are_reported_with_the_best_ones_step() -> None:
    assert list(newest_and_best(scored([0.2, 0.706, 0.697]))) == [
        "val 0.697, best 0.706 @2",
        "val 0.697, best 0.706",
        "val 0.697",
    ]
    assert next(newest_and_best(scored([0.2, 0.706]))) == "val 0.706, best so far"
    assert list(newest_and_best(scored([0.2]))) == ["val 0.2"]
    assert list(newest_and_best(make_run(steps=3))) == []


def test_a_run_is_looked_at_for_a_score_on_its_rewards_scale() -> None:
    assert score_beside(scored([0.5] * 9)) == SCORE
    assert score_beside(scored([50.0] * 9)) is None
    assert score_beside(make_run(steps=9)) is None


def paired(**more: object) -> ChartData:
    reward = ChartLine(Column([0.1 + n / 400 for n in range(100)]), role="reward")
    score = ChartLine(Column([0.9, 0.8, 0.9], 40), "points", "validation", "accuracy")
    words = ("val 0.9, best so far", "val 0.9")
    return ChartData("r", "reward", lines=(reward, score), beside=words, **more)


def text(data: ChartData, width: int, cursor: int | None = None) -> str:
    return "".join(part for part, _ in title_row(data, width, cursor, UNICODE))


def test_the_title_says_as_much_of_the_score_as_fits() -> None:
    assert "◆ val 0.9, best so far" in text(paired(), 60)
    narrow = text(paired(), 28)
    assert "◆ val 0.9" in narrow
    assert "best" not in narrow
    assert "val" not in text(paired(), 16)


def test_a_target_and_smoothing_are_still_said_beside_the_score() -> None:
    assert "target 0.95" in text(paired(notes=("target 0.95",)), 70)
    assert "~0.9" in text(paired(smoothing=0.9, by_noise=True), 36)


def test_the_cursor_reads_the_score_where_it_was_last() -> None:
    assert "◆ val 0.8 @ 40" in text(paired(), 60, 61)


@pytest.mark.parametrize("ascii_only", [False, True])
def test_points_of_a_score_are_joined(*, ascii_only: bool) -> None:
    drawn = ChartRenderer(ascii_only=ascii_only).rows(paired(), 60, 12)
    joined = [part for row in drawn[1:-2] for part, role in row if role == "validation"]
    markers = (ASCII if ascii_only else UNICODE).points[0]
    signs = sum(part.count(markers) for part in joined)
    cells = sum(len(part) for part in joined)
    assert signs == 3
    assert cells > 40, "the line between them is drawn, too"


def test_a_chart_of_one_row_has_the_score_before_the_value_where_there_is_room() -> (
    None
):
    def row(width: int) -> str:
        return "".join(part for part, _ in chart_row(paired(), width, None, UNICODE))

    assert row(70).rstrip().endswith("↑")
    assert "◆ val 0.9  0.348" in row(70)
    assert len(row(70)) == 70


@pytest.mark.parametrize(
    ("width", "said"), [(30, False), (37, False), (38, True), (58, True)]
)
def test_a_narrow_row_has_the_score_beside_a_short_sparkline(
    width: int, *, said: bool
) -> None:
    row = "".join(part for part, _ in chart_row(paired(), width, None, UNICODE))
    assert ("val 0.9  0.348" in row) is said
    assert ("val" in row) is said
    assert len(row) == width


def test_a_sparkline_beside_a_score_stays_as_long_while_digits_change() -> None:
    def spark(score: str) -> str:
        data = paired()._replace(beside=(f"val {score}",))
        row = "".join(part for part, _ in chart_row(data, 40, None, UNICODE))
        return row.partition("val")[0].rstrip()

    assert spark("0.5") == spark("0.499")


def test_the_header_has_the_score_beside_the_reward_where_there_is_room() -> None:
    run = scored([0.2, 0.706, 0.697])
    wide = "".join(part for part, _ in one_row(make_view(run), 160, alone=False))
    assert "· val 0.697, best 0.706 @2" in wide
    alone = "".join(part for part, _ in one_row(make_view(run), 160, alone=True))
    assert "val 0.697, best 0.706 @2" in alone

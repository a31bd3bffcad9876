"""The strip below a chart: shades of how the values of each step are distributed."""

from __future__ import annotations

import pytest
from chart_columns import Column
from hypothesis import given
from hypothesis import strategies as st
from jsonl import write_jsonl

from verl_tui.config import Config
from verl_tui.distributions import of_values, shares
from verl_tui.monitor import load
from verl_tui.rendering.charts.chart_data import ChartData, ChartLine, Heat, lined_up
from verl_tui.rendering.charts.page import list_charts
from verl_tui.rendering.charts.plan import ChartLook
from verl_tui.rendering.charts.planned_data import chart_data
from verl_tui.rendering.charts.renderer import ChartRenderer
from verl_tui.rendering.session.snapshot import View
from verl_tui.rendering.text.ascii_table import in_ascii
from verl_tui.rendering.text.piece import text_of


def bins(*values):
    found = of_values(values)
    return found.bins


@pytest.mark.parametrize(
    ("values", "limits", "found"),
    [
        ((0, 0, 0, 1), [0.5], [0.75, 0.25]),
        ((0, 0.5, 1, 1), [0.25, 0.5, 0.75], [0.25, 0, 0.25, 0.5]),
        ((0, 0.5, 0.5, 0.5), [0.5], [0.25, 0.75]),
        ((0, 0.5, 0.8, 0.8), [0.5], [0.25, 0.75]),
        ((1, 1, 1), [0.5, 1], [0, 0, 1]),
        ((0.699999988079071, 0.0), [0.1, 0.7], [0.5, 0, 0.5]),
        ((-1, -0.8, 1), [-0.8], [1 / 3, 2 / 3]),
        ((2, 3), [0, 1, 4], [0, 0, 1, 0]),
        ((1, 2), [], [1]),
    ],
)
def test_a_value_at_a_limit_lies_above_it(values, limits, found):
    assert shares(bins(*values), limits) == pytest.approx(found)


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1),
    st.lists(st.floats(-1e6, 1e6), unique=True),
)
def test_shares_are_of_all_values_and_off_by_a_bin_at_most(values, limits):
    limits.sort()
    found = shares(bins(*values), limits)
    assert sum(found) == pytest.approx(1)
    each = (max(values) - min(values)) / 30
    for at, limit in enumerate(limits, start=1):
        slack = each * 1.001 + abs(limit) * 2e-6
        least, most = (
            sum(one < limit + way * slack for one in values) / len(values)
            for way in (-1, 1)
        )
        assert least - 1e-9 <= sum(found[:at]) <= most + 1e-9


def chart(scores, last, **more):
    """Return a chart up to a step, with the scores of some steps."""
    line = ChartLine(Column(range(last + 1), [0.5] * (last + 1)), role="reward")
    heat = Heat("scores", [*scores], [bins(*of) for of in scores.values()])
    return ChartData("reward", lines=(line,), heat=heat, **more)


def strip(data, width=60, height=24):
    """Return the strip of a chart: from its title on."""
    rows = [*map(text_of, ChartRenderer().rows(data, width, height))]
    assert len(rows) == height
    at = next(
        (at for at, row in enumerate(rows) if row.strip().startswith("scores")), None
    )
    return [] if at is None else [row.rstrip() for row in rows[at:]]


def test_each_column_shows_its_step_and_gaps_stay_blank():
    half = {
        step: [0, 0, 0, 1] if step < 50 else [0.6, 1, 1, 1]
        for step in range(0, 100, 10)
    }
    del half[20], half[30], half[40]
    drawn = strip(chart(half, 99), 77)
    assert drawn[0].split() == [
        "scores",
        *["░", "few", "▒", "10%", "▓", "25%", "█", "50%"],
    ]
    labels = [row.partition("│")[0].strip() for row in drawn[1:]]
    assert labels == ["≥0.8", "≥0.6", "≥0.4", "≥0.2", "<0.2"]
    cells = [row.partition("│")[2] for row in drawn[1:]]
    top, full = cells[0], cells[4]
    assert {*top} == {"▓", " ", "█"}, "25, 0 and 75%"
    assert {*full} == {"█"}
    assert top.index("█") / len(top) == pytest.approx(0.5, abs=0.03)
    gap = top.index(" "), top.rindex(" ")
    assert [one / len(top) for one in gap] == pytest.approx([0.41, 0.5], abs=0.05)
    assert not cells[2].strip(), "no score lies there"
    assert cells[1].strip() == "▓" * len(cells[1].strip())


@pytest.mark.parametrize(
    ("scores", "labels"),
    [
        ([[0, 1]], ["≥0.8", "≥0.6", "≥0.4", "≥0.2", "<0.2"]),
        ([[-1, 1]], ["≥0.5", "≥0", "≥-0.5", "<-0.5"]),
        ([[120, 1900]], ["≥1.5k", "≥1k", "≥500", "<500"]),
        ([[0, 1]] * 39 + [[0, 1000]], ["≥0.8", "≥0.6", "≥0.4", "≥0.2", "<0.2"]),
        ([[0]] * 39 + [[0, 1000]], ["≥800", "≥600", "≥400", "≥200", "<200"]),
        ([[0.5]] * 9, []),
    ],
)
def test_limits_are_round_and_one_odd_step_does_not_stretch_them(scores, labels):
    drawn = strip(chart(dict(enumerate(scores)), len(scores)), 60, 24)
    assert [row.partition("│")[0].strip() for row in drawn[1:]] == labels


@pytest.mark.parametrize(
    ("width", "height", "rows"), [(60, 14, 0), (60, 15, 3), (60, 18, 5), (23, 40, 0)]
)
def test_it_takes_a_third_of_the_plot_at_most(width, height, rows):
    scores = {step: [0, 0.3, 0.6, 1] for step in range(40)}
    assert len(strip(chart(scores, 40), width, height)) == rows
    lettered = chart(scores, 40)
    lines = [lettered.lines[0]._replace(sign=sign) for sign in "ab"]
    assert not strip(lettered._replace(lines=tuple(lines)), 60, 24)


def test_shades_differ_in_ascii():
    assert len({*in_ascii(" ░▒▓█")}) == 5


def test_scores_and_lengths_of_dumps(tmp_path):
    """What was read for the figures of samples is drawn, and nothing else is read."""
    dumps = tmp_path / "run" / "rollouts"
    for step in range(1, 21):
        rows = [
            {
                "input": "q",
                "output": "word " * (4 * step + n),
                "score": n % 4 / 3,
                "step": step,
            }
            for n in range(16)
        ]
        write_jsonl(dumps / f"{step}.jsonl", rows)
    (tmp_path / "run" / "train.log").write_text(
        "".join(
            f"step:{n} - critic/score/mean:{n / 40} - response_length/mean:{n * 9}\n"
            for n in range(1, 21)
        )
    )
    monitor = load([str(tmp_path / "run")], Config(), 1.8e9)
    (run,) = monitor.runs.values()
    for dump in dumps.iterdir():
        dump.unlink()
    view = View(monitor, run, 1.8e9)
    said = {}
    for plan in list_charts(view):
        (data,) = lined_up([chart_data(plan, view, ChartLook())])
        rows = [*map(text_of, ChartRenderer().rows(data, 70, 24))]
        title = next((row for row in rows if " a step" in row), "")
        said[plan.indicator or plan.key] = title.partition("  ░")[0].strip()
    assert said["reward"] == "scores of samples, 16 a step"
    assert said["response_length"] == "characters of responses as logged, 16 a step"
    assert said["samples/score"] == "values, 16 a step"
    assert not said["samples/repetition"]

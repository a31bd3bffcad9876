"""What is drawn of a chart: its band, its ends, its smoothing, its marks; charts that line up."""

from __future__ import annotations

import random
import re
from math import inf

import pytest
from chart_columns import Column
from hypothesis import given
from hypothesis import strategies as st
from run_views import make_run

from verl_tui.config import Config
from verl_tui.monitor import Monitor
from verl_tui.rendering.charts.chart_data import (
    ANY,
    MARKS,
    ChartData,
    ChartLine,
    Mark,
    legend,
    lined_up,
)
from verl_tui.rendering.charts.downsample import weight_for
from verl_tui.rendering.charts.plan import ChartLook, single_metric
from verl_tui.rendering.charts.planned_data import chart_data, with_right
from verl_tui.rendering.charts.renderer import ChartRenderer
from verl_tui.rendering.session.snapshot import View
from verl_tui.rendering.text.piece import text_of


def test_the_band_is_a_shade_where_there_are_backgrounds_and_else_lines():
    points = Column(range(50), [i / 50 for i in range(50)])
    data = ChartData("kl", lines=(ChartLine(points),), band=(-inf, 0.5))
    drawing = ChartRenderer()
    dotted = drawing.rows(data, 60, 12)
    drawing.shades = True
    shaded = drawing.rows(data, 60, 12)
    assert {style for row in dotted for _, style in row} >= {"band", "line"}
    assert not any("healthy" in style for row in dotted for _, style in row)
    assert not any(style == "band" for row in shaded for _, style in row)
    on = [
        y
        for y, row in enumerate(shaded)
        if any(style.endswith("+healthy") for _, style in row)
    ]
    assert on == [*range(on[0], 10)]
    assert 4 <= len(on) <= 5
    assert all(sum(len(text) for text, _ in row) == 60 for row in shaded[1:])
    without = drawing.rows(data._replace(band=ANY), 60, 12)
    assert not any(style.endswith("+healthy") for row in without for _, style in row)


def chart(steps, scale=1.0, key="m"):
    """Return a chart of a metric that rises."""
    values = [scale * n for n in range(len(steps))]
    return ChartData(key, lines=(ChartLine(Column(steps, values)),))


@given(
    st.lists(
        st.lists(st.integers(0, 5000), min_size=1, max_size=40, unique=True).map(
            lambda steps: sorted({*steps, 0, 5000} if len(steps) > 5 else steps)
        ),
        min_size=1,
        max_size=5,
    ),
    st.integers(24, 100),
    st.integers(6, 20),
)
def test_all_charts_show_what_any_of_them_shows(series, width, height):
    charts = [chart(steps, 10.0**n) for n, steps in enumerate(series)]
    aligned = lined_up(charts)
    whole = min(one[0] for one in series), max(one[-1] for one in series)
    drawings = [ChartRenderer() for _ in aligned]
    for drawing, one in zip(drawings, aligned, strict=True):
        assert one.shown == whole
        drawing.rows(one, width, height)
    assert len({(drawing.left, drawing.window) for drawing in drawings}) == 1


VALUES = [0.0, 0.2, 0.9, 0.4, 0.3, 0.5]
DATA = ChartData("r", lines=(ChartLine(Column(range(6), VALUES), role="reward"),))


def view_of(run):
    monitor = Monitor(Config())
    monitor.runs[run.name] = run
    return View(monitor, run, 0.0)


def test_after_a_restart_the_end_is_that_of_the_present_segment():
    def at(data):
        rows = ChartRenderer().rows(data, 50, 12)[1:-2]
        (row,) = (text_of(row) for row in rows if any("●" in t for t, _ in row))
        return row.index("●")

    present = ChartData(
        "r", lines=(ChartLine(Column(range(4), VALUES[:4])),), reach=(0, 5)
    )
    data = DATA._replace(reach=(0, 5))
    assert at(data._replace(end=3)) == at(present) < at(data)


def test_after_a_restart_the_best_is_one_that_counts():
    def at(data):
        rows = ChartRenderer().rows(data, 50, 12)
        (row,) = (text_of(row) for row in rows if any("★" in t for t, _ in row))
        return row.index("★")

    data = DATA._replace(best=1, reach=(0, 5))
    assert at(data._replace(end=1)) < at(data) == at(data._replace(end=3))


@pytest.mark.parametrize(
    ("key", "best"),
    [
        ("critic/score/mean", 1),
        ("eval_loss", -1),
        ("eval_accuracy", 1),
        ("eval_runtime", 0),
        ("eval_num_tokens", 0),
        ("eval_samples_per_second", 0),
        ("actor/pg_loss", 0),
    ],
)
def test_the_best_is_marked_where_more_or_less_is_better(key, best):
    run = make_run(steps=4, columns={key: [0.1, 0.3, 0.2, 0.2]})
    found = chart_data(single_metric(run, key), view_of(run), ChartLook())
    assert found.best == best


def noisy(share, count=1000):
    """Return a rise from 0 to 1 with so much noise."""
    chance = random.Random(7)
    return [i / count + chance.gauss(0, share) for i in range(count)]


@pytest.mark.parametrize(
    ("noise", "weight"), [(0.0, 0.0), (0.01, 0.0), (0.06, 0.6), (0.2, 0.9), (5.0, 0.97)]
)
def test_the_noisier_the_smoother(noise, weight):
    assert weight_for(noisy(noise)) == weight


def test_seldom_but_far_is_noise_one_spike_is_none():
    rare = [float(i % 9 == 0) for i in range(1000)]
    assert weight_for(rare) == 0.97
    assert weight_for([*noisy(0.0), 50.0, *noisy(0.0)]) == 0.0


def smoothly(data, width=40, height=12):
    drawing = ChartRenderer()
    drawing.shades = True
    return drawing.rows(data, width, height)


def styles(rows):
    return {style for row in rows for _, style in row}


NOISY = ChartData(
    "kl", lines=(ChartLine(Column(range(1000), noisy(0.5))),), by_noise=True
)


def test_what_is_smoothed_says_so_and_hides_nothing():
    rows = smoothly(NOISY)
    assert {"line+around", "+around"} <= styles(rows)
    assert any("0.9" in text and style == "key" for text, style in rows[0])
    clean = styles(smoothly(NOISY._replace(by_noise=False)))
    assert not any("around" in style for style in clean)


@pytest.mark.parametrize("height", [5, 12])
@pytest.mark.parametrize("every", [1, 7, 50])
def test_checkpoints_stand_apart_and_displace_no_number(height, every):
    marks = tuple(Mark(step, "checkpoint") for step in range(0, 1000, 5 * every))
    shown, plain = (
        [*map(text_of, smoothly(data, 60, height))]
        for data in (NOISY._replace(marks=marks), NOISY)
    )
    assert re.findall(r"\d+", shown[-1]) == re.findall(r"\d+", plain[-1])
    (row,) = (one for one in shown[-2:] if "┴" in one or "┼" in one)
    assert re.search("[┴┼].{0,1}[┴┼]", row) is None


def test_the_title_tells_the_value_as_it_is():
    smooth = smoothly(NOISY)[0]
    raw = smoothly(NOISY._replace(by_noise=False))[0]
    values = [
        [text for text, style in row if style == "value"] for row in (smooth, raw)
    ]
    assert values[0] == values[1]


def test_a_new_mark_is_one_row_and_whatever_yields_it(monkeypatch):
    monkeypatch.setitem(MARKS, "rewind", ("«", "the data were rewound"))
    assert ("«", "the data were rewound") in legend()
    rows = ChartRenderer().rows(DATA._replace(marks=(Mark(2, "rewind"),)), 50, 12)
    assert [text for text, style in rows[-2] if style == "rewind"] == ["«"]


@pytest.mark.parametrize(
    ("values", "log_y", "note"),
    [
        ([0.0, 0.1, 5.0], True, ""),
        ([0.1, -0.1, 5.0], False, "linear y: below 0"),
        ([], True, ""),
    ],
)
def test_what_lies_below_0_has_a_linear_axis_and_says_so(values, log_y, note):
    run = make_run(steps=3, columns={"loss": values, "other": [1.0] * 3})
    view, look = view_of(run), ChartLook(log_y=True)
    data = chart_data(single_metric(run, "loss"), view, look)
    assert (data.log_y, data.note) == (log_y, note)
    other = chart_data(single_metric(run, "other"), view, look)
    both = with_right(other, data) if values else other
    assert (both.log_y, both.note) == (log_y, note)

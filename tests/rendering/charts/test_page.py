"""The page of charts: which they are, how many fit, and what needs no chart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from run_views import logged, make_run, make_view

from verl_tui.records import MetricRows
from verl_tui.rendering.charts.page import ChartPage, list_charts
from verl_tui.rendering.charts.plan import ChartLook, PlannedChart, plan_charts
from verl_tui.rendering.charts.planned_data import chart_data
from verl_tui.runs.run import Run

LR, ENTROPY, CLIP = "actor/lr", "actor/entropy", "actor/pg_clipfrac"


def run_of(name="grpo", lr=1e-6, steps=20):
    columns = {
        LR: [lr] * steps,
        CLIP: [0.0] * steps,
        ENTROPY: [0.1 * (n % 5) for n in range(steps)],
    }
    return make_run(name, steps=steps, columns=columns)


def listed(view, text="", revealed=None):
    found = list_charts(view, text, revealed)
    return [(one.key, one.in_row) for one in found]


REWARD = ("critic/score/mean", False)


def test_what_is_constant_comes_last():
    assert listed(make_view(run_of())) == [
        REWARD,
        (ENTROPY, False),
        (CLIP, True),
        (LR, True),
    ]


def charts_of(varying, constant, machines, *, large):
    found = [PlannedChart(f"key/{number}", "") for number in range(varying)]
    found += [
        PlannedChart(f"constant/{number}", "", in_row=True)
        for number in range(constant)
    ]
    found += [
        PlannedChart(f"machine/{number}", "", machine=True)
        for number in range(machines)
    ]
    found[:1] = [one._replace(large=large and varying > 0) for one in found[:1]]
    return ChartPage(tuple(found))


@given(
    st.integers(20, 240),
    st.integers(5, 80),
    st.integers(1, 120),
    st.integers(0, 30),
    st.integers(0, 30),
    st.booleans(),
    st.data(),
)
def test_every_chart_is_on_one_page_and_all_fit(
    width, height, varying, constant, machines, large, data
):
    listed = charts_of(varying, constant, machines, large=large)
    page = listed.fitted(width, height, None)
    seen: list[PlannedChart] = []
    for at in range(len(page.pages)):
        assert page.at == at
        charts, (tiles, headings, _) = page.charts, page.page
        assert len(tiles) == len(charts)
        headed = any(chart.machine for chart in charts)
        text = width < 48 or height < 6
        assert bool(headings) is (headed and height > (2 if text else 6))
        rooms = [*tiles, *headings]
        for chart, tile in zip(charts, tiles, strict=True):
            assert tile.height == 1 if chart.in_row else tile.height >= 1
            if not text and tile.height > 1:
                assert tile.height >= 6
                assert tile.width >= 26
        cells = [
            (x, y)
            for room in rooms
            for x in range(room.x, room.x + room.width)
            for y in range(room.y, room.y + room.height)
        ]
        assert len(cells) == len(set(cells)), "nothing overlaps"
        assert {0 <= x < width and 0 <= y < height for x, y in cells} == {True}
        if large and not at and (height >= 12 if text else True):
            first, *others = tiles
            assert all(
                first.width * first.height >= one.width * one.height for one in others
            )
        seen += charts
        page = page.next_page(1)
    assert seen == [*listed.listed]
    wanted = data.draw(st.sampled_from(listed.listed))
    assert wanted in listed.fitted(width, height, wanted.key).charts


@pytest.mark.parametrize(
    ("width", "height", "large", "plots", "lines"),
    [(30, 40, 12, 3, 10), (40, 52, 12, 5, 10), (30, 22, 12, 0, 10), (40, 14, 6, 0, 8)],
)
def test_the_large_chart_leaves_room_to_others(width, height, large, plots, lines):
    page = charts_of(30, 0, 0, large=True).fitted(width, height, None)
    first, *others = (tile.height for tile in page.page.tiles)
    assert first == large
    assert [min(one, 6) for one in others] == [6] * plots + [1] * lines


@given(st.integers(48, 240), st.integers(6, 80), st.integers(1, 120))
def test_a_large_chart_and_those_around_it_leave_no_gaps(width, height, count):
    page = charts_of(count, 0, 0, large=True).fitted(width, height, None)
    plots = [tile for tile in page.page.tiles if tile.height > 1]
    covered = {
        (x, y)
        for tile in plots
        for x in range(tile.x, tile.x + tile.width + 1)
        for y in range(tile.y, tile.y + tile.height)
    }
    lines = {tile.y for tile in page.page.tiles if tile.height == 1}
    assert covered == {
        (x, y) for x in range(width + 1) for y in range(height) if y not in lines
    }
    assert {*range(height - len(lines), height)} == lines


def trained_on(*keys):
    """Return a run of a few steps with these metrics."""
    return logged(
        Run("any"), MetricRows(keys, [1, 2], [[2.0, 1.0]] * len(keys), [0, 1])
    )


def test_where_there_are_no_rewards_the_loss_comes_first():
    tuned = trained_on("train/lr", "train/loss", "timing_s/step", "val/loss")
    assert [one.key for one in plan_charts(tuned, ())][:2] == ["train/loss", "val/loss"]
    preferences = trained_on("grad_norm", "rewards/chosen", "loss")
    assert plan_charts(preferences, ())[0].key == "loss"
    rewarded = trained_on("loss", "kl", "reward")
    assert plan_charts(rewarded, ())[0].key == "reward"
    assert plan_charts(tuned, ("timing_s/step",))[0].key == "timing_s/step"


def test_what_explains_the_reward_stands_beside_it_and_machines_come_last():
    run = trained_on(
        *("system/cpu", "system/gpu.1.gpu", "system/gpu.0.gpu", "perf/max_memory_gb"),
        *("timing_s/step", "timing_s/gen", "perf/throughput", "training/other"),
        *("actor/grad_norm", "response_length/mean", "actor/entropy", "actor/pg_loss"),
        *("actor/kl_loss", "actor/ppo_kl", "val-core/math/acc/mean@1"),
        *("critic/score/mean", "actor/lr"),
    )
    found = list_charts(make_view(run))
    keys = [one.key for one in found]
    assert len(keys) == len(run.keys) - 1, "two devices share a chart"
    assert keys[:6] == [
        *("critic/score/mean", "actor/ppo_kl", "actor/pg_loss", "actor/entropy"),
        *("response_length/mean", "actor/grad_norm"),
    ]
    assert [one.key for one in found if one.large] == ["critic/score/mean"]
    assert keys.index("training/other") < keys.index("timing_s/gen")
    machines = [one.machine for one in found]
    assert machines == sorted(machines)
    (both,) = (one for one in found if one.devices)
    assert both.label == "GPU 0–1 utilisation"
    assert both.devices == ("system/gpu.0.gpu", "system/gpu.1.gpu")
    assert both.shows("system/gpu.1.gpu")
    assert not any(one.large for one in list_charts(make_view(run), "a"))
    pinned = list_charts(make_view(run, pins=("system/gpu.1.gpu",)))
    assert pinned[0].key == "system/gpu.1.gpu"
    assert not any(one.large or one.devices for one in pinned)


@pytest.mark.parametrize("count", [2, 10, 11, 64])
def test_devices_have_letters_where_these_tell_them_apart(count):
    columns = {f"gpus/{n}/util": [n + s % 9 for s in range(30)] for n in range(count)}
    view = make_view(make_run(steps=30, columns=columns))
    view.monitor.band = lambda *_: (None, None)
    (plan,) = (one for one in list_charts(view) if one.devices)
    signs = [line.sign for line in chart_data(plan, view, ChartLook()).lines]
    assert signs == ([*map(str, range(count))] if count <= 10 else [""] * count)


def test_a_policy_kl_that_never_moves_leaves_its_place_to_the_other():
    kl = {"actor/ppo_kl": [0.0] * 20, "actor/kl_loss": [n / 20 for n in range(20)]}
    found = list_charts(make_view(make_run(steps=20, columns=kl)))
    assert [one.key for one in found][1:] == ["actor/kl_loss", "actor/ppo_kl"]


def test_what_the_large_chart_shows_is_not_shown_again_beside_it():
    steps = [*range(20)]
    reward = [n / 20 for n in steps]
    columns = {
        "critic/score/mean": reward,
        "critic/rewards/mean": [one + 1e-4 for one in reward],
        "samples/score": reward,
        "env/reward_mean": [*reward[:10], *reward[:10]],
        "rewards/format/mean": [one / 2 for one in reward],
        "rewards/answer/mean": [one**2 for one in reward],
        "critic/score/std": [0.1 * (n % 5) for n in steps],
    }
    run = make_run(steps=20, columns=columns)
    view = make_view(run)

    def repeated(**more):
        found = list_charts(view, **more)
        last = [one.key for one in found if one.repeats]
        assert last == [one.key for one in found][len(found) - len(last) :]
        return {*last}

    part = "rewards/format/mean"
    again = {"critic/rewards/mean", "samples/score", part, "rewards/answer/mean"}
    rows = [one.label for one in list_charts(view) if one.repeats]
    assert {"part format", "part answer"} < {*rows}
    assert repeated() == again
    assert repeated(revealed=part) == again - {part}
    assert not any(one.repeats for one in list_charts(view, "reward"))


def test_the_caption_says_where_what_is_not_shown_stands():
    def caption(page):
        return page.caption(ChartLook(), make_view(run_of()), "", ())

    page = charts_of(30, 8, 12, large=True).fitted(138, 22, None)
    assert caption(page) == ("charts 1–6 of 38 · machine 12 · chart.page_down")
    last = page.fitted(138, 22, "machine/11")
    assert caption(last) == "charts 38 · machine 10–12 of 12 · chart.page_up"
    assert caption(charts_of(6, 0, 0, large=True).fitted(138, 22, None)) == ""

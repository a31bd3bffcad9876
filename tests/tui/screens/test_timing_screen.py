"""The timing screen: parts of the step, progress, what it yields."""

from __future__ import annotations

import re

import pytest
from run_views import logged, make_view
from watching import NOW, dashboard, press, showing, text

from verl_tui.ledger import ledger
from verl_tui.records import (
    SAMPLES,
    Event,
    EventKind,
    MetricRows,
    Progress,
    Sample,
    Settings,
)
from verl_tui.rendering.text.piece import text_of
from verl_tui.rendering.timing import hours_rows, timing_rows
from verl_tui.runs.run import Run


def timed(columns, total=None, **said):
    count = len(next(iter(columns.values()), ()))
    rows = MetricRows(
        tuple(columns), range(1, count + 1), [*columns.values()], range(count)
    )
    told = (Progress(None, total), Settings(said, "console"))
    return logged(Run("grpo"), *([rows] if count else []), *told)


def validating(count=43, total=100):
    columns = {
        "critic/score/mean": [0.5] * count,
        "timing_s/gen": [20.0] * count,
        "timing_s/update_actor": [9.0] * 21 + [18.0] * (count - 21),
        "timing_s/adv": [0.01] * count,
        "timing_s/step": [30.0] * 21 + [40.0] * (count - 21),
        "perf/throughput": [100.0] * count,
        "perf/mfu/actor": [0.0] * count,
    }
    run = timed(
        columns, total, **{"trainer.test_freq": 10, "trainer.n_gpus_per_node": 8}
    )
    tests = MetricRows(("timing_s/testing",), [10, 20, 30, 40], [[60.0] * 4], range(4))
    return logged(run, tests)


def stepless(format, *records):
    return logged(Run("grpo"), *records, format=format, records=len(records))


def texts(view, width):
    return [text_of(row).rstrip() for row in timing_rows(view, width)]


def test_table():
    shown = texts(make_view(validating()), 110)
    assert shown[:8] == [
        "where a step's time goes: mean of steps 24-43",
        "  step            46.0 s 100%                           ↑ 1.3×   timing_s/step 40.0 s",
        "█ gen             20.0 s  43%  ████████████████████████",
        "▓ update actor    18.0 s  39%  ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓   ↑ 2.0×",
        "▄ testing         6.00 s  13%  ▄▄▄▄▄▄▄                           60.0 s on 2 of 20 steps, beside timing_s/step",
        "  1 more          0.01 s   0%                                    adv",
        "  unaccounted     1.99 s   4%                                    no timer",
        "",
    ]


def test_in_little_room_seconds_stay_longer_than_bars():
    columns = {"timing_s/update_critic": [9.0] * 5, "timing_s/step": [9.5] * 5}
    assert (
        texts(make_view(timed(columns)), 36)[2]
        == "█ update critic    9.00 s  95%  ████"
    )


def test_progress_with_the_pace_of_each_kind_and_the_end():
    shown = texts(make_view(validating()), 110)
    start = shown.index("progress")
    assert shown[start + 1 : start + 4] == [
        "step 43 of 100 (43%)",
        "a plain step 40.0 s  median of 38",
        "a step with validation 100 s  median of 4",
    ]
    # 51 plain steps and 6 with validation: 2640 s.
    assert re.fullmatch(r"done in 44m, (?:at|\w{3}) \d\d:\d\d", shown[start + 4])
    assert shown[start + 5] == "next validation at step 50"


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (None, "No run yet, so nothing has taken any time."),
        (Run("new"), "waits for the first step"),
        (stepless(SAMPLES, Sample(None, "2+2?", "4")), "an evaluation"),
        (stepless("verl console", Event(EventKind.FATAL, "ValueError: x", 3)), "no step was logged"),
        (timed({"reward": [0.5]}), "Nothing in the log says how long a step takes."),
        (timed({"reward": [0.5] * 9}), "step 9, total unknown"),
        (timed({"step_time": [9.0] * 9}), "The log times no parts of a step."),
        (
            timed({"step_time": [9.0] * 9, "profiling/Time taken: GRPOTrainer.f": [1.0] * 9}),
            "The log times no parts of a step.",
        ),
        (timed({"step_time": [9.0] * 9}), "no ETA: the number of steps is unknown"),
        (timed({"reward": [0.5] * 9}, 10), "no ETA: the time of a step is unknown"),
        (timed({"step_time": [9.0] * 9}, 9), "finished: nothing to wait for"),
    ],
)  # fmt: skip
def test_says_what_is_missing(run, words):
    assert words in texts(make_view(*([run] if run else [])), 100)


# -- on a screen -----------------------------------------------------------------------------------


async def test_a_line_of_the_hours_leads_to_where_it_begins(collapse):
    app = showing(collapse)
    async with app.run_test(size=(140, 24)) as pilot:
        await press(pilot, "t")
        top = app.screen.list.scroll_offset.y
        await press(pilot, "j")
        assert app.screen.list.scroll_offset.y == top + 1, "lines in sight come first"
        await press(pilot, "G")
        assert "where the GPU hours went" in text(app)
        view = app.view_at(NOW)
        found = ledger(view.run, view.verdict, view.monitor.guide, NOW)
        begins = hours_rows(found, 100)[-1]
        (at,) = (at for at, one in enumerate(begins) if one.id)
        await press(pilot, "g", *["j"] * at, "enter")
        assert app.screen is dashboard(app)
        begun = min(
            one.since_step or 0
            for one in app.view_at(NOW).verdict.history
            if one.id == "policy-collapse"
        )
        assert abs(app.cursor - begun) <= 20


async def test_what_a_line_of_the_hours_takes_for_granted_is_not_cut(collapse):
    app = showing(collapse)
    async with app.run_test(size=(60, 40)) as pilot:
        await press(pilot, "t", "G")
        shown = " ".join(text(app).replace("│", " ").split())
        assert "heuristic: nothing is learnt while these findings last" in shown

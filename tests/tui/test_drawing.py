"""When the app draws: what is new, once, and nothing else; and what it lets go of."""

from __future__ import annotations

import gc
import weakref

from inside_textual import count_frames, on_frame
from watching import (
    NOW,
    dashboard,
    lines,
    loaded,
    press,
    sample,
    settle,
    showing,
    until,
    write_run,
)

from verl_tui.records import Batch, MetricRows, SourceStatus
from verl_tui.tui.terminal.output import screen_rows


async def test_the_dashboard_waits_behind_a_screen(tmp_path, monkeypatch):
    frames = count_frames(monkeypatch)
    app = loaded(write_run(tmp_path, "a").parent)
    status = SourceStatus("/more.jsonl", "tutorial JSONL", 5, 1)
    rows = MetricRows(("rollout/reward_mean",), [77], [[1.0]], [0], [NOW])
    async with app.run_test(size=(120, 40)) as pilot:
        await press(pilot, "t")
        frames.clear()
        app.monitor.apply(Batch("a", status, (rows,), live=True), NOW)
        dashboard(app).show(app.view_at(NOW))
        await settle(pilot)
        assert frames["frames"] == 0
        await press(pilot, "escape")
        assert "step 77" in lines(app)[0]


async def test_no_frame_mixes_two_runs_where_panels_get_other_room(
    tmp_path, monkeypatch
):
    write_run(tmp_path, "a", text=sample(30, "a line\n" * 9), of_a=1.0, and_a=2.0)
    app = loaded(write_run(tmp_path, "b", of_b=1.0).parent.parent)
    seen: list[str] = []
    async with app.run_test(size=(120, 40)) as pilot:
        on_frame(monkeypatch, lambda *_: seen.append("\n".join(screen_rows(app))))
        for name in "ba":
            seen.clear()
            await press(pilot, "right_square_bracket")
            shown = [text for text in seen if f"verl-tui {name}" in text]
            assert shown
            other = {"a": "of_b", "b": "of_a"}[name]
            assert not [text for text in shown if other in text]


async def test_another_run_is_drawn_from_its_first_row_where_a_panel_comes_back(
    tmp_path,
):
    # The rows in sight are the same in both runs, and were scrolled away before.
    write_run(tmp_path, "a", kl_div=9.0)
    app = loaded(write_run(tmp_path, "b", kl_div=9.0).parent.parent)
    async with app.run_test(size=(40, 12)) as pilot:
        for key in ("v", "f4", "G", "escape", "f2", "right_square_bracket", "escape"):
            await press(pilot, key)
            assert lines(app)
        assert "circuit breaker tripped at step 5:" in lines(app)[9]


async def test_screens_that_were_closed_are_forgotten(demo, monkeypatch):
    # The loop keeps a screen's timer, though it was stopped, until its time has come.
    monkeypatch.setattr("textual.screen.UPDATE_PERIOD", 0.01)
    app = showing(demo)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        gc.freeze()  # what was there before is not searched again and again
        opened = []
        for key in ("question_mark", "c", "i") * 4:
            await press(pilot, key)
            opened.append(weakref.ref(app.screen))
            await press(pilot, "escape")

        def few_are_left():
            gc.collect()
            return sum(one() is not None for one in opened) < 4

        await until(pilot, few_are_left)

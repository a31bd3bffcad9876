"""Notes on steps in the app: written at the cursor, marks in all charts, a list that leads there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from watching import (
    NOW,
    Typed,
    check_layout,
    dashboard,
    loaded,
    press,
    settle,
    text,
    write_run,
)

from verl_tui.records import Reread
from verl_tui.rendering.session.preferences import StateFile
from verl_tui.tui.screens.note import NoteScreen
from verl_tui.tui.widgets.chart import Chart

if TYPE_CHECKING:
    from verl_tui.tui.app import VerlApp


def noted(app: VerlApp) -> set[tuple[int, ...]]:
    """Return the steps that charts in sight mark as noted, each combination once."""
    return {
        tuple(mark.step for mark in chart.data.marks if mark.role == "note")
        for chart in dashboard(app).query(Chart)
        if chart.display and chart.data.lines
    }


async def test_a_note_is_written_shown_found_changed_and_deleted(tmp_path):
    run = write_run(tmp_path, "run", 30)
    app = loaded(run, state_file=StateFile(tmp_path / "state.json"))
    async with app.run_test(size=(120, 40)) as pilot:
        await press(pilot, "home", "B", Typed("rate [b]halved\x1b[2J"), "enter")
        assert app.screen is dashboard(app)
        assert noted(app) == {(1,)}
        assert "✎" in text(app)
        # Without a cursor it is on the newest step.
        await press(pilot, "escape", "B", Typed("looks odd"), "enter")
        assert noted(app) == {(1, 30)}
        await press(pilot, "B", "escape")
        assert isinstance(app.screen, NoteScreen)
        assert "step  1  rate [b]halved" in text(app)
        assert text(app).index("step  1") < text(app).index("step 30")
        check_layout(app)
        await press(pilot, "k", "enter")
        assert app.screen is dashboard(app)
        assert app.cursor == 1
        # The line begins with the words that are known.
        await press(pilot, "B", *"!!", "enter", "B")
        await press(pilot, *["backspace"] * 40, "enter")
        assert noted(app) == {(30,)}
    assert not list(run.parent.glob("*note*")), (
        "nothing is written into the run's folder"
    )
    again = loaded(run, state_file=StateFile(tmp_path / "state.json"))
    async with again.run_test(size=(80, 24)) as pilot:
        await press(pilot)
        assert noted(again) == {(30,)}
        await press(pilot, "m")
        assert "✎" in text(again)


async def test_notes_of_a_run_that_vanishes_stay_for_who_looks_at_them(tmp_path):
    app = loaded(write_run(tmp_path, "run", 30))
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "B", *"abc")
        app.monitor.apply(Reread("run", left=False), NOW)
        app.monitor.judge(NOW)
        app.post_message(app.News())
        await settle(pilot)
        assert app.view_at(NOW).run is None
        await press(pilot, "enter")
        assert app.screen is dashboard(app)
        check_layout(app)
        await press(pilot, "B")
        assert "no notes yet" in text(app)
        await press(pilot, "enter", "j", "escape")
        assert app.screen is dashboard(app)


async def test_without_a_run_there_is_nothing_to_note(tmp_path):
    app = loaded(tmp_path)
    async with app.run_test(size=(40, 12)) as pilot:
        await press(pilot, "B", "enter")
        assert "no notes yet" in text(app)
        check_layout(app)

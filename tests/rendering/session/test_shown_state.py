"""No state is shown of a run that has not been read yet."""

from __future__ import annotations

from dataclasses import replace

from run_views import NOW, logged, make_run, make_view

from verl_tui.records import Event, EventKind
from verl_tui.rendering.session.snapshot import Unread, nothing_yet, shown_state
from verl_tui.rendering.status_line import one_row
from verl_tui.rendering.text.piece import text_of
from verl_tui.rendering.timing import timing_rows
from verl_tui.runs.run import Run
from verl_tui.runs.views.state import State

ERROR = Event(EventKind.FATAL, "ray.exceptions.RayTaskError", line=4)


def crashed(read, size=1000, *, problem=None):
    status = {"bytes_read": read, "size": size, "problem": problem}
    return logged(make_run(steps=9), ERROR, **status, modified=NOW - 9000)


def test_an_error_in_what_has_been_read_is_no_crash_yet():
    view = make_view(crashed(400), loading=True)
    assert view.run is not None
    assert shown_state(view, view.run) is Unread.READING
    assert shown_state(replace(view, loading=False), view.run) is State.CRASHED
    row = text_of(one_row(view, 200, alone=True))
    assert " reading " in row
    assert "crashed" not in row
    assert "ETA" not in row
    assert any("no ETA: reading" in text_of([*row]) for row in timing_rows(view, 80))


def test_a_log_that_grows_beyond_what_was_read_has_been_read_once():
    run = crashed(1000)
    logged(run, bytes_read=1000, size=1400)
    assert run.read_once


def test_a_preview_shows_the_state_of_its_logs_end():
    run = crashed(400)
    run.preview = True
    assert shown_state(make_view(run, loading=True), run) is State.CRASHED


def test_without_metrics_it_says_that_the_log_is_being_read():
    run = logged(Run("a"), ERROR, bytes_read=1, size=2)
    assert nothing_yet(make_view(run, loading=True)).startswith(
        "no metrics so far: its logs are"
    )

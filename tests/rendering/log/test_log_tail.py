"""The end of a run's log in place of charts that it has not got yet."""

from __future__ import annotations

import threading

from file_writing import write_file
from run_views import NOW, make_view

from verl_tui.records import Batch, Event, EventKind, SourceStatus
from verl_tui.rendering.log.last_lines import log_tail, tail_rows
from verl_tui.rendering.text.piece import text_of
from verl_tui.runs.run import Run

ERROR = "ValueError: no GPU for the raylet"


def logged(path, *records, format_name="verl console"):
    run, size = Run("grpo"), path.stat().st_size
    status = SourceStatus(
        str(path), format_name, records=len(records), size=size, bytes_read=size
    )
    run.apply(Batch("grpo", status, records), NOW)
    return run


def words(run, width=60, height=16):
    return resized(run, (width, height))[0]


def resized(run, *sizes):
    """Return what one tail shows at each of several sizes in turn."""
    read, view = threading.Event(), make_view(run)
    tail = log_tail(view, read.set)
    shown = []
    try:
        for width, height in sizes:
            read.clear()
            while (rows := tail_rows(tail, view, width, height)) is None:
                assert read.wait(5)
                read.clear()
            shown.append([text_of(row).strip() for row in rows])
    finally:
        tail.reader.stop()
    return shown


def test_a_crash_shows_its_error_wherever_in_the_log_it_is(tmp_path):
    path = write_file(
        tmp_path / "train.log", "begin\n" * 3 + ERROR + "\n" + "Ray cleans up\n" * 500
    )
    shown = words(logged(path, Event(EventKind.FATAL, ERROR, line=4)))
    assert shown[0] == "crashed before the first step"
    assert any(ERROR in row for row in shown)


def test_a_traceback_that_fits_is_shown_to_its_end(tmp_path):
    path = tmp_path / "train.log"
    frames = [f'  File "a.py", in {"x" * n}' for n in range(1, 21)]
    before = [f"begin{'.' * n}" for n in range(60)]
    lines = [*before, "Traceback (most recent call last):", *frames, ERROR, *before]
    path.write_text("\n".join(lines), encoding="utf-8")
    shown = words(logged(path, Event(EventKind.FATAL, ERROR, line=61)), height=28)
    assert any("Traceback" in row for row in shown)
    assert any(ERROR in row for row in shown)


def test_the_error_stays_in_sight_while_the_panel_is_resized(tmp_path):
    path = tmp_path / "train.log"
    before = "".join(f"a line of its own{'.' * n}\n" for n in range(40))
    path.write_text(before + ERROR + "\nRay cleans up\n" * 40, encoding="utf-8")
    run = logged(path, Event(EventKind.FATAL, ERROR, line=41))
    for shown in resized(run, (120, 40), (60, 12), (40, 6), (120, 40)):
        assert any(ERROR in row for row in shown)


def test_the_stage_it_was_at_and_the_newest_lines_are_shown(tmp_path):
    path = write_file(
        tmp_path / "train.log", "".join(f"loading shard {n}\n\n" for n in range(99))
    )
    stage = Event(EventKind.STAGE, "Capturing CUDA graph shapes", line=1)
    shown = words(logged(path, stage))
    assert shown[0] == "no step yet"
    assert "Capturing CUDA graph" in shown[1]
    assert "loading shard 98" in "\n".join(shown)


def test_what_a_log_wrote_is_no_control_sequence(tmp_path):
    path = tmp_path / "train.log"
    path.write_bytes(b"\x1b[31mred\x1b]0;title\x07\n\xff\xfe\n")
    assert not any("\x1b" in row or "\x07" in row for row in words(logged(path)))

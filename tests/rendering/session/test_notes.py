"""Notes on steps: kept in a file that several apps write, whatever stands in it."""

from __future__ import annotations

import json
import os

import pytest
from run_views import make_run

from verl_tui.rendering.session.notes import NoteBook, note_rows
from verl_tui.rendering.text.piece import text_of

RUN = make_run()


@pytest.fixture
def state(tmp_path):
    return tmp_path / "deep" / "state.json"


def test_two_apps_at_once_lose_no_note_of_each_other(state):
    one, other = NoteBook(state), NoteBook(state)
    assert one.write(RUN, 3, "rate halved") == ""
    assert other.write(RUN, 9, "new data") == ""
    assert one.write(RUN, 9, "old data again") == ""
    assert other.write(RUN, 3, "") == ""
    for book in (one, other):
        book.read()
    for book in (one, other, NoteBook(state)):
        assert book.of(RUN) == {9: "old data again"}
    assert not NoteBook().of(RUN)


def test_what_is_damaged_or_hostile_costs_nothing_else(state):
    book = NoteBook(state)
    assert book.write(RUN, 5, "first\x1b[31m \u202e\nsecond " + "x" * 9000) == ""
    (path,) = state.parent.iterdir()
    known = json.loads(path.read_text())
    odd = [
        {"step": "7"},
        {"step": True},
        {"step": 1 << 80},
        {"text": ["a"]},
        {"text": None},
    ]
    lines = [json.dumps(known | one) for one in odd]
    lines += ["{", "[]", "nonsense", "[" * 100_000, json.dumps({"step": 3}), "\xff"]
    with path.open("ab") as file:
        file.write("\n".join([*lines, '{"run": "half a li']).encode("latin-1"))
    assert book.write(RUN, 8, "after it") == ""
    found = NoteBook(state).of(RUN)
    assert list(found) == [5, 8]
    assert found[5].startswith("first � second xxx")
    assert len(found[5]) <= 500
    assert all(text.isprintable() for text in found.values())


@pytest.mark.parametrize("place", ["a directory", "a pipe", "no right"])
def test_what_cannot_be_written_is_said_and_kept_for_the_session(tmp_path, place):
    path = tmp_path / "state.notes.jsonl"
    if place == "a directory":
        path.mkdir()
    elif place == "a pipe":
        os.mkfifo(path)
    else:
        (tmp_path / "file").write_text("")
        path = tmp_path / "file" / "state.notes.jsonl"
    book = NoteBook(path.with_name("state.json"))
    assert str(path) in book.write(RUN, 1, "kept")
    assert book.of(RUN) == {1: "kept"}


def test_rows_of_notes_say_their_steps():
    rows, starts = note_rows({5: "one two three four", 12: "five"}, 20)
    assert [text_of(row) for row in rows] == [
        "step  5  one two",
        "         three four",
        "step 12  five",
    ]
    assert starts == [0, 2]
    assert text_of(note_rows({}, 20)[0][0]) == "no notes yet"

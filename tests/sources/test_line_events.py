"""Each entry of the consoles' `events.toml` by the line it was written from."""

from __future__ import annotations

import re
from itertools import chain
from typing import Any

import pytest

from verl_tui.records import EventKind
from verl_tui.sources.formats.console.errors import ErrorReader, printed_by
from verl_tui.sources.formats.console.line_parts import TABLE, form_of, parted

ENTRIES: list[dict[str, Any]] = TABLE["event"]
OF_TRACEBACKS = ("head", "hard", "exception", "unusual")
FRAMES = b"Traceback (most recent call last):", b'  File "train.py", line 3, in main'


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["line"][:40])
def test_an_entry_is_found_by_the_line_it_was_written_from(entry):
    line = entry["line"].encode()
    if entry["kind"] == "printer":
        assert printed_by(line).text.decode() == entry["says"]
        return
    if entry["kind"] == "chain":
        assert form_of("chain").match(line)
        return
    assert any(word in entry["line"] for word in entry.get("words", [""]))
    prefix = b"(WorkerDict pid=31)" if entry["kind"] == "hard" else b""
    reader = ErrorReader()
    for frame in FRAMES if entry["kind"] in ("exception", "unusual") else ():
        list(reader.read(prefix + frame, 1))
    (event,) = reader.read(prefix + line, 3)
    if entry["kind"] in OF_TRACEBACKS:
        assert event.kind is EventKind.TRACEBACK
    else:
        kind = "fatal" if entry["kind"] == "remote" else entry["kind"]
        assert event.kind.value == kind


def test_a_form_of_beginnings_is_one_in_all_its_parts():
    for row in chain(ENTRIES, TABLE["stated"], TABLE["first"]):
        if row["match"].startswith("^"):
            form = row["match"].replace("{code}", TABLE["code"])
            found = re.search(form, f" {row['line']}")
            assert not found or not found.start()


@pytest.mark.parametrize("rows", ["stated", "first", "settings"])
def test_a_row_is_found_by_the_line_it_was_written_from(rows):
    for row in TABLE[rows]:
        assert re.search(row.get("begins", row.get("match")), row["line"])
        assert any(word in row["line"] for word in row["words"])


def test_what_was_added_is_told_by_the_line_it_was_written_from():
    for row in TABLE["added"]:
        assert parted(row["line"].encode()).text == b"a line"

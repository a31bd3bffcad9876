"""Each entry of the consoles' `events.toml` by the line it was written from."""

from __future__ import annotations

from typing import Any

import pytest

from verl_tui.records import EventKind
from verl_tui.sources.formats.console.errors import ErrorReader, printed_by
from verl_tui.sources.formats.console.events import TABLE

ENTRIES: list[dict[str, Any]] = TABLE["event"]
KINDS = {"hard": EventKind.TRACEBACK, "remote": EventKind.FATAL}
"""Kinds of entries that are not those of their events."""


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["line"][:40])
def test_an_entry_is_found_by_the_line_it_was_written_from(
    entry: dict[str, Any],
) -> None:
    line = entry["line"].encode()
    if entry["kind"] == "printer":
        assert printed_by(b"", line).text.decode() == entry["says"]
        return
    assert any(word in entry["line"] for word in entry.get("words", [""]))
    prefix = b"(WorkerDict pid=31)" if entry["kind"] == "hard" else b""
    (event,) = ErrorReader().read(prefix, line, 1)
    assert event.kind is KINDS.get(entry["kind"]) or event.kind.value == entry["kind"]

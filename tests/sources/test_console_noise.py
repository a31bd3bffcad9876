"""Lines of a console without information are recognised by their words, whatever numbers they have."""

from __future__ import annotations

from typing import TypeGuard

import pytest

from verl_tui.records import Event, EventKind, Pulse
from verl_tui.sources.formats.console.decoder import ConsoleDecoder
from verl_tui.sources.formats.lines import LineReader
from verl_tui.times import parse_time


@pytest.mark.parametrize("date", ["", "2026-11-28 10:00:{at:02} "])
def test_trouble_that_is_repeated_is_counted(date):
    kinds = [
        f"(W pid={10 + at % 2}) {date.format(at=at)}request {at} failed"
        for at in range(40)
    ]
    kinds.insert(20, "(W pid=10) another thing failed")
    reader = LineReader(ConsoleDecoder())
    # While a decoder looks for the trainer, it reads each line as a whole.
    steps = "".join(f"step:{at} - actor/entropy:0.4\n" for at in range(1, 99))
    text = "".join(f"{line}\n" for line in kinds)
    records = reader.feed((steps + text).encode())
    found = [one for one in records if is_trouble(one)]
    assert sum(one.times for one in found) == len(kinds)
    assert len(found) < len(kinds)
    assert [one.line for one in found] == sorted(one.line for one in found)
    assert found[-1].line == 98 + len(kinds)
    assert found[-1].text.endswith("request 39 failed")
    times = [one.time for one in records if isinstance(one, Pulse)]
    assert times[-1:] == ([parse_time("2026-11-28 10:00:30")] if date else [])
    assert found[-1].clock == (36_039 if date else None)


def is_trouble(record: object) -> TypeGuard[Event]:
    return isinstance(record, Event) and record.kind is EventKind.WARNING

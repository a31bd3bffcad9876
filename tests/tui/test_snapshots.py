"""A few whole screens, as pictures; after a wanted change: `pytest tests/tui/test_snapshots.py
--snapshot-update`.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
from watching import press, showing

if TYPE_CHECKING:
    from textual.pilot import Pilot


@pytest.fixture(autouse=True)
def zone(monkeypatch):
    """Times of the day are local."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("size", "keys"),
    [((120, 40), ["e"]), ((40, 12), []), ((80, 40), ["question_mark"])],
)
def test_screen(collapse, snap_compare, size, keys):
    async def look(pilot: Pilot[Any]) -> None:
        await press(pilot, *keys)

    assert snap_compare(showing(collapse), terminal_size=size, run_before=look)

"""Runs side by side in one row."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from verl_tui.rendering.run_list.entry_rows import RunEntry
from verl_tui.rendering.run_list.strip import strip
from verl_tui.runs.views.state import State

ENTRY = RunEntry("grpo", "ok", "", State.RUNNING, "58/434", 0.13, "1h", "2s", None)


def row(count: int, shown: int, width: int, *, ascii_only: bool = False) -> str:
    names = [f"run_{at}" for at in range(count)]

    def entry_at(at: int) -> RunEntry:
        crashed = at == 1
        state = State.CRASHED if crashed else State.RUNNING
        return replace(
            ENTRY, name=names[at], state=state, badge="critical" if crashed else "ok"
        )

    return "".join(
        text for text, _ in strip(names, shown, entry_at, width, ascii_only=ascii_only)
    )


def test_each_run_has_badge_name_and_progress_or_state() -> None:
    assert row(2, 0, 60).split("  ") == ["▸● run_0 step 58/434", " ✖ run_1 crashed"]
    assert row(2, 1, 60, ascii_only=True).split("  ") == [
        " o run_0 step 58/434",
        ">X run_1 crashed",
    ]


@given(st.integers(1, 300), st.integers(0, 299), st.integers(1, 200))
def test_the_shown_run_is_in_a_row_of_any_width(
    count: int, shown: int, width: int
) -> None:
    shown = min(shown, count - 1)
    text = row(count, shown, width)
    assert cell_len(text) <= width
    assert "▸" in text or width < 14

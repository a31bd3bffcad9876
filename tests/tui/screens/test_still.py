"""What all screens keep to: what is seen first is the whole of it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from inside_textual import on_frame
from watching import dashboard, lines, loaded, press, settle, showing, write_run

from verl_tui.tui.terminal.buffered_screen import BufferedScreen

if TYPE_CHECKING:
    from pathlib import Path

    from textual.screen import Screen

    from verl_tui.monitor import Monitor
    from verl_tui.tui.app import VerlApp

KEYS = ("m", "l", "C", "c", "t", "i", "A", "o", "question_mark", "enter")


@pytest.mark.parametrize(
    "size", [(140, 45), (40, 12), pytest.param((60, 20), marks=pytest.mark.thorough)]
)
async def test_a_screen_opens_as_it_would_be_drawn_again(
    demo: Monitor, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    painted: Counter[str] = Counter()

    def note(_app: VerlApp, screen: Screen[object], _frame: object) -> None:
        assert isinstance(screen, BufferedScreen)
        painted["empty" if screen.drawn_at is None else "drawn"] += 1

    on_frame(monkeypatch, note)
    app = showing(demo)
    async with app.run_test(size=size) as pilot:
        for key in KEYS:
            await press(pilot, key)
            screen, opened = app.screen, lines(app)
            assert isinstance(screen, BufferedScreen), key
            screen.fit(app.size)
            screen.redraw()
            await settle(pilot)
            assert lines(app) == opened, key
            await press(pilot, "escape", "escape")
            assert app.screen is dashboard(app), key
    assert painted["empty"] == 0, "nothing is painted before it is drawn"
    assert painted["drawn"] > len(KEYS)


@pytest.mark.parametrize("keys", ["C right_square_bracket", "l p", "p C"])
async def test_the_dashboard_comes_back_with_the_run_that_was_picked_and_as_it_was_paused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: str
) -> None:
    app = loaded(write_run(tmp_path, "one", 3), write_run(tmp_path, "other", 5))
    async with app.run_test(size=(140, 45)) as pilot:
        await press(pilot, *keys.split())
        seen = []

        def note(_app: VerlApp, screen: Screen[object], frame: object) -> None:
            if screen is dashboard(app) and frame is not None:
                seen.append(lines(app)[0])

        on_frame(monkeypatch, note)
        await press(pilot, "escape")
        assert seen
        assert set(seen) == {lines(app)[0]}
        assert ("other" in seen[0]) is ("right" in keys)
        assert ("PAUSED" in seen[0]) is ("p" in keys.split())

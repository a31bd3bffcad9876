"""`/` on every screen: what it filters, how much matches, how to leave; it hides nothing unsaid."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from watching import (
    Typed,
    check_layout,
    dashboard,
    lines,
    loaded,
    press,
    sample,
    text,
    write_run,
)

from verl_tui.config import Config

if TYPE_CHECKING:
    from pathlib import Path

    from verl_tui.tui.app import VerlApp

SAMPLES = "".join(sample(step, f"answer {step}") for step in (1, 1, 1))


def app_of(tmp_path: Path, **keys: str) -> VerlApp:
    log = write_run(tmp_path, "run", text=SAMPLES)
    (log.parent / "config.yaml").write_text("seed: 7\nactor:\n  lr: 1.0e-6\n")
    return loaded(log.parent, config=Config(keys=MappingProxyType(keys)))


WORDS = {
    ("c", "filter settings: "): {
        "seed": "1 of 3 settings · enter keeps it · esc clears it",
        "zzz": "nothing matches · enter keeps it · esc clears it",
    },
    ("m", "filter metrics: "): {
        "zzz": "nothing matches · enter keeps it · esc clears it"
    },
    ("o", "filter samples: "): {
        "score>2": "0 of 3 samples · enter filters · esc leaves",
        "score=1": "3 of 3 samples · enter filters · esc leaves",
        "answer": "enter filters · esc leaves",
    },
    ("l", "search this log: "): {
        "zzz": "lines in sight · enter searches the whole log · esc"
    },
    ("question_mark", "search the keys: "): {
        "zzz": "nothing matches · enter keeps it · esc"
    },
}
"""A screen's key and the label of its filter -> what is typed, and what is said of it."""


async def test_a_filter_says_what_it_is_for_what_matches_and_how_to_leave(
    tmp_path: Path,
) -> None:
    app = app_of(tmp_path)
    async with app.run_test(size=(140, 40)) as pilot:
        for (screen, label), said in WORDS.items():
            await press(pilot, screen)
            for typed, says in said.items():
                await press(pilot, "slash")
                check_layout(app)
                row = next(line for line in lines(app) if label in line)
                assert "esc leaves" in row
                await press(pilot, Typed(typed))
                row = next(line for line in lines(app) if label in line)
                assert typed in row
                assert says in row
                await press(pilot, "escape")
                assert label not in text(app)
            await press(pilot, "escape")
            assert app.screen is dashboard(app), screen


async def test_runs_that_are_not_listed_do_not_count_as_matches(tmp_path: Path) -> None:
    app = app_of(tmp_path)
    async with app.run_test(size=(100, 30)) as pilot:
        await press(pilot, "slash", Typed("zzz"))
        assert "nothing matches" in lines(app)[-1]
        await press(pilot, "escape", "slash", Typed("kl"))
        assert " metrics · enter keeps it" in lines(app)[-1]
        assert "of 1 runs" not in lines(app)[-1]


async def test_a_kept_filter_of_settings_stays_in_the_frame(tmp_path: Path) -> None:
    app = app_of(tmp_path)
    async with app.run_test(size=(100, 30)) as pilot:
        await press(pilot, "c", "slash", Typed("seed"), "enter")
        assert "filter: seed (1 of 3)" in text(app)
        await press(pilot, "escape")
        assert "filter:" not in text(app)
        # Metrics filtered to nothing name the way back.
        await press(pilot, "escape")
        for key in ("m", "g"):
            await press(pilot, key, "slash", Typed("zzz"), "enter")
            assert "no metric matches “zzz”" in text(app)
            assert "esc clears the filter" in text(app)
            await press(pilot, "escape")
            assert "no metric matches" not in text(app)
        # On a small screen the words give way to the typed text.
        await press(pilot, "escape")
        await pilot.resize_terminal(40, 12)
        for screen in "cmol":
            await press(pilot, screen, "slash", Typed("score"))
            check_layout(app)
            assert any("/ score" in line or ": score" in line for line in lines(app)), (
                screen
            )
            await press(pilot, "escape", "escape")
            assert app.screen is dashboard(app), screen


async def test_the_key_that_leaves_is_the_user_s(tmp_path: Path) -> None:
    app = app_of(tmp_path, **{"metrics.back": "ctrl+b"})
    async with app.run_test(size=(140, 40)) as pilot:
        await press(pilot, "m", "slash", "k")
        assert "ctrl+b clears it" in text(app)


async def test_a_filter_that_no_run_matches_is_said_in_the_frame_of_the_runs(
    tmp_path: Path,
) -> None:
    write_run(tmp_path, "other")
    app = app_of(tmp_path)
    both = loaded(tmp_path, config=app.config)
    async with both.run_test(size=(140, 40)) as pilot:
        await press(pilot, "f2", "slash", Typed("zzz"))
        assert "nothing matches · enter keeps it · esc clears it" in text(both)
        assert "no run matches, all 2 listed" in text(both)
        await press(pilot, "escape")
        assert "no run matches" not in text(both)

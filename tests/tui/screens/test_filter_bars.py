"""`/` on every screen: what it filters, how much matches, how to leave; it hides nothing unsaid."""

from __future__ import annotations

from types import MappingProxyType

from watching import (
    Typed,
    check_layout,
    check_shown,
    dashboard,
    lines,
    loaded,
    press,
    sample,
    text,
    write_run,
)

from verl_tui.config import Config

SAMPLES = "".join(sample(step, f"answer {step}") for step in (1, 1, 1))


def app_of(tmp_path, **keys):
    log = write_run(tmp_path, "run", text=SAMPLES)
    (log.parent / "config.yaml").write_text("seed: 7\nactor:\n  lr: 1.0e-6\n")
    return loaded(log.parent, config=Config(keys=MappingProxyType(keys)))


WORDS = {
    ("c", "filter settings: "): {
        "seed": "1 of 3 settings · enter keeps it · esc clears it",
        "zzz": "nothing matches · enter keeps it · esc clears it",
    },
    ("m", "filter metrics: "): {"zzz": "nothing matches · enter keeps it · esc clears it"},
    ("o", "filter samples: "): {
        "score>2": "0 of 3 samples · enter filters · esc leaves",
        "score=1": "3 of 3 samples · enter filters · esc leaves",
        "answer": "enter filters · esc leaves",
    },
    ("l", "search this log: "): {"zzz": "lines in sight · enter searches the whole log · esc"},
    ("question_mark", "search the keys: "): {"zzz": "nothing matches · enter keeps it · esc"},
}  # fmt: skip
"""A screen's key and the label of its filter -> what is typed, and what is said of it."""


async def test_a_filter_says_what_it_is_for_what_matches_and_how_to_leave(tmp_path):
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


async def test_what_may_be_typed_takes_all_the_room_and_stays_apart(tmp_path):
    app = app_of(tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "B")
        check_shown(app, "note on step 30: a few words; none to delete the note ")
        await press(pilot, "escape", "escape", "m", "slash")
        await pilot.resize_terminal(40, 12)
        await press(pilot)
        check_shown(app, "filter metrics: words a|b … esc leaves")


async def test_one_metric_is_no_metrics(tmp_path):
    (tmp_path / "verl.jsonl").write_text('{"step": 1, "data": {"a": 1}}\n')
    app = loaded(tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "m")
        assert "1 metric " in lines(app)[0]


async def test_what_is_said_of_wide_letters_is_not_cut(tmp_path):
    app = loaded(*(write_run(tmp_path, name) for name in ("a", "b")))
    async with app.run_test(size=(100, 24)) as pilot:
        await press(pilot, "f2", "f", Typed("汉字" * 3))
        check_shown(app, f"no run has {'汉字' * 3}", "esc leaves")

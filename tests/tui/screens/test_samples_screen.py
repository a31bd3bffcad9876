"""The samples over the full screen: on real dumps, by every key, at every size."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from inside_textual import count_frames, notices
from textual.widgets import Input
from tui.watching import (
    NOW,
    check_layout,
    dashboard,
    lines,
    loaded,
    press,
    settle,
    text,
    until,
)

from verl_tui.config import Config
from verl_tui.monitor import load
from verl_tui.records import Dump
from verl_tui.tui.panels.samples import SamplesPanel
from verl_tui.tui.screens.help.screen import HelpScreen
from verl_tui.tui.screens.samples.screen import SamplesScreen
from verl_tui.tui.screens.zoom import ZoomScreen
from verl_tui.tui.widgets.document_rows import DocumentRows
from verl_tui.tui.widgets.rows import Rows
from verl_tui.tui.widgets.zoomed_chart import ZoomedChart

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from textual.pilot import Pilot

    from verl_tui.tui.app import VerlApp

SIZES = [(140, 45), (79, 24), (40, 12), (20, 6)]
NAMES = {
    " ": "space",
    "/": "slash",
    ">": "greater_than_sign",
    "=": "equals_sign",
    "(": "left_parenthesis",
    '"': "quotation_mark",
}
HOSTILE = (
    "[red]not red[/red] [/INST] [@click=app.quit]quit[/] [/",
    "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x9b2J \x00\x07\x08 a\rb\tc \u202ereversed",
    "汉" * 50_000,
    "x" * 250_000,
    "\n" * 20_000,
    "the same again and " * 5000,
    "👨\u200d👩\u200d👧 ☀\ufe0f 👍🏽 🇩🇪 e\u0301\u0301 한국어 ไทย",
)


def row(step: int, index: int, **more: Any) -> dict[str, Any]:
    """Return one row of a dump: two prompts a step with three answers each."""
    prompt = index // 3
    fields = {
        "input": f"system words\n\nquestion {prompt}",
        "output": f"answer {step}-{index}",
        "gts": "42",
        "score": float(index % 2),
        "step": step,
        "acc": index / 10,
        "uid": f"uid{step}x{prompt}_0_{index}",
    }
    return {**fields, **more}


def write(directory: Path, step: int, rows: Sequence[dict[str, Any]]) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{step}.jsonl").write_text(
        "".join(json.dumps(one) + "\n" for one in rows), encoding="utf-8"
    )


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run with training dumps of steps 1 to 4 and validation dumps of steps 2 and 4."""
    values = "".join(
        json.dumps({"step": step, "data": {"critic/score/mean": 0.5}}) + "\n"
        for step in range(1, 5)
    )
    folder = tmp_path / "grpo"
    folder.mkdir()
    (folder / "verl.jsonl").write_text(values)
    for step in range(1, 5):
        write(folder / "rollouts", step, [row(step, index) for index in range(6)])
    for step in (2, 4):
        write(
            folder / "validation",
            step,
            [row(step, index, output=f"validated {step}-{index}") for index in range(3)],
        )
    return folder


def screen(app: VerlApp) -> SamplesScreen:
    assert isinstance(app.screen, SamplesScreen)
    return app.screen


def at(app: VerlApp) -> tuple[int, bool, int] | None:
    """Return step, kind and index of the sample shown."""
    shown = screen(app).browse.shown
    return (shown[0].step, shown[0].validation, shown[1]) if shown is not None else None


async def start(pilot: Pilot[Any], app: VerlApp, *keys: str) -> None:
    """Open the screen, and wait until the sample is drawn."""
    await press(pilot, "o")
    await until(pilot, lambda: "answer 4-0" in text(app))
    await until(pilot, lambda: screen(app).browse.listing.complete)
    await pilot.press(*keys)
    await settle(pilot)


async def type_filter(pilot: Pilot[Any], words: str) -> None:
    await pilot.press("slash")
    await settle(pilot)
    pilot.app.screen.query_one(Input).value = words
    await pilot.press("enter")
    await settle(pilot)


# -- opening ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sizes", [SIZES[1::2], pytest.param(SIZES[::2], marks=pytest.mark.thorough)]
)
async def test_every_size(run: Path, sizes: list[tuple[int, int]]) -> None:
    app = loaded(run)
    async with app.run_test(size=sizes[0]) as pilot:
        await press(pilot, "o")
        await until(pilot, lambda: screen(app).browse.listing.complete)
        for size in sizes:
            await pilot.resize_terminal(*size)
            for keys in (
                "n",
                "tab",
                "n",
                "tab",
                "a",
                "escape",
                "h",
                "escape",
                "slash",
                "escape",
                "G",
                "s",
                "v",
            ):
                await pilot.press(keys)
                await settle(pilot)
                check_layout(app)
                assert isinstance(app.screen, SamplesScreen), (size, keys)


async def test_what_is_seen(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = loaded(run)
    async with app.run_test(size=(140, 45)) as pilot:
        await start(pilot, app)
        shown = lines(app)
        assert "step 4" in shown[0]
        assert "training" in shown[0]
        assert "4 of 4" in shown[0]
        assert "following" in shown[0]
        assert "6 rows · score 0.5 ± 0.5 · dead groups 0%" in shown[1]
        assert "group 1: 1/3" in shown[2]
        assert "[✗]✓✗  1 of 3 right" in shown[2]
        await until(pilot, lambda: "answer 4-5" in text(app))  # a row of the list
        for words in (
            "1 prompt",
            "question 0",
            "2 response",
            "answer 4-0",
            "3 ground truth",
            "42",
            "acc  0",
        ):
            assert words in text(app)
        # What has not changed is not sent.
        await until(pilot, lambda: app.browser.idle)
        await settle(pilot)
        with monkeypatch.context() as patch:
            counts = count_frames(patch)
            for _ in range(5):
                app.tick()
                await settle(pilot)
            assert counts["frames"] == 0
        # Parts are folded and unfolded.
        assert "▸ 1 prompt" in text(app)
        for key, part in [
            ("1", "prompt"),
            ("2", "response"),
            ("3", "ground truth"),
            ("4", "fields"),
        ]:
            was = f"▸ {key} {part}" in text(app)
            await press(pilot, key)
            assert (f"▸ {key} {part}" in text(app)) is not was
        await press(pilot, "enter")  # the part at the top
        assert "▸ 1 prompt" in text(app)
        # In other colours it is the same.
        await press(pilot, "2")
        app.theme = "textual-light"
        await settle(pilot)
        assert "answer 4-0" in text(app)
        check_layout(app)


async def test_the_last_row_begins_with_the_keys_of_the_screen(run: Path) -> None:
    app = loaded(run)
    async with app.run_test(size=(80, 24)) as pilot:
        await start(pilot, app)
        last = text(app).rstrip("\n").split("\n")[-1]
        assert last.startswith("esc Back n p Sample N P Step / Filter")
        assert "o Samples" not in last, "it is here"
        await press(pilot, "o")
        assert not isinstance(app.screen, SamplesScreen)


async def test_a_side_pane_shows_the_sample_or_the_list(run: Path) -> None:
    app = loaded(run)
    async with app.run_test(size=(40, 12)) as pilot:
        await start(pilot, app)
        assert "score" not in lines(app)[2]
        await press(pilot, "tab")
        assert "score" in lines(app)[2]
        assert "2 response" not in text(app)
        await press(pilot, "j", "j", "enter")
        await until(pilot, lambda: "answer 4-2" in text(app))
        check_layout(app)


async def test_opens_where_the_panel_is_and_comes_back_to_where_one_was(run: Path) -> None:
    app = loaded(run)
    async with app.run_test(size=(140, 45)) as pilot:
        panel = dashboard(app).query_one(SamplesPanel)
        await press(pilot, "f6")
        await until(pilot, lambda: "answer 4-0" in text(app))
        panel.go_to(2)
        await until(pilot, lambda: "answer 2-0" in text(app))
        await press(pilot, "n", "enter")
        await until(
            pilot, lambda: isinstance(app.screen, SamplesScreen) and at(app) == (2, False, 1)
        )
        await press(pilot, "N", "n", "o", "q")
        assert app.screen is dashboard(app)
        assert panel.shown is not None
        assert (panel.shown[0].step, panel.shown[1]) == (1, 2)


async def test_the_charts_cursor_leads_to_the_samples_of_its_step(run: Path) -> None:
    app = loaded(run)
    async with app.run_test(size=(80, 24)) as pilot:  # the panel is out of sight
        await press(pilot, "f3", "left", "left", "o")
        assert app.cursor is not None
        await until(pilot, lambda: at(app) == (app.cursor, False, 0))
        # So does the cursor of a zoomed chart.
        await press(pilot, "q", "escape", "escape")
        await pilot.resize_terminal(100, 30)
        await press(pilot, "f3", "enter", "left", "left", "left", "o")
        assert isinstance(app.screen_stack[-2], ZoomScreen)
        step = app.screen_stack[-2].query_one(ZoomedChart).cursor
        assert step is not None
        assert step < 4
        await until(pilot, lambda: at(app) == (step, False, 0))
        await press(pilot, "q")
        assert isinstance(app.screen, ZoomScreen)


async def test_no_samples(tmp_path: Path) -> None:
    (tmp_path / "verl.jsonl").write_text('{"step": 1, "data": {"critic/score/mean": 0.5}}\n')
    app = loaded(tmp_path)
    async with app.run_test(size=(100, 30)) as pilot:
        await press(pilot, "o")
        await until(pilot, lambda: "trainer.rollout_data_dir" in text(app))
        await pilot.press(*"npNPbwsSahtfuyYxX1234.,", "tab", "enter", "G", "slash", "enter")
        await press(pilot, "escape", "escape")
        assert app.screen is dashboard(app)


# -- moving ----------------------------------------------------------------------------------------


async def test_walks_through_samples_and_steps(run: Path) -> None:
    app = loaded(run)
    async with app.run_test(size=(120, 30)) as pilot:
        await start(pilot, app)
        for key, place in [
            *(
                ("n", (4, False, 1)),
                ("p", (4, False, 0)),
                ("N", (3, False, 0)),
                ("b", (3, False, 1)),
            ),
            *(
                ("b", (3, False, 3)),
                ("w", (3, False, 4)),
                ("N", (2, False, 4)),
                ("P", (3, False, 4)),
            ),
            *(
                ("n", (3, False, 5)),
                ("n", (2, False, 0)),
                ("p", (3, False, 5)),
                ("v", (4, True, 0)),
            ),
            *(("N", (2, True, 0)), ("N", (2, True, 0)), ("v", (2, False, 0)), ("f", (4, False, 0))),
        ]:
            await pilot.press(key)
            await until(pilot, lambda place=place: at(app) == place)
        await until(pilot, lambda: "answer 4-0" in text(app))


async def test_follows_the_newest_step_until_the_user_moves(run: Path) -> None:
    app = loaded(run)
    async with app.run_test(size=(120, 30)) as pilot:
        await start(pilot, app)
        samples = app.monitor.runs[next(iter(app.monitor.runs))].samples
        dump = samples.dump(samples.places[-2])
        assert dump is not None

        def grow(step: int) -> None:
            write(run / "rollouts", step, [row(step, index) for index in range(2)])
            path = run / "rollouts" / f"{step}.jsonl"
            samples.add_dump(
                type(dump)(step, str(path), validation=False, size=path.stat().st_size)
            )
            app.paint()

        grow(5)
        await until(pilot, lambda: "answer 5-0" in text(app))
        await press(pilot, "n")
        await until(pilot, lambda: "f follows" in lines(app)[0])
        grow(6)
        await settle(pilot)
        assert at(app) == (5, False, 1)


async def test_answers_stay_when_a_newer_step_comes(run: Path) -> None:
    app = loaded(run)
    async with app.run_test(size=(120, 30)) as pilot:
        await start(pilot, app, "a")
        await until(pilot, lambda: "answer 4-2" in text(app))
        write(run / "rollouts", 5, [row(5, index) for index in range(2)])
        samples = app.monitor.runs[next(iter(app.monitor.runs))].samples
        path = run / "rollouts" / "5.jsonl"
        samples.add_dump(Dump(5, str(path), validation=False, size=path.stat().st_size))
        app.paint()
        await settle(pilot)
        assert "answer 4-2" in text(app)
        await press(pilot, "escape")
        assert at(app) == (4, False, 0)


async def test_scrolls_long_texts_to_their_end(run: Path) -> None:
    write(
        run / "rollouts",
        4,
        [row(4, 0, output="answer 4-0 " + " ".join(map(str, range(30_000))) + " the end")],
    )
    app = loaded(run)
    async with app.run_test(size=(100, 30)) as pilot:
        await start(pilot, app)
        document = screen(app).query_one(DocumentRows)
        assert document.document is not None
        assert not document.document.complete
        await press(pilot, "pagedown", "j")
        assert document.scroll_offset.y > 10
        assert "f follows" in lines(app)[0]
        await press(pilot, "G")
        await until(pilot, lambda: "the end" in text(app))
        await press(pilot, "g")
        await until(pilot, lambda: "answer 4-0" in text(app))


# -- filter, search, order -------------------------------------------------------------------------


async def test_filters_by_numbers_and_texts(run: Path) -> None:
    app = loaded(run)
    async with app.run_test(size=(120, 30)) as pilot:
        await start(pilot, app)
        await type_filter(pilot, "score=1 acc>0.1")
        await until(pilot, lambda: screen(app).browse.listing.visible == [3, 5])
        assert "2 matches" in text(app)
        assert at(app) == (4, False, 3)
        await type_filter(pilot, "4-[23]")
        await until(pilot, lambda: screen(app).browse.listing.visible == [2, 3])
        await press(pilot, "N")
        await until(
            pilot,
            lambda: (
                screen(app).browse.listing.complete and screen(app).browse.listing.visible == []
            ),
        )
        assert "no sample matches, esc clears the filter" in text(app)
        await press(pilot, "escape")
        await until(pilot, lambda: len(screen(app).browse.listing.visible) == 6)
        # Samples are sorted by any field.
        await press(pilot, "f")
        await until(pilot, lambda: at(app) == (4, False, 0))
        await until(pilot, lambda: screen(app).browse.listing.complete)
        await press(pilot, "s")
        assert screen(app).browse.listing.visible == [0, 2, 4, 1, 3, 5]
        assert "by score▲" in text(app)
        await press(pilot, "S")
        assert screen(app).browse.listing.visible == [1, 3, 5, 0, 2, 4]
        await press(pilot, "s", "s", "s")
        assert "by acc▼" in text(app)
        assert screen(app).browse.listing.visible == [5, 4, 3, 2, 1, 0]
        await press(pilot, "tab", "j")
        assert at(app) == (4, False, 4)


async def test_goes_from_hit_to_hit_and_unfolds(run: Path) -> None:
    write(
        run / "rollouts",
        4,
        [row(4, 0, input="needle\n" + "x\n" * 30, output="answer 4-0\n" * 200 + "a Needle")],
    )
    app = loaded(run)
    async with app.run_test(size=(100, 30)) as pilot:
        await start(pilot, app)
        await type_filter(pilot, "needle")
        await until(pilot, lambda: screen(app).browse.listing.complete)
        await press(pilot, "full_stop")
        await until(
            pilot, lambda: "hit 1/2" in text(app) and "needle" in text(app).split("1 prompt")[1]
        )
        await press(pilot, "full_stop")
        await until(pilot, lambda: "hit 2/2" in text(app) and "a Needle" in text(app))
        await pilot.resize_terminal(90, 28)
        await settle(pilot)
        assert "hit 2/2" in text(app)
        await press(pilot, "comma")
        await until(pilot, lambda: "hit 1/2" in text(app))


async def test_what_cannot_be_understood_is_said_and_asked_again(run: Path) -> None:
    app = loaded(run)
    async with app.run_test(size=(120, 30), notifications=True) as pilot:
        await start(pilot, app)
        for words, said in (
            ("(", "missing )"),
            ("nofield>1", "no sample has a number called nofield"),
            ("acc>x", "number"),
        ):
            await type_filter(pilot, words)
            assert any(said in words for words in notices(app)), words
            assert isinstance(app.focused, Input)
            await press(pilot, "escape", "n")
            assert at(app) == (4, False, 1)
            await press(pilot, "p")
            app.clear_notifications()


# -- one prompt ------------------------------------------------------------------------------------


async def test_all_answers_to_a_prompt(run: Path) -> None:
    app = loaded(run)
    async with app.run_test(size=(120, 30)) as pilot:
        await start(pilot, app, "n", "a")
        await until(pilot, lambda: all(f"answer 4-{index}" in text(app) for index in range(3)))
        assert "answer 4-3" not in text(app)
        assert screen(app).query_one("#digest", Rows).chosen == 1
        await press(pilot, "n", "enter")
        await until(pilot, lambda: at(app) == (4, False, 2))
        assert "2 response" in text(app)
        await press(pilot, "a", "a")
        assert "2 response" in text(app)


async def test_the_same_prompt_at_other_steps(run: Path) -> None:
    app = loaded(run)
    async with app.run_test(size=(120, 30)) as pilot:
        await start(pilot, app, "n", "h")
        await until(pilot, lambda: "4 of 4 steps" in text(app))
        # An early answer stands beside the chosen one.
        await until(pilot, lambda: "step 1  ✗ 0" in text(app))
        # The chosen one stays chosen while earlier steps are found.
        titles = next(line for line in lines(app) if "step 1  " in line)
        assert "│ step 4  ✓ 1" in titles
        texts = next(line for line in lines(app) if "│ answer 4-1" in line)
        assert texts.strip().startswith("answer 1-0")
        await press(pilot, "g")
        titles = next(line for line in lines(app) if "step 1  " in line)
        assert "│ step 4  ✗ 0" in titles
        # All of them are listed, and one is gone to.
        await until(pilot, lambda: "answer 1-2" in text(app))
        assert "answer 1-3" not in text(app)
        assert "validated" not in text(app)
        await press(pilot, "g", "enter")
        await until(pilot, lambda: at(app) == (1, False, 0))
        await press(pilot, "v", "h")
        await until(pilot, lambda: "validated 4-1" in text(app))
        await press(pilot, "h")
        await until(pilot, lambda: at(app) == (2, True, 0))
        # Beside a list of one there is nothing.
        await press(pilot, "v", "f")
        await until(pilot, lambda: at(app) == (4, False, 0))
        await press(pilot, "h")
        await until(pilot, lambda: "4 of 4 steps" in text(app))
        await press(pilot, "tab", "j", "h")
        assert "│ step 4" not in text(app)


# -- folding ---------------------------------------------------------------------------------------


# -- out of here -----------------------------------------------------------------------------------


async def test_copies(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMUX", "x")
    write(run / "rollouts", 4, [row(4, 0), row(4, 1, output="汉" * 40_000)])
    app = loaded(run)
    async with app.run_test(size=(120, 40)) as pilot:
        await start(pilot, app, "y")
        assert app.clipboard == "system words\n\nquestion 0\n\nanswer 4-0"
        await press(pilot, "Y")
        assert app.clipboard == "answer 4-0"
        assert any(
            "copied answer 4-0; tmux needs set-clipboard on" in words for words in notices(app)
        )
        await press(pilot, "n")
        await until(pilot, lambda: "汉" in text(app))
        await press(pilot, "Y")
        assert len(app.clipboard.encode()) <= 75_000
        assert set(app.clipboard) == {"汉"}
        assert any("of 40,000" in words for words in notices(app))


async def test_exports(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    out.mkdir()
    monkeypatch.chdir(out)
    app = loaded(run, out)
    async with app.run_test(size=(120, 40)) as pilot:
        # Where nothing can be written, that is said.
        with monkeypatch.context() as patch:
            patch.setattr(
                "verl_tui.rendering.samples.export.Path.cwd", lambda: tmp_path / "missing"
            )
            await start(pilot, app, "x")
            assert any(
                f"cannot write to {tmp_path}/missing: No such" in words for words in notices(app)
            )
        await press(pilot, "x")
        await until(pilot, lambda: any("1 sample in " in words for words in notices(app)))
        await type_filter(pilot, "score=1")
        await press(pilot, "X")
        await until(pilot, lambda: any("3 samples in " in words for words in notices(app)))
    names = sorted(path.name for path in out.iterdir())
    assert [name.split("step-4-")[1] for name in names] == ["3-samples.jsonl", "sample-1.jsonl"]
    rows = [json.loads(line) for line in (out / names[0]).read_text().splitlines()]
    assert rows == [row(4, index) for index in (1, 3, 5)]  # as the dump has them
    assert (
        list(load([str(out)], Config(), NOW).runs) == []
    )  # no log of a run, though it lies in its directory
    assert len(load([str(out / names[0])], Config(), NOW).runs) == 1  # but it can be looked at


# -- robust ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        *HOSTILE[:2],
        HOSTILE[-1],
        *(pytest.param(long, marks=pytest.mark.thorough) for long in HOSTILE[2:-1]),
    ],
    ids=["markup", "control", "signs", "wide", "word", "empty lines", "line"],
)
async def test_hostile_texts(run: Path, words: str) -> None:
    fields = {f"{words[:40]} {index}": index if index % 2 else words[:300] for index in range(200)}
    odd = {"score": float("nan"), "acc": float("inf")}
    rows = [
        row(4, 0),
        row(4, 1, input=words, output=words, gts=words, uid=words[:50], **fields, **odd),
    ]
    write(run / "rollouts", 4, rows)
    app = loaded(run, now=NOW)
    async with app.run_test(size=(90, 24)) as pilot:
        await start(pilot, app, "n")
        await until(pilot, lambda: at(app) == (4, False, 1))
        for keys in (
            "u",
            "G",
            "a",
            "enter",
            "h",
            "escape",
            "s",
            "s",
            "s",
            "s",
            "s",
            "2",
            "b",
            "w",
            "tab",
            "G",
            "y",
        ):
            await pilot.press(keys)
            await settle(pilot)
            check_layout(app)
            assert not {"\x1b", "\x9b", "\u202e", "\u200d"} & set(text(app))
        await type_filter(pilot, ".*x.*")
        check_layout(app)


async def test_a_broken_dump_breaks_nothing(run: Path) -> None:
    path = run / "rollouts" / "4.jsonl"
    good = json.dumps(row(4, 0))
    path.write_bytes(
        f"{good}\n{{broken\n[1, 2]\n{good[:50]}\n".encode() + b"\xff\xfe\n" + good.encode()
    )
    app = loaded(run)
    async with app.run_test(size=(100, 30)) as pilot:
        await start(pilot, app)
        for _ in range(6):
            await press(pilot, "n")
            check_layout(app)
        path.unlink()
        await press(pilot, "P", "p", "p", "b", "w", "a", "h", "escape")
        check_layout(app)


async def test_ascii(run: Path) -> None:
    app = loaded(run, ascii_only=True)
    async with app.run_test(size=(100, 30)) as pilot:
        await start(pilot, app)
        for keys in ("s", "tab", "a", "escape", "h", "escape"):
            await press(pilot, keys)
            assert text(app).isascii(), keys


async def test_help_begins_with_the_screen_one_is_on(run: Path) -> None:
    app = loaded(run)
    async with app.run_test(size=(100, 40)) as pilot:
        await start(pilot, app, "question_mark")
        assert isinstance(app.screen, HelpScreen)
        assert "all samples of a step" in text(app).split("everywhere")[0]
        said = "\n".join(strip.text for strip in app.screen.query_one(Rows).strips)
        assert "score>0.5 acc=1" in said
        for binding in SamplesScreen.BINDINGS:
            assert getattr(binding, "description", "") in said
        await press(pilot, "escape")
        assert isinstance(app.screen, SamplesScreen)
        # The app may end while samples are read.
        shown = screen(app)
        await shown.remove_children()
        shown.show_samples(app.view_at(NOW))

"""The screen of all samples: other answers to a prompt, copies and exports, damaged and hostile texts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from inside_textual import notices
from sample_dumps import at, row, screen, start, type_filter, write, write_dumped_run
from watching import (
    NOW,
    check_layout,
    lines,
    loaded,
    press,
    settle,
    text,
    until,
)

from verl_tui.config import Config
from verl_tui.monitor import load
from verl_tui.tui.screens.help.screen import HelpScreen
from verl_tui.tui.screens.samples.screen import SamplesScreen
from verl_tui.tui.widgets.rows import Rows

if TYPE_CHECKING:
    from pathlib import Path


HOSTILE = (
    "[red]not red[/red] [/INST] [@click=app.quit]quit[/] [/",
    "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x9b2J \x00\x07\x08 a\rb\tc \u202ereversed",
    "汉" * 50_000,
    "x" * 250_000,
    "\n" * 20_000,
    "the same again and " * 5000,
    "👨\u200d👩\u200d👧 ☀\ufe0f 👍🏽 🇩🇪 e\u0301\u0301 한국어 ไทย",
)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run with dumps of samples."""
    return write_dumped_run(tmp_path)


# -- one prompt ------------------------------------------------------------------------------------


async def test_all_answers_to_a_prompt(run: Path) -> None:
    app = loaded(run)
    async with app.run_test(size=(120, 30)) as pilot:
        await start(pilot, app, "n", "a")
        await until(
            pilot, lambda: all(f"answer 4-{index}" in text(app) for index in range(3))
        )
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
            "copied answer 4-0; tmux needs set-clipboard on" in words
            for words in notices(app)
        )
        await press(pilot, "n")
        await until(pilot, lambda: "汉" in text(app))
        await press(pilot, "Y")
        assert len(app.clipboard.encode()) <= 75_000
        assert set(app.clipboard) == {"汉"}
        assert any("of 40,000" in words for words in notices(app))


async def test_exports(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    monkeypatch.chdir(out)
    app = loaded(run, out)
    async with app.run_test(size=(120, 40)) as pilot:
        # Where nothing can be written, that is said.
        with monkeypatch.context() as patch:
            patch.setattr(
                "verl_tui.rendering.samples.export.Path.cwd",
                lambda: tmp_path / "missing",
            )
            await start(pilot, app, "x")
            assert any(
                f"cannot write to {tmp_path}/missing: No such" in words
                for words in notices(app)
            )
        await press(pilot, "x")
        await until(
            pilot, lambda: any("1 sample in " in words for words in notices(app))
        )
        await type_filter(pilot, "score=1")
        await press(pilot, "X")
        await until(
            pilot, lambda: any("3 samples in " in words for words in notices(app))
        )
    names = sorted(path.name for path in out.iterdir())
    assert [name.split("step-4-")[1] for name in names] == [
        "3-samples.jsonl",
        "sample-1.jsonl",
    ]
    rows = [json.loads(line) for line in (out / names[0]).read_text().splitlines()]
    assert rows == [row(4, index) for index in (1, 3, 5)]  # as the dump has them
    # no log of a run, though it lies in its directory
    assert list(load([str(out)], Config(), NOW).runs) == []
    # but it can be looked at
    assert len(load([str(out / names[0])], Config(), NOW).runs) == 1


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
    fields = {
        f"{words[:40]} {index}": index if index % 2 else words[:300]
        for index in range(200)
    }
    odd = {"score": float("nan"), "acc": float("inf")}
    rows = [
        row(4, 0),
        row(
            4, 1, input=words, output=words, gts=words, uid=words[:50], **fields, **odd
        ),
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
        f"{good}\n{{broken\n[1, 2]\n{good[:50]}\n".encode()
        + b"\xff\xfe\n"
        + good.encode()
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

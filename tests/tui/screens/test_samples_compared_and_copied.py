"""The screen of all samples: other answers to a prompt, copies and exports, damaged and hostile texts."""

from __future__ import annotations

import json

import pytest
from inside_textual import notices
from sample_dumps import at, row, screen, start, type_filter, write, write_dumped_run
from watching import NOW, check_shown, lines, loaded, press, text, until

from verl_tui.config import Config
from verl_tui.monitor import load
from verl_tui.tui.widgets.rows import Rows


@pytest.fixture
def run(tmp_path):
    """A run with dumps of samples."""
    return write_dumped_run(tmp_path)


# -- one prompt ------------------------------------------------------------------------------------


async def test_all_answers_to_a_prompt(run):
    app = loaded(run)
    async with app.run_test(size=(120, 30)) as pilot:
        await start(pilot, app, "n", "a")
        await until(
            pilot, lambda: all(f"answer 4-{index}" in text(app) for index in range(3))
        )
        assert "answer 4-3" not in text(app)
        assert screen(app).query_one("#list", Rows).chosen == 1
        await press(pilot, "n", "enter")
        await until(pilot, lambda: at(app) == (4, False, 2))
        assert "2 response" in text(app)
        await press(pilot, "a", "a")
        assert "2 response" in text(app)


async def test_the_same_prompt_at_other_steps_and_beside_another(run):
    for step in range(1, 5):  # learned
        rows = [row(step, index, score=float(step > 2)) for index in range(3)]
        write(run / "rollouts", step, rows)
    app = loaded(run)
    async with app.run_test(size=(120, 30)) as pilot:
        await start(pilot, app, "n", "d", "h")
        await until(pilot, lambda: "prompts of grpo: 1, 1 learned" in text(app))
        assert "step 4 ✓ mean 1 of 3 responses" in text(app)
        assert any(
            "learned" in line and "question 0" in line and "✗  ✗  ✓  ✓" in line
            for line in lines(app)
        )
        # The cursor goes to the steps of the prompt, and enter to the samples there.
        await press(pilot, "left", "left")
        assert "step 2 ✗ mean 0 of 3 responses" in text(app)
        await press(pilot, "enter")
        await until(pilot, lambda: at(app) == (2, False, 0))
        await until(pilot, lambda: "answer 2-0" in text(app))
        assert len(app.screen_stack) == 2, "the samples that the map was opened over"
        # The marked sample stands beside each that is gone to.
        await press(pilot, "d")
        await until(pilot, lambda: "step 4 · sample 2" in text(app))
        check_shown(app, "│ step 2 · sample 1", "score 1 · 10 characters")
        check_shown(app, "│ score 0 · 10 characters", "- answer 4-1", "│ + answer 2-0")
        await press(pilot, "n", "n")
        await until(pilot, lambda: "│ + answer 2-2" in text(app))
        # Prompts that differ are both named.
        await press(pilot, "v")
        await until(pilot, lambda: "validation · sample" in text(app))
        await press(pilot, "escape")
        await until(pilot, lambda: "step 4 · sample 2" not in text(app))
        assert at(app) == (2, True, 0)


async def test_prompts_by_steps_from_the_dashboard(run):
    other = run.parent / "other"
    hostile = "\x1b[31mred\x1b]0;title\x07 [bold]\u202e\n" * 3
    for step in (1, 2):
        rows = [row(step, 0, score=step, input=f"{hostile}{at}") for at in range(40)]
        write(other / "rollouts", step, rows)
    app = loaded(run, other)
    async with app.run_test(size=(100, 24)) as pilot:
        await press(pilot, "O")
        await until(pilot, lambda: "prompts of grpo: 1, 1 partly right" in text(app))
        await press(pilot, "v")
        assert "prompts of grpo: 2," in text(app)
        await press(pilot, "right_square_bracket")
        await until(pilot, lambda: "prompts of other: 40, 40 rose" in text(app))
        assert "\x1b" not in text(app)
        assert "\u202e" not in text(app)
        await press(pilot, "d", "j", "d")
        await until(pilot, lambda: "step 2 · sample 1" in text(app))
        # Both prompts are named where they differ.
        await press(pilot, "escape", "escape")
        assert "charts" in text(app)


# -- out of here -----------------------------------------------------------------------------------


async def test_copies(run, monkeypatch):
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


async def test_exports(run, tmp_path, monkeypatch):
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
                f"cannot write to {tmp_path}/missing: no such" in words
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

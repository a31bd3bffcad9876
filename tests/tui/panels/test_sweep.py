"""The list of runs of a sweep: what the user has it show, and that this is remembered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jsonl import write_jsonl
from watching import NOW, Typed, loaded, press, text

from verl_tui.rendering.session.preferences import StateFile

if TYPE_CHECKING:
    from pathlib import Path

    from verl_tui.tui.app import VerlApp

REWARD, KL = "critic/score/mean", "actor/ppo_kl"


def write(directory: Path) -> Path:
    """Write six runs of two learning rates; the last one has logged no reward."""
    for n in range(6):
        folder = directory / f"sweep-{'ab'[n % 2]}-{n}"
        data = {KL: 0.01 * n} if n == 5 else {REWARD: 0.1 * n, KL: 0.01 * n}
        rows = [{"step": step, "data": data} for step in range(1, 6)]
        write_jsonl(folder / "train.jsonl", rows)
        (folder / "config.yaml").write_text(f"optim:\n  lr: {1 + n // 3}e-6\n")
    return directory


def runs(app: VerlApp) -> list[str]:
    return [run.name.removeprefix("sweep-") for run in app.view_at(NOW).listed]


def row(app: VerlApp, word: str) -> list[str]:
    found = [line for line in text(app).split("\n") if word in line]
    assert found, f"{word} is not in\n{text(app)}"
    return found[0][1:-1].split()


async def test_columns_filter_hidden_runs_and_groups(tmp_path):
    logs, state = write(tmp_path / "logs"), tmp_path / "state.json"
    app = loaded(logs, state_file=StateFile(state))
    async with app.run_test(size=(140, 30)) as pilot:
        await press(pilot, "f2")
        # columns, of which one is unknown
        await press(pilot, "f", "ctrl+u", Typed("step, reward, reward@2, lr, rewrd"))
        assert "5 columns, no run has rewrd, alike: reward" in text(app)
        await press(pilot, *["backspace"] * 7, "enter")
        assert [one for one in row(app, "╭─ runs") if one.strip("─")] == [
            *("runs", "step", "reward", "reward@2", "lr")
        ]
        assert row(app, "a-4")[2:] == ["sweep-a-4", "5", "0.4", "0.4", "2e-06"]
        assert row(app, "b-5")[2:] == ["sweep-b-5", "5", "2e-06"]
        # a condition, and one that cannot be read, which hides nothing
        await press(pilot, "slash", Typed("reward >= 0.2 and"))
        assert "unfinished" in text(app)
        assert len(runs(app)) == 6
        await press(pilot, Typed(" lr < 9"), "enter")
        assert runs(app) == ["a-2", "a-4", "b-3"]
        assert "6 runs · filter: 3 of 6 · 1 without reward" in text(app)
        # the other way round, and by another column
        await press(pilot, "s", "s", "s", "S")
        assert "by reward reversed" in text(app)
        await press(pilot, "s", "s", "s", "s")
        assert "by lr" in text(app)
        assert runs(app) == ["a-4", "b-3", "a-2"]
        await press(pilot, "escape", "s")
        # a hidden run, and groups with their means
        await press(pilot, "g", "h", "b", Typed("lr"), "enter")
        assert runs(app) == ["a-2", "b-1", "a-4", "b-3", "b-5"]
        assert "6 runs · 1 hidden" in text(app)
        heading = text(app).split("lr 2e-06 · 3 runs, means")[1].split("\n")[0]
        assert heading[:-1].split() == ["0.35", "0.35"]
        assert row(app, "best of")[-2:] == ["0.2", "0.2"], "of the first group"
        # the screen that compares takes the same runs, and shows the same figures
        await press(pilot, "C")
        assert "compare 5 runs" in text(app)
        assert row(app, "reward@2")[1] == "0.2"
        await press(pilot, "slash", Typed("reward > 0.2"), "enter")
        assert "compare 2 runs" in text(app)
        assert "filter: reward > 0.2 (2 of 5), 1 without reward" in text(app)
        await press(pilot, "escape", "escape")
    again = loaded(logs, state_file=StateFile(state))
    async with again.run_test(size=(140, 30)) as pilot:
        await press(pilot, "f2")
        assert runs(again) == ["a-2", "b-1", "a-4", "b-3", "b-5"]
        assert "lr 1e-06 · 2 runs, means" in text(again)
        assert "6 runs · 1 hidden" in text(again)
        assert "reward@2" in row(again, "╭─ runs")
        await press(pilot, "u", "b", "ctrl+u", Typed("name"), "enter")
        assert runs(again) == ["a-0", "a-2", "a-4", "b-1", "b-3", "b-5"]
        assert "a · 3 runs, means" in text(again)
        await press(pilot, "f", "ctrl+u", "enter")
        assert "throughput" not in text(again), "nobody has logged any"
        assert "KL" in row(again, "╭─ runs"), "the usual columns are back"


async def test_hidden_runs_are_not_shown_first_and_listed_where_there_is_no_other(
    tmp_path,
):
    logs, state = write(tmp_path / "logs"), StateFile(tmp_path / "state.json")
    app = loaded(logs, state_file=state)
    async with app.run_test(size=(140, 30)) as pilot:
        await press(pilot, "f2", *"ghhh")
        assert runs(app) == ["b-1", "b-3", "b-5"]
    app = loaded(logs, state_file=StateFile(tmp_path / "state.json"), shown=None)
    async with app.run_test(size=(140, 30)) as pilot:
        await press(pilot, "f2")
        shown = app.view_at(NOW).run
        assert shown is not None
        assert shown.name == "sweep-b-1"
    app = loaded(*sorted(logs.glob("*-a-*")), state_file=state)
    async with app.run_test(size=(140, 30)) as pilot:
        await press(pilot, "f2")
        assert runs(app) == ["a-0", "a-2", "a-4"]
        assert "hidden" not in text(app)


async def test_groups_have_room_beside_all_runs(tmp_path):
    app = loaded(write(tmp_path), state_file=StateFile(tmp_path / "state.json"))
    async with app.run_test(size=(140, 45)) as pilot:
        await press(pilot, "f2", "b", Typed("name"), "enter")
        shown = text(app)
        assert "a · 3 runs, means" in shown
        assert all(f"sweep-{one}" in shown for one in ("a-4", "b-1", "b-5"))

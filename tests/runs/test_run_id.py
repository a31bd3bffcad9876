"""A run keeps its id, whatever it is called, from wherever it is looked at, and while it grows."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest
from file_writing import write_file as write
from log_writing import event_log
from wandb_writing import history, written

from verl_tui.cli import main
from verl_tui.config import Config
from verl_tui.monitor import load
from verl_tui.runs.run_id import run_id

if TYPE_CHECKING:
    from pathlib import Path

NOW = 1_800_000_000.0
SAMPLE = '{"input": "a", "output": "b", "score": 1.0}\n'


def steps(*reached: int, reward: float = 0.5) -> str:
    """Return records of verl's file logger."""
    return "".join(
        f'{{"step": {step}, "data": {{"critic/score/mean": {reward}}}}}\n'
        for step in reached
    )


def ids(*paths: Path | str) -> dict[str, str]:
    """Return the ids of the runs behind paths, by name."""
    runs = load([*map(str, paths)], Config(), NOW).runs
    return {name: run_id(run) for name, run in runs.items()}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write(tmp_path / "a" / "x" / "m.jsonl", steps(1, 2)).parent


def _another_run(run: Path) -> None:
    write(run.parent.parent / "b" / "x" / "m.jsonl", steps(1, 2))


def _another_run_beside_it(run: Path) -> None:
    write(run / "second.jsonl", steps(1, 2, reward=0.7))


def _more_files_of_it(run: Path) -> None:
    write(run / "rollouts" / "1.jsonl", SAMPLE * 4)
    write(run / "config.yaml", "trainer:\n  experiment_name: another_name\n")
    write(run / "global_step_2" / "model.pt", "")


def _growth(run: Path) -> None:
    with (run / "m.jsonl").open("a") as file:
        file.write(steps(3, 4, 5))


def _another_time(run: Path) -> None:
    os.utime(run / "m.jsonl", (NOW, NOW))


@pytest.mark.parametrize(
    "happens",
    [
        _another_run,
        _another_run_beside_it,
        _more_files_of_it,
        _growth,
        _another_time,
    ],
)
def test_an_id_stays_whatever_happens(run, happens):
    (before,) = ids(run).values()
    happens(run)
    assert before in ids(run.parent.parent).values()


def test_the_state_in_a_checkpoint_changes_no_id(tmp_path):
    events = tmp_path / "out" / "runs" / "a" / "events.out.tfevents.1700000000.host.1.0"
    events.parent.mkdir(parents=True)
    events.write_bytes(event_log([1, 2, 3]))
    known = [*ids(tmp_path / "out").values()]
    rows = [{"step": step, "loss": 1.0} for step in (1, 2)]
    state = json.dumps({"log_history": rows, "global_step": 2, "max_steps": 9})
    write(tmp_path / "out" / "checkpoint-2" / "trainer_state.json", state)
    assert [*ids(tmp_path / "out").values()] == known


def test_a_console_keeps_its_id_from_its_first_line_on(tmp_path):
    log = write(tmp_path / "run" / "train.log", "+ python3 -m verl.trainer.main_ppo\n")
    known = [*ids(log).values()]
    write(log, log.read_text() + "step:1 - critic/score/mean:0.5\n" * 2)
    write(tmp_path / "run" / "m.jsonl", steps(1))
    assert [*ids(log).values(), *ids(tmp_path / "run").values()] == known * 2


def test_an_id_is_the_same_from_everywhere(run, monkeypatch):
    (run.parent / "link").symlink_to(run)
    (run.parent / "now.jsonl").symlink_to(run / "m.jsonl")
    monkeypatch.chdir(run)
    paths = [run, run / "m.jsonl", ".", "*.jsonl", "../x", "../link", "../now.jsonl"]
    assert len({id for path in paths for id in ids(path).values()}) == 1


def test_other_runs_have_other_ids(run):
    known = ids(run)
    _another_run(run)
    write(run / "m.jsonl", steps(1, 2, reward=0.6))
    found = ids(run.parent.parent)
    assert list(found) == ["a/x", "b/x"]
    assert len({*known.values(), *found.values()}) == 3


@pytest.mark.parametrize("folder", ["run-20260101_000000-ab12cd34", "renamed"])
def test_the_id_that_wandb_gave_is_taken(tmp_path, folder):
    kept = tmp_path / "run" / "wandb" / folder
    (kept / "files").mkdir(parents=True)
    log = written([history(step, {"reward": "0.5"}) for step in (1, 2)])
    (kept / "run-ab12cd34.wandb").write_bytes(log)
    write(tmp_path / "run" / "train.log", "step:1 - critic/score/mean:0.5\n")
    assert [*ids(tmp_path / "run").values()] == ["ab12cd34"]


def test_every_json_has_the_id_beside_the_name(run, capsys):
    os.utime(run / "m.jsonl", (NOW - 1e8, NOW - 1e8))  # it has ended
    (id,) = ids(run).values()

    def said(command: str) -> str:
        main([*command.split(), str(run)])
        return capsys.readouterr().out

    for command in ("check", "compare", "doctor"):
        assert json.loads(said(f"{command} --json"))["runs"][0]["id"] == id
    assert json.loads(said("report -o - --format json"))["runs"][0]["id"] == id
    for answer in ("state", "metrics", "findings", "log"):
        assert json.loads(said(f"get {answer} --json"))["run_id"] == id
    events = said("guard").splitlines()
    assert {json.loads(event)["run_id"] for event in events} == {id}

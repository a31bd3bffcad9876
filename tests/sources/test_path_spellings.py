"""However a path is written, the answer is the same."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from verl_tui.cli import main

if TYPE_CHECKING:
    from pathlib import Path

STEPS = "".join(
    f'{{"step": {step}, "data": {{"critic/score/mean": 0.{step:03}}}}}\n'
    for step in range(201, 213)
)
CONSOLE = "".join(
    f"step:{step} - critic/score/mean:0.{step:03} - actor/ppo_kl:0.01\n"
    for step in range(201, 213)
)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Runs with checkpoints inside them, beside their log, and above a directory of any name."""
    for name, text in {
        "logs/run_4/m.jsonl": STEPS,
        "logs/run_4/global_step_205/model.pt": "",
        "logs/run_4/best_0.212/model.pt": "",
        "run_5/outputs/train.log": CONSOLE,
        "run_5/checkpoints/global_step_210/model.pt": "",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "four").symlink_to(tmp_path / "logs" / "run_4")
    (tmp_path / "elsewhere" / "five").symlink_to(tmp_path / "run_5" / "outputs")
    (tmp_path / "elsewhere" / "now.log").symlink_to(
        tmp_path / "run_5/outputs/train.log"
    )
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def _checked(path: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Return what `check --json` says at one time, and its exit code."""
    code = main(["check", path, "--json"])
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    del run["last_record_age_s"]
    return code, json.dumps(run)


RUN_4, FILE_4 = "logs/run_4", "logs/run_4/m.jsonl"
RUN_5, FILE_5 = "run_5/outputs", "run_5/outputs/train.log"


@pytest.mark.parametrize(
    ("meant", "here", "written"),
    [
        (RUN_4, ".", "logs/run_4"),
        (RUN_4, ".", "~/logs/run_4"),
        (RUN_4, ".", "logs/run_*"),
        (RUN_4, "logs/run_4", "."),
        (RUN_4, "logs/run_4", "../run_4"),
        (RUN_4, "elsewhere", "four"),
        (RUN_4, "elsewhere", "four/../run_4"),
        (FILE_4, "elsewhere", "four/m.jsonl"),
        (RUN_5, "run_5/checkpoints", "../outputs"),
        (RUN_5, "elsewhere", "five"),
        (FILE_5, "elsewhere", "now.log"),
    ],
)
def test_every_spelling_of_a_path_gives_the_same_answer(
    place, capsys, monkeypatch, meant, here, written
):
    expected = _checked(str(place / meant), capsys)
    assert '"latest_checkpoint": {' in expected[1]
    monkeypatch.chdir(place / here)
    code, said = _checked(written, capsys)
    for link, target in (("four", "logs/run_4"), ("five", "run_5/outputs")):
        said = said.replace(f"{place}/elsewhere/{link}", f"{place}/{target}")
    assert (code, said) == expected

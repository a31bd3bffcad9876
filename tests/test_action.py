"""The GitHub Action of the documentation: its shape, and its steps, run one after the other as a runner
runs them, on trainings that are good, worse and broken.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.long
PAGE = Path(__file__).parents[1] / "verl_tui" / "commands" / "README.md"
TRAIN = """#!{python}
import json, pathlib, random, sys
seed, home = int(sys.argv[1]), pathlib.Path(sys.argv[2])
home.mkdir(parents=True)
chance, rows = random.Random(seed), []
for step in range(1, 61):
    reward = {rise} * step / 60 + 0.3 + chance.gauss(0, 0.01)
    data = {{"critic/score/mean": reward, "actor/ppo_kl": {kl}, "actor/entropy": 0.5,
             "response_length/mean": 300.0 + chance.gauss(0, 3)}}
    rows.append(json.dumps({{"step": step, "data": data}}))
(home / "train.jsonl").write_text("\\n".join(rows if {logs} else rows[:0]) + "\\n")
"""


def workflow() -> dict[str, Any]:
    """Return the documented workflow; its key `on` is true in YAML 1.1."""
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    found: dict[Any, Any] = yaml.safe_load(text)
    return {"on" if name is True else name: part for name, part in found.items()}


def test_it_has_the_shape_of_a_workflow():
    found = workflow()
    assert {"name", "on", "permissions", "jobs"} == found.keys()
    assert found["on"] == "pull_request"
    assert found["permissions"] == {"contents": "read"}
    for job in found["jobs"].values():
        assert {"runs-on", "steps", "timeout-minutes"} == job.keys()
        for step in job["steps"]:
            assert step.keys() <= {"name", "if", "uses", "with", "run"}
            assert ("uses" in step) is not ("run" in step)
            assert step.get("if", "always()") == "always()"
            assert re.fullmatch(r"actions/[\w-]+@v\d+", step.get("uses", "actions/a@v1"))  # fmt: skip


def job(folder: Path, last: str = "Report", **training: object) -> Mapping[str, int]:
    """Run the job's own steps up to one, each in a shell as a runner starts it; return their exit
    codes. What would be installed is there already: its step is asked for the package's name alone.
    """
    commands = folder / "commands"
    commands.mkdir()
    for name, line in {
        "verl-tui": f'exec "{sys.executable}" -m verl_tui "$@"',
        "python": 'test "$*" = "-m pip install verl-tui"',
    }.items():
        (commands / name).write_text(f"#!/bin/sh\n{line}\n")
        (commands / name).chmod(0o755)
    train = folder / "train.sh"
    facts = {"python": sys.executable, "rise": 0.4, "kl": 0.01, "logs": True}
    train.write_text(TRAIN.format(**facts))
    train.chmod(0o755)
    subprocess.run([train, "7", "ci/reference"], check=True, cwd=folder)
    train.write_text(TRAIN.format(**{**facts, **training}))
    environment = {
        **os.environ,
        "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(PAGE.parents[2]),
        "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
    }
    codes: dict[str, int] = {}
    for step in workflow()["jobs"]["gate"]["steps"]:
        if "run" in step and (not any(codes.values()) or step.get("if") == "always()"):
            shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c"]
            done = subprocess.run(
                [*shell, step["run"]], cwd=folder, env=environment, check=False
            )
            codes[step["name"]] = done.returncode
        if step.get("name") == last:
            break
    return codes


@pytest.mark.parametrize(
    ("training", "gate", "said"),
    [
        ({"rise": 0.8}, 0, "3 better"),
        ({"kl": 0.5}, 1, "critical"),
    ],
)
def test_its_steps_let_good_trainings_pass_and_no_others(
    training, gate, said, tmp_path, capfd
):
    codes = job(tmp_path, **training)
    shown = capfd.readouterr()
    assert codes == {"Install": 0, "Train": 0, "Gate": gate, "Summary": 0, "Report": 0}
    assert said in shown.out, shown
    assert "## seed2" in (tmp_path / "summary.md").read_text("utf-8")
    assert "<!DOCTYPE html>" in (tmp_path / "report.html").read_text("utf-8")


def test_a_training_that_logs_nothing_does_not_pass(tmp_path, capfd):
    codes = job(tmp_path, "Summary", logs=False)
    assert codes["Gate"] != 0, capfd.readouterr()
    assert "Not read" in (tmp_path / "summary.md").read_text("utf-8")

"""The demo: bytes as verl 0.9 writes them, numbers that agree across the files of a run, one run that
collapses beside a healthy one, and the same bytes for the same seed.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import shutil
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from clock import Clock

from verl_tui.config import Config
from verl_tui.demo.grpo import HISTORY, Simulation
from verl_tui.demo.rollouts import COLLAPSE_STEP, STEPS
from verl_tui.monitor import load

if TYPE_CHECKING:
    from pathlib import Path

NOW = 1_790_000_000.0
HEALTHY, COLLAPSING = "run_grpo_gsm8k", "run_grpo_high_lr"
PREFIX = re.compile(r"\x1b\[36m\((\w+) pid=\d+\)\x1b\[0m ")
STEP = re.compile(r"(?<![\w:])step:(\d+) - (.*)")
PIECE = re.compile(
    r"(?P<k>.+?):(?:np\.\w+\()?(?P<v>[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|\.\d+|nan|inf)|True|False)\)?"
)
BAR = re.compile(
    r"\rTraining Progress: ( {0,2}\d+)%\|([ ▏▎▍▌▋▊▉█]{10})\| (\d+)/(\d+) \[(\S+)<(\S+), +(\S+)\]"
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return a simulation that has written all of its steps at once."""
    simulation = Simulation(tmp_path_factory.mktemp("demo"), 7, Clock(NOW))
    simulation.prepare(STEPS)
    return simulation


@pytest.fixture(scope="module")
def run(whole):
    return whole.directory / HEALTHY


@pytest.fixture(scope="module")
def lines(run):
    return (run / "train.log").read_bytes().decode().split("\n")


@pytest.fixture(scope="module")
def metrics(run):
    content = (run / "verl_examples" / "run_grpo_gsm8k.jsonl").read_bytes()
    records = [json.loads(line) for line in content.splitlines()]
    assert all(list(record) == ["step", "data"] for record in records)
    return {record["step"]: record["data"] for record in records}


def dumped(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def unprefixed(line: str) -> str:
    return PREFIX.sub("", line, count=1)


def test_configuration_is_printed_first_and_equals_the_file(run, lines):
    printed = []
    for line in lines:
        if "INFO:" in line:
            break
        printed.append(unprefixed(line))
    config = ast.literal_eval("\n".join(printed))
    assert config == yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8"))
    assert config["actor_rollout_ref"]["actor"]["kl_loss_coef"] == 0.001
    assert config["trainer"]["total_training_steps"] == STEPS


def test_console_and_file_logger_say_the_same(lines, metrics):
    matches = [match for line in lines if (match := STEP.search(line))]
    assert (
        [int(match[1]) for match in matches] == list(range(STEPS + 1)) == list(metrics)
    )
    for match in matches:
        pieces = [PIECE.fullmatch(piece) for piece in match[2].split(" - ")]
        assert all(pieces)
        assert {piece["k"]: float(piece["v"]) for piece in pieces if piece} == metrics[
            int(match[1])
        ]


def test_dumps_have_v1s_shape(run):
    raw = (run / "rollouts" / "12.jsonl").read_text(encoding="utf-8").splitlines()[0]
    entry = json.loads(raw)
    assert raw == json.dumps(entry, ensure_ascii=False)
    assert list(entry) == ["input", "output", "gts", "score", "step", "uid"]
    assert list(dumped(run / "validation" / "10.jsonl")[0]) == [
        *list(entry)[:5],
        "reward",
        "uid",
    ]
    assert len(list((run / "rollouts").iterdir())) == STEPS


@pytest.mark.parametrize("step", [1, 150, 300])
def test_scores_are_what_a_strict_grader_gives(run, step):
    for row in dumped(run / "rollouts" / f"{step}.jsonl"):
        found = re.search(r"^#### (-?\d+)$", row["output"], re.MULTILINE)
        assert row["score"] == float(found is not None and found[1] == row["gts"])


def fingerprints(directory: Path) -> dict[str, str]:
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


def scores(directory: Path, run: str) -> dict[int, float]:
    content = (directory / run / "verl_examples" / f"{run}.jsonl").read_bytes()
    records = map(json.loads, content.splitlines())
    return {
        one["step"]: one["data"]["critic/score/mean"] for one in records if one["step"]
    }


def test_the_cliff_comes_half_a_minute_after_the_history(whole):
    found = scores(whole.directory, COLLAPSING)
    edge = COLLAPSE_STEP
    assert HISTORY < edge < HISTORY + 30
    assert min(found[step] for step in range(edge - 20, edge)) > 0.3
    assert found[edge + 3] < 0.2
    assert min(scores(whole.directory, HEALTHY).values()) > 0.2


def test_one_run_is_healthy_and_the_other_one_collapses(whole, tmp_path):
    # nine of ten dumps, which take longer to read than all else
    dumps = shutil.ignore_patterns("*[1-9].jsonl")
    read = shutil.copytree(whole.directory, tmp_path / "demo", ignore=dumps)
    monitor = load([str(read)], Config(), NOW)
    assert not monitor.verdicts[HEALTHY].findings
    (found,) = monitor.verdicts[COLLAPSING].primary
    assert (found.id, found.since_step) == ("policy-collapse", COLLAPSE_STEP)


def test_history_and_live_steps_are_the_same_bytes(tmp_path):
    live = Clock(NOW)
    Simulation(tmp_path / "whole", 7, Clock(NOW)).prepare(30)
    simulation = Simulation(tmp_path / "live", 7, live)
    live.now -= 10
    simulation.prepare(20)
    assert list(scores(tmp_path / "live", HEALTHY)) == list(range(1, 21))
    assert not simulation.finished
    for _ in range(10):
        live.now += 1
        simulation.advance()
    assert fingerprints(tmp_path / "whole") == fingerprints(tmp_path / "live")


def test_everything_at_once_ends_with_the_markers(whole):
    assert whole.finished
    for run in (HEALTHY, COLLAPSING):
        content = (whole.directory / run / "train.log").read_bytes()
        assert b"Final validation metrics: {" in content
    before = fingerprints(whole.directory)
    assert not whole.advance()
    assert fingerprints(whole.directory) == before

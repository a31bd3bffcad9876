"""The GRPO run: bytes as verl 0.9 writes them, and numbers that agree across its files."""

from __future__ import annotations

import ast
import json
import re
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from verl_tui.demo import curves
from verl_tui.demo.grpo import GrpoRun

if TYPE_CHECKING:
    from pathlib import Path

START = 1_790_000_000.0
PREFIX = re.compile(r"\x1b\[36m\((\w+) pid=\d+\)\x1b\[0m ")
STEP = re.compile(r"(?<![\w:])step:(\d+) - (.*)")
PIECE = re.compile(
    r"(?P<k>.+?):(?:np\.\w+\()?(?P<v>[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|\.\d+|nan|inf)|True|False)\)?"
)
BAR = re.compile(
    r"\rTraining Progress: ( {0,2}\d+)%\|([ ▏▎▍▌▋▊▉█]{10})\| (\d+)/(\d+) \[(\S+)<(\S+), +(\S+)\]"
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = GrpoRun(tmp_path_factory.mktemp("grpo") / "run_grpo_gsm8k", 7)
    run.start(START)
    for tick in range(1, run.total + 1):
        run.write(tick, START + tick)
    run.finish(START + run.total)
    return run.directory


@pytest.fixture(scope="module")
def lines(run: Path) -> list[str]:
    return (run / "train.log").read_bytes().decode().split("\n")


@pytest.fixture(scope="module")
def metrics(run: Path) -> dict[int, dict[str, float]]:
    content = (run / "verl_examples" / "run_grpo_gsm8k.jsonl").read_bytes()
    records = [json.loads(line) for line in content.splitlines()]
    assert all(list(record) == ["step", "data"] for record in records)
    return {record["step"]: record["data"] for record in records}


def dumped(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def unprefixed(line: str) -> str:
    return PREFIX.sub("", line, count=1)


def test_configuration_is_printed_first_and_equals_the_file(
    run: Path, lines: list[str]
) -> None:
    printed = []
    for line in lines:
        if "INFO:" in line:
            break
        printed.append(unprefixed(line))
    config = ast.literal_eval("\n".join(printed))
    assert config == yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8"))
    assert config["actor_rollout_ref"]["actor"]["kl_loss_coef"] == 0.001
    assert config["trainer"]["total_training_steps"] == curves.STEPS


def test_console_and_file_logger_say_the_same(
    lines: list[str], metrics: dict[int, dict[str, float]]
) -> None:
    matches = [match for line in lines if (match := STEP.search(line))]
    assert (
        [int(match[1]) for match in matches]
        == list(range(curves.STEPS + 1))
        == list(metrics)
    )
    for match in matches:
        pieces = [PIECE.fullmatch(piece) for piece in match[2].split(" - ")]
        assert all(pieces)
        assert {piece["k"]: float(piece["v"]) for piece in pieces if piece} == metrics[
            int(match[1])
        ]


def test_dumps_have_v1s_shape(run: Path) -> None:
    raw = (run / "rollouts" / "12.jsonl").read_text(encoding="utf-8").splitlines()[0]
    entry = json.loads(raw)
    assert raw == json.dumps(entry, ensure_ascii=False)
    assert list(entry) == ["input", "output", "gts", "score", "step", "uid"]
    assert list(dumped(run / "validation" / "10.jsonl")[0]) == [
        *list(entry)[:5],
        "reward",
        "uid",
    ]
    assert len(list((run / "rollouts").iterdir())) == curves.STEPS


@pytest.mark.parametrize("step", [1, 150, 300])
def test_scores_are_what_a_strict_grader_gives(run: Path, step: int) -> None:
    for row in dumped(run / "rollouts" / f"{step}.jsonl"):
        found = re.search(r"^#### (-?\d+)$", row["output"], re.MULTILINE)
        assert row["score"] == float(found is not None and found[1] == row["gts"])

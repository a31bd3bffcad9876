"""The GRPO run: bytes as verl 0.9 writes them, and numbers that agree across its files."""

from __future__ import annotations

import ast
import json
import re
from statistics import mean
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from verl_tui.demo import console, curves
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
    run = GrpoRun(tmp_path_factory.mktemp("grpo"), 7)
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


def test_every_line_but_rays_own_is_prefixed(lines: list[str]) -> None:
    assert "Started a local Ray instance." in lines[0]
    assert lines[-1] == ""
    assert all(PREFIX.match(line) for line in lines[1:-1])


def test_configuration_is_printed_first_and_equals_the_file(
    run: Path, lines: list[str]
) -> None:
    printed = []
    for line in lines[1:]:
        if "INFO:" in line:
            break
        printed.append(unprefixed(line))
    config = ast.literal_eval("\n".join(printed))
    assert config == yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8"))
    assert config["actor_rollout_ref"]["actor"]["kl_loss_coef"] == 0.001
    assert config["trainer"]["total_training_steps"] == curves.GRPO_STEPS


def test_console_and_file_logger_say_the_same(
    lines: list[str], metrics: dict[int, dict[str, float]]
) -> None:
    matches = [match for line in lines if (match := STEP.search(line))]
    assert (
        [int(match[1]) for match in matches]
        == list(range(curves.GRPO_STEPS + 1))
        == list(metrics)
    )
    for match in matches:
        pieces = [PIECE.fullmatch(piece) for piece in match[2].split(" - ")]
        assert all(pieces)
        assert {piece["k"]: float(piece["v"]) for piece in pieces if piece} == metrics[
            int(match[1])
        ]


def test_only_what_v1_leaves_to_numpy_is_numpy(lines: list[str]) -> None:
    line = next(line for line in lines if "step:10 - " in line)
    scalars = {piece.split(":")[0] for piece in line.split(" - ") if ":np." in piece}
    assert scalars
    assert all(
        key.startswith(("val-", "training/num_turns/", "training/off_policy/"))
        for key in scalars
    )
    assert re.search(r"val-core/openai/gsm8k/reward/mean@1:np\.float64\(0\.\d+\)", line)
    assert "val-aux/num_turns/min:np.int64(2)" in line
    assert "actor/lr:1e-06" in line


def test_file_logger_is_compact_and_starts_with_validation_only(
    run: Path, metrics: dict[int, dict[str, float]]
) -> None:
    content = (run / "verl_examples" / "run_grpo_gsm8k.jsonl").read_bytes()
    assert content.startswith(
        b'{"step":0,"data":{"val-core/openai/gsm8k/reward/mean@1":'
    )
    assert b'"actor/lr":1e-6,' in content
    assert all(key.startswith("val-") for key in metrics[0])
    validated = [
        step
        for step, data in metrics.items()
        if "val-core/openai/gsm8k/reward/mean@1" in data
    ]
    assert validated == list(range(0, curves.GRPO_STEPS + 1, 10))


def test_progress_bars_are_tqdms(lines: list[str]) -> None:
    bars = [unprefixed(line) for line in lines if "Training Progress" in line]
    matches = [BAR.fullmatch(bar) for bar in bars]
    assert all(matches)
    assert bars[0] == "\rTraining Progress:   0%|          | 0/300 [00:00<?, ?it/s]"
    assert (
        bars[3]
        == "\rTraining Progress:   1%|          | 3/300 [00:03<04:57,  1.00s/it]"
    )
    assert (
        bars[150]
        == "\rTraining Progress:  50%|█████     | 150/300 [02:30<02:30,  1.00s/it]"
    )
    assert (
        bars[-1]
        == bars[-2]
        == "\rTraining Progress: 100%|██████████| 300/300 [05:00<00:00,  1.00s/it]"
    )


def test_long_runs_show_hours(tmp_path: Path) -> None:
    log = console.Console(tmp_path / "train.log", 105)
    log.progress(0, 0.0)
    log.progress(1, 46.9)
    assert (
        b"| 1/105 [00:46<1:21:17, 46.90s/it]" in (tmp_path / "train.log").read_bytes()
    )


def test_life_cycle_is_reported_in_order(lines: list[str]) -> None:
    text = "\n".join(lines)
    marks = (
        "Total training steps: 300",
        "all initialize finished, ready to fit",
        "Training from scratch",
        """("Initial validation metrics: {'val-core/openai/gsm8k/reward/mean@1': \"""",
        "step:0 - val-core",
        "pending: ",
        "Dumped generations to rollouts/50.jsonl",
        "Saving checkpoint to checkpoints/global_step_300",
        "step:300 - ",
        """("Final validation metrics: {'val-core/openai/gsm8k/reward/mean@1': \"""",
    )
    places = [text.index(mark) for mark in marks]
    assert places == sorted(places)
    heartbeat = r"INFO:\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}:pending: \d+, running: \d+, finished: \d+, failure: 0"
    assert any(re.fullmatch(heartbeat, unprefixed(line)) for line in lines)


def test_ray_explains_its_deduplication_once(lines: list[str]) -> None:
    repeated = [line for line in lines if "repeated" in line]
    assert len(repeated) > 3
    assert sum("RAY_DEDUP_LOGS=0" in line for line in repeated) == 1
    assert repeated[-1].endswith("\x1b[32m [repeated 7x across cluster]\x1b[0m")


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
    assert len(list((run / "rollouts").iterdir())) == curves.GRPO_STEPS


def test_groups_are_contiguous_and_of_one_prompt(run: Path) -> None:
    rows = dumped(run / "rollouts" / "7.jsonl")
    assert [row["uid"] for row in rows] == sorted(row["uid"] for row in rows)
    for place in range(0, len(rows), 4):
        group = rows[place : place + 4]
        names, numbers, indices = zip(
            *(row["uid"].split("_") for row in group), strict=True
        )
        assert len(set(names)) == len({row["input"] for row in group}) == 1
        assert numbers == ("0", "1", "2", "3")
        assert set(indices) == {"0"}
        assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", names[0])


@pytest.mark.parametrize("step", [1, 150, 300])
def test_scores_are_what_a_strict_grader_gives(run: Path, step: int) -> None:
    for row in dumped(run / "rollouts" / f"{step}.jsonl"):
        found = re.search(r"^#### (-?\d+)$", row["output"], re.MULTILINE)
        assert row["score"] == float(found is not None and found[1] == row["gts"])


def test_every_equation_in_a_right_answer_holds(run: Path) -> None:
    signs = {"×": "*", "/": "/", "+": "+", "-": "-"}
    seen = 0
    for row in dumped(run / "rollouts" / "300.jsonl"):
        for left, result in re.findall(r"(\d+(?: [×/+-] \d+)+) = (\d+)", row["output"]):
            # digits and signs only
            value = eval("".join(signs.get(part, part) for part in left.split()))
            assert value == int(result)
            seen += 1
    assert seen > 50


def test_metrics_are_those_of_the_dumps(
    run: Path, metrics: dict[int, dict[str, float]]
) -> None:
    for step in (1, 77, 300):
        rows = dumped(run / "rollouts" / f"{step}.jsonl")
        assert metrics[step]["critic/score/mean"] == mean(row["score"] for row in rows)
        assert metrics[step]["response_length/clip_ratio"] >= 1 / len(rows)
    for step in (0, 150, 300):
        rows = dumped(run / "validation" / f"{step}.jsonl")
        assert metrics[step]["val-core/openai/gsm8k/reward/mean@1"] == mean(
            row["score"] for row in rows
        )


def test_the_policy_learns(metrics: dict[int, dict[str, float]]) -> None:
    scores = [data["critic/score/mean"] for step, data in metrics.items() if step]
    assert mean(scores[:30]) < 0.5
    assert mean(scores[-30:]) > 0.65
    validated = [
        data["val-core/openai/gsm8k/reward/mean@1"]
        for step, data in metrics.items()
        if step % 50 == 0
    ]
    assert validated == sorted(validated)
    assert (
        max(data["response_length/max"] for step, data in metrics.items() if step)
        < 1024
    )


def test_no_group_statistics_cry_wolf(run: Path) -> None:
    for step in range(1, curves.GRPO_STEPS + 1, 10):
        rows = dumped(run / "rollouts" / f"{step}.jsonl")
        groups = [
            {row["score"] for row in rows[place : place + 4]}
            for place in range(0, len(rows), 4)
        ]
        assert sum(len(scores) == 1 for scores in groups) / len(groups) < 0.75


def test_phases_add_up(metrics: dict[int, dict[str, float]]) -> None:
    data = metrics[50]
    phases = (
        "gen",
        "old_log_prob",
        "ref",
        "adv",
        "update_actor",
        "save_checkpoint",
        "update_weights",
    )
    assert data["timing_s/step"] == pytest.approx(
        sum(data[f"timing_s/{phase}"] for phase in phases) + 0.02
    )
    assert data["perf/throughput"] == pytest.approx(
        data["perf/total_num_tokens"] / data["timing_s/step"] / 8
    )
    assert "timing_s/testing" in data
    assert "timing_s/save_checkpoint" not in metrics[51]


def test_checkpoints_and_their_tracker(run: Path) -> None:
    folders = {path.name for path in (run / "checkpoints").iterdir() if path.is_dir()}
    assert folders == {f"global_step_{step}" for step in range(50, 301, 50)}
    assert (
        run / "checkpoints" / "latest_checkpointed_iteration.txt"
    ).read_bytes() == b"300"

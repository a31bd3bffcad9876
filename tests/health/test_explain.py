"""Why a run is as its verdict says: the order in which things moved, on planted and on real
trainings; what shows it; the command and the screen that say so.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import pytest
from file_writing import write_file
from planted import (
    OTHER,
    STATUS,
    VERL,
    batch,
    judge,
    noisy,
    planted,
    rows,
    wave,
)
from producers.pathologies import extracts
from producers.pathologies.measure import EXTRACTS
from test_made_states import MADE

from verl_tui.config import Config
from verl_tui.explain import explain, in_words
from verl_tui.health.guide_settings import load_guide
from verl_tui.monitor import load
from verl_tui.runs.run import Run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

NOW = 1_800_000_000.0
GUIDE = load_guide()
FIRST = ", from the start (step 1, the first that is logged)"
JUDGE_503 = "RuntimeError: judge model endpoint returned 503"


def explained(run: Run) -> dict[str, Any]:
    return explain(run, judge(run, GUIDE), GUIDE, NOW)


def of_path(path: Path) -> dict[str, Any]:
    monitor = load([str(path)], Config(), NOW)
    ((name, run),) = monitor.runs.items()
    return explain(run, monitor.verdicts[name], monitor.guide, NOW)


# -- planted orders --------------------------------------------------------------------------------


def stepped(count: int, at: int, before: float, after: float, seed: int) -> list[float]:
    """Return a level that changes at a step, with noise of a twentieth."""
    levels = [before if step < at else after for step in range(1, count + 1)]
    return noisy(levels, 0.05 * abs(before), seed)


def collapse(kl: int, reward: int, length: int) -> Mapping[str, Sequence[float]]:
    """Return a collapse whose metrics move at these steps."""
    return {
        "critic/score/mean": stepped(160, reward, 0.7, 0.05, 1),
        "actor/ppo_kl": stepped(160, kl, 0.02, 0.6, 2),
        "response_length/mean": stepped(160, length, 300.0, 900.0, 3),
        "actor/entropy": noisy([0.6] * 160, 0.03, 4),
    }


@pytest.mark.parametrize(
    ("kl", "reward", "length", "order"),
    [
        (95, 100, 108, ["first policy KL", "5 steps later reward", "8 steps later response"]),
        (80, 100, 101, ["first policy KL", "20 steps later reward", "1 step later response"]),
        (102, 100, 108, ["reward", "2 steps later policy KL", "6 steps later response"]),
        (100, 100, 90, ["first response length", "10 steps later reward", "at the same step"]),
    ],
)  # fmt: skip
def test_what_moved_first_leads_by_its_steps(kl, reward, length, order):
    found = explained(planted(collapse(kl, reward, length), VERL))
    parts = found["line"].split("; ")
    assert found["finding"]["id"] == "policy-collapse"
    for part, begins in zip(parts, order, strict=False):
        assert part.startswith(begins), found["line"]
    assert ("nothing else left" in found["line"]) == (kl >= reward <= length)
    assert {one["key"]: one["step"] for one in found["chain"] if one["moved"]} == {
        "actor/ppo_kl": kl,
        "critic/score/mean": reward,
        "response_length/mean": length,
    }


@pytest.mark.parametrize("seed", range(8))
def test_noise_and_trends_at_one_pace_are_no_moves(seed):
    columns = {
        "critic/score/mean": stepped(90, 70, 0.7, 0.05, seed),
        "actor/ppo_kl": noisy([0.02] * 90, 0.003, seed + 100),
        "actor/entropy": noisy([1.0 - i / 200 for i in range(90)], 0.02, seed + 200),
        "response_length/mean": [200.0 + i for i in range(90)],
        "actor/grad_norm": noisy([0.3] * 90, 0.1, seed + 300),
    }
    found = explained(planted(columns, VERL))
    moved = [one["key"] for one in found["chain"] if one["moved"]]
    assert moved == ["critic/score/mean"]
    assert "nothing else left its usual range" in found["line"]


def test_a_move_for_the_better_is_no_sign():
    """Fewer responses were cut before the scorer died, which has nothing to do with it."""
    columns = {
        "critic/score/mean": [*stepped(99, 100, 0.9, 0.0, 1), *[0.0] * 61],
        "actor/ppo_kl": [0.02] * 160,
        "response_length/clip_ratio": stepped(160, 85, 0.8, 0.4, 2),
    }
    line = explained(planted(columns, VERL))["line"]
    assert line.startswith(
        "reward 0.894 → 0 (step 100): reward fell to 0; nothing else left"
    )
    assert "truncated" not in line


def test_nothing_behind_what_is_looked_at_changes_the_order():
    columns = collapse(95, 100, 108)
    whole = explained(planted(columns, VERL))["chain"]
    early = explained(planted({key: of[:135] for key, of in columns.items()}, VERL))
    steps = [(one["key"], one["step"]) for one in early["chain"] if one["moved"]]
    assert steps == [(one["key"], one["step"]) for one in whole if one["moved"]]


# -- real trainings --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("tuned/scorer-dies", "reward 0.917 → 0 (step 100): reward fell to 0"),
        ("held_out/leash-cut", "first entropy 2.98 → 2.48 (step 106); 4 steps later reference KL "
         "0.172 → 1.65 (step 110); 15 steps later policy collapse (step 125)"),
        ("held_out/explodes-late", "first reward 1 → 0.208 (step 101); at the same step truncated "
         "share 0% → 91.7% (step 101); 2 steps later entropy 2.68 → 0.792 (step 103): entropy"),
        ("held_out/times-hundred", "reward 0.958 → 91.7 (step 70): reward changed its scale"),
        ("held_out/sure-sure-sure", "first reference KL 0.35 → 1.09 (step 18); 16 steps later "
         "reward part varied 0.969 → 0.578 (step 34): reward hacking"),
        ("held_out/destroyed-at-once", "policy collapse since step 2, with only 1 point before it "
         "to say what moved first; since the first point: reward 0.292 → 0, entropy 3.43 → 0.468"),
        ("tuned/rate-zero", f"nothing learns: learning rate 0{FIRST}"),
        ("tuned/small-batch", f"of {len({one.id for one in GUIDE.rules})} rules, "),
    ],
)  # fmt: skip
def test_the_order_in_trainings_whose_fault_is_known(name, line, tmp_path):
    made = extracts.read(EXTRACTS / f"{name}.json")
    found = of_path(extracts.replay(made, "TRL's scalars", tmp_path))
    assert found["line"].startswith(line)


CUT = f"responses cut off{FIRST}"
RUNS = {
    "lf_dpo_raise": f"{JUDGE_503}; {{path}}/train.log, line 511",
    "swift_log1": "Size does not match at dimension 1",
    "t014_eval": "has no attribute 'get'; {path}/train.log, line 31",
    "t019_resume": "noted: the log started over at step 101",
    "t019_unbuf": "truncated share 0% → 12.5% (step 54): responses cut off; nothing else",
    "t116_rloo_raise": f"{JUDGE_503}; {{path}}/train.log, line 59",
    "verl061_collapse": "first reference KL above its band (step 2); 1 step later answers are "
    "alike (step 3); 17 steps later run dead: no entropy, no gradient (step 20)",
    "verl061_defaults": CUT,
    "verl061_raise": "; {path}/train.log, line 723",
    "verl061_sigterm": "*** SIGTERM received at time=1795344697 on cpu 1 ***; {path}/train.log",
    "verl061_startfail_ray": "CUDA_VISIBLE_DEVICES contains []",
}
"""Runs -> a part of the line on each."""


@pytest.mark.parametrize("name", RUNS)
def test_real_trainers_runs(name):
    path = MADE / name
    if not path.is_dir():
        pytest.skip(f"{path} is not here")
    found = of_path(path)
    assert RUNS[name].format(path=path) in found["line"]
    json.dumps(found, allow_nan=False)
    if name == "verl061_collapse":
        assert found["setting"] == {
            "key": "actor_rollout_ref.actor.optim.lr",
            "value": 1.0,
            "proposed": 1e-05,
            "why": "is above 1e-05 (heuristic)",
            "times": 1.0 / 1e-05,
        }
        before, newest = found["samples"]
        assert (before["step"], newest["step"]) == (19, 30)
        assert set(newest["response"]) == {"s"}


def test_what_is_no_training_has_nothing_to_explain(tmp_path):
    record = {"prompt": "1 + 1?", "response": "2", "reward": 1.0, "id": "q1"}
    log = tmp_path / "eval_results.jsonl"
    log.write_text("".join(f"{json.dumps({**record, 'id': i})}\n" for i in range(20)))
    assert of_path(log)["line"] == "no training, nothing to explain"


@pytest.mark.parametrize(("step", "label"), [(0, "step 0"), (None, "step –")])
def test_words_of_a_step_and_of_no_verdict(step, label):
    found = explained(planted(collapse(95, 100, 108), VERL))
    chain = [{"step": step, "what": "it began"}]
    first, then, *_ = in_words({**found, "verdict": None, "chain": chain})
    assert (first[0], then[0]) == ("no verdict", label)


# -- settings --------------------------------------------------------------------------------------

KL = {"actor.kl_loss_coef": 0.001}
OFF = {"actor.use_kl_loss": False, "algorithm.use_kl_in_reward": False}


@pytest.mark.parametrize(
    ("settings", "change"),
    [
        ({}, None),
        (KL, ("actor.kl_loss_coef", 0.001, 0.01)),
        (KL | {"actor.optim.lr": 1e-2}, ("actor.optim.lr", 1e-2, 1e-5)),
        (KL | OFF, ("actor.use_kl_loss", False, True)),
        ({"actor.optim.lr": 1e-6, "actor.kl_loss_coef": 0.05}, None),
    ],
)
def test_the_setting_furthest_from_the_usual_is_to_be_changed(settings, change):
    found = explained(planted(collapse(95, 100, 108), VERL, settings))["setting"]
    known = found and (found["key"], found["value"], found["proposed"])
    assert known == change


# -- a run that stands still -----------------------------------------------------------------------


def test_a_hang_says_since_when():
    run = Run("r")
    for i in range(20):
        row = rows({"reward": [0.4], "step_time": [40.0]}, [i + 1], order=i)
        grown = STATUS._replace(bytes_read=100 * i + 100, modified=NOW + 40.0 * i)
        run.apply(batch(row, status=grown, live=True), now=NOW + 40.0 * i)
    late = NOW + 40 * 19 + 3600
    found = explain(run, judge(run, GUIDE, late), GUIDE, late)
    assert found["finding"]["id"] == "hang"
    assert "; last record 2027-01-15 08:12:40 UTC, 1h 00m ago" in found["line"]
    assert {one["step"] for one in found["chain"]} == {20}
    assert found["samples"] == []


@pytest.mark.parametrize("stated", [16, None])
def test_a_crash_has_the_setting_that_its_error_asks_for(stated, tmp_path):
    lines = [
        "(TaskRunner pid=9) Total training steps: 100",
        *[f"(TaskRunner pid=9) step:{step} - critic/score/mean:0.5" for step in range(1, 30)],
        "Traceback (most recent call last):",
        '  File "/x/verl/workers/actor/dp_actor.py", line 500, in update_policy',
        "    loss.backward()",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 9.27 GiB.",
    ]  # fmt: skip
    path = write_file(tmp_path / "train.log", "\n".join(lines) + "\n")
    if stated:
        # the critic's name is the shorter one
        text = f"critic: {{ppo_micro_batch_size: 4}}\nactor_rollout_ref: {{actor: {{ppo_micro_batch_size: {stated}}}}}\n"
        (tmp_path / "config.yaml").write_text(text)
    found = of_path(tmp_path)
    assert f"{path}, line {len(lines)}" in found["line"]
    key = "actor_rollout_ref.actor.ppo_micro_batch_size"
    known = found["setting"] and [
        found["setting"][one] for one in ("key", "value", "proposed")
    ]
    assert known == ([key, "16", "8"] if stated else None)


# -- the command -----------------------------------------------------------------------------------


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a run whose KL leaves its range, with samples that a model made hostile."""
    config = write_file(tmp_path / "config.toml", "")
    monkeypatch.setenv("VERL_TUI_CONFIG", str(config))
    path = tmp_path / "logs" / "run_[7]"
    path.mkdir(parents=True)
    lines: list[dict[str, Any]] = []
    for step, (kl, reward) in enumerate(
        zip(wave(80, 0.02, 0.002), wave(80, 3.0, 0.1), strict=True), 1
    ):
        high = 0.4 if step >= 40 else kl
        lines.append(
            {"scope": "rollout", "step": step, "reward_mean": reward, "kl_div": high}
        )
        for score in (0.5, -1.0, math.nan, 2.0):
            text = {
                "prompt": "why\x1b[31m *?*",
                "response": "y" * 600 + "\x07hf_" + "a" * 34,
            }
            lines.append({"scope": "sample", "step": step, **text, "reward": score})
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    (path / "verl_logs.jsonl").write_text(text, encoding="utf-8")
    return path


def test_text_markdown_and_json(run, asked):
    def said(*words: str) -> str:
        return asked("explain", run, *words, code=0).out

    data = json.loads(said("--json"))
    assert data["finding"]["id"] == "circuit-breaker-kl"
    assert data["line"].startswith("policy KL 0.0201 → 0.4 (step 40): ")
    assert [one["step"] for one in data["samples"]] == [39, 80]
    text = said()
    assert data["line"] in text
    assert data["next"] in text
    assert "why *?*" in text
    assert "280 characters" not in text
    for control in ("\x1b", "\x07"):
        assert control not in text
    markdown = said("--md")
    assert markdown.startswith("## run\\_\\[7\\]\n\n- **critical**: policy KL")
    assert "hf_aaa" in text
    assert "hf\\_aaa" not in markdown
    assert "why \\*?\\*" in markdown


def test_bad_input_gets_a_sentence_and_a_code(run, asked):
    other = run.parent / "run_8"
    write_file(
        other / "verl_logs.jsonl", (run / "verl_logs.jsonl").read_text(encoding="utf-8")
    )
    empty = write_file(run.parent / "empty.jsonl", "")
    for words, code, sentence in (
        ([run.parent / "none"], 3, "no such file or directory"),
        ([run.parent], 64, "name one with --run"),
        ([run.parent, "--run", "x"], 64, "none of the runs"),
        ([empty], 3, ""),
        ([run, "--md", "--json"], 64, "not allowed with"),
    ):
        _, out, err = asked("explain", *words, code=code)
        assert not out
        assert sentence in err
    shown = asked("explain", run.parent, "--run", "run_8", code=0).out
    assert shown.startswith("run_8\n")


def test_a_kl_per_response_has_its_own_words():
    columns = {
        "reward": stepped(160, 100, 0.7, 0.0, 1),
        "kl": stepped(160, 97, 0.02, 0.9, 2),
    }
    line = explained(planted(columns, OTHER))["line"]
    assert line.startswith("first reference KL 0.0")
    assert "3 steps later reward" in line

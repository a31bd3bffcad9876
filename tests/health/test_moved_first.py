"""What moved first leads, what is new in the log there is shown, and what the log refutes is not
advised.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from log_reading import read_run
from planted import OTHER, VERL, judge, planted, wave

from verl_tui.check.data import report
from verl_tui.config import Config
from verl_tui.monitor import load
from verl_tui.rendering.log.target import log_target

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

NOW = 1_800_000_000.0
FALL = 46
"""The step from which on the reward is low."""
RETRIES = (
    "(AgentWorker pid=811) Retrieval request failed: HTTPConnectionPool(host='10.0.0.{n}', port=8000): "
    "Max retries exceeded with url: /retrieve [repeated {n}x across cluster]"
)
UNKNOWN = (
    "(AgentWorker pid=811) WARNING tool `run_python` failed: backend busy, request {n}"
)
NOISE = "(AgentWorker pid=811) WARNING answer {n} has an invalid format"
PARSED = "(RewardWorker pid=77) Could not parse the answer in /data/run_{n}/answers.txt"


def findings(
    folder: Path, lines: Callable[[int], Sequence[str]]
) -> dict[str, dict[str, Any]]:
    """Return the findings of a console log by id; `lines` are printed while a step is computed."""
    path = folder / "train.log"
    high, low = wave(80, 0.5, 0.02), wave(80, 0.1, 0.01)
    written: list[str] = []
    for step in range(1, 81):
        written += lines(step)
        reward = (high if step < FALL else low)[step - 1]
        written.append(
            f"(TaskRunner pid=9) step:{step} - critic/score/mean:{reward} - critic/returns/mean:0.0"
        )
    path.write_text("\n".join(written) + "\n")
    (run,) = report(load([str(path)], Config(), NOW), NOW)["runs"]
    return {one["id"]: one for one in run["findings"]}


def many(text: str, since: int, before: int = 0) -> Callable[[int], Sequence[str]]:
    return lambda step: [
        text.format(n=100 * step + i) for i in range(40 if step >= since else before)
    ]


@pytest.mark.parametrize(
    ("text", "before", "title"),
    [
        (RETRIES, 0, "retriever does not answer"),
        (RETRIES, 2, "retriever does not answer"),
        (UNKNOWN, 0, "a service fails"),
    ],
    ids=["appears", "multiplies", "unknown"],
)
def test_a_service_that_fails_explains_the_fall_that_begins_with_it(
    tmp_path, text, before, title
):
    found = findings(tmp_path, many(text, FALL, before))
    first = found["worker-errors"]
    assert first["message"].startswith(title)
    assert first["since_step"] == FALL
    assert first["consequence_of"] is None
    assert found["reward-cliff"]["consequence_of"] == "worker-errors"
    assert any(f"since step {FALL} (heuristic)" in one for one in first["evidence"])


@pytest.mark.parametrize(
    ("text", "since"),
    [(RETRIES, 1), (RETRIES, 20), (RETRIES, 60), (NOISE, FALL)],
    ids=["always", "long before", "after", "no service"],
)
def test_other_lines_explain_no_fall(tmp_path, text, since):
    found = findings(tmp_path, many(text, since))
    assert "worker-errors" not in found
    assert found["reward-cliff"]["consequence_of"] is None


def test_what_is_new_in_the_log_is_shown_under_a_finding(tmp_path):
    cliff = findings(tmp_path, many(PARSED, FALL, 1))["reward-cliff"]
    (said,) = [one for one in cliff["evidence"] if "new in the log" in one]
    assert said == (
        f"new in the log since step {FALL} (heuristic): 1 → 40 lines a step: "
        "Could not parse the answer in #"
    )
    always = findings(tmp_path, many(PARSED, 1))["reward-cliff"]
    assert not any("new in the log" in one for one in always["evidence"])


def test_answers_that_are_all_cut_explain_that_nothing_scores():
    columns = {
        "reward": [0.0] * 60,
        "reward_std": [0.0] * 60,
        "grad_norm": [0.0] * 60,
        "kl": [0.0] * 60,
        "learning_rate": [1.2345678e-6] * 60,
        "entropy": wave(60, 0.5, 0.01),
        "completions/clipped_ratio": [1.0] * 60,
        "frac_reward_zero_std": [1.0] * 60,
    }
    verdict = judge(planted(columns, OTHER))
    assert [one.id for one in verdict.primary] == ["truncation"]
    assert not any("easier" in (one.advice or "").lower() for one in verdict.findings)
    scored = judge(planted({**columns, "reward": [0.4] * 60}, OTHER))
    assert {"truncation", "nothing-learns"} <= {one.id for one in scored.primary}


@pytest.mark.parametrize("apart", [0.0, 0.3])
def test_no_scorer_is_called_constant_while_scores_differ(apart):
    columns = {
        "reward": [0.4] * 60,
        "reward_std": [apart] * 60,
        "grad_norm": [0.0] * 60,
        "kl": [0.0] * 60,
        "learning_rate": [1.2345678e-6] * 60,
        "entropy": wave(60, 0.5, 0.01),
        "frac_reward_zero_std": [0.0 if apart else 1.0] * 60,
    }
    (found,) = (
        one
        for one in judge(planted(columns, OTHER)).findings
        if one.id == "nothing-learns"
    )
    assert ("scorer is constant" in (found.advice or "")) == (not apart)
    assert "frozen parameters" in (found.advice or "")


@pytest.mark.parametrize("start", [1, 501])
def test_no_checkpoint_is_from_before_the_first_step(start):
    values = [0.5, *[float("nan")] * 30]
    columns = {
        "critic/score/mean": wave(31, 0.5, 0.02),
        "actor/grad_norm": [*values[1:], 1.0],
    }
    steps = range(start, start + 31)
    (found,) = (
        one
        for one in judge(planted(columns, VERL, steps=steps)).findings
        if one.id == "not-finite"
    )
    assert found.since_step == start
    assert ("tart anew" in (found.advice or "")) == (start == 1)


def test_the_log_of_a_finding_opens_at_what_is_new_there(tmp_path):
    findings(tmp_path, many(PARSED, FALL))
    path = tmp_path / "train.log"
    run = read_run(path)
    cliff = next(one for one in judge(run).findings if one.id == "reward-cliff")
    target = log_target(run, cliff, None)
    assert target.path == str(path)
    assert target.line is not None
    assert "Could not parse" in path.read_text().splitlines()[target.line - 1]
    assert target.line == FALL

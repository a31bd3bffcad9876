"""What is said of a policy by its KL, entropy, gradients and losses, and of nothing that only looks like
it.
"""

from __future__ import annotations

import math
import random

import pytest
from planted import (
    OTHER,
    OVER,
    TUTORIAL,
    VERL,
    Case,
    case,
    episodes,
    found,
    hold,
    ids,
    judge,
    noisy,
    planted,
    ramp,
    reason,
    wave,
)

NAN = math.nan
REWARD = "critic/score/mean"
LOOPS = [*noisy([0.05] * 201, 0.02), *noisy([0.8] * 49, 0.05)]


# -- collapse --------------------------------------------------------------------------------------

CLIFF = [
    *noisy(ramp(2.0, 3.0, 200), 0.05),
    *noisy([2.2, 1.5, 0.9, 0.6], 0.02),
    *noisy([0.4] * 46, 0.05),
]
DRIFT = [*noisy([0.03] * 190, 0.005), *noisy(ramp(0.05, 0.3, 60, finish=20), 0.01)]
FALLS = [1.4, 0.6, 0.5, 0.4, 0.4]
FAR = [0.33, 0.4, 0.42, 0.4, 0.41]


def collapse(
    reward: list[float],
    kl: list[float],
    says: str | None = None,
    settings: dict[str, object] | None = None,
    **more: list[float],
) -> Case:
    columns = {"rollout/reward_mean": reward, "ppo/kl_div": kl, **more}
    return case("policy-collapse", columns, says, beside=TUTORIAL, settings=settings)


def few_points(fall: list[float], kl: list[float]) -> Case:
    return collapse([*noisy([2.6] * 12, 0.08), *fall], [*noisy([0.03] * 12, 0.004), *kl])  # fmt: skip


def long_dead(seed: int) -> list[float]:
    """Return rewards of small batches, long after a policy has died."""
    chance = random.Random(seed)
    return [chance.choice((0.0, 0.25, 0.25, 0.25, 0.5)) for _ in range(300)]


COLLAPSES = [
    collapse(  # the tutorials' failing run
        CLIFF, DRIFT,
        "the policy collapsed: reward cliff at step 201, from …samples loop from step 202…policy KL"
        "…× its threshold of 0.1 from step 19…kl_coef 0.001…below 0.01–0.1…does not adapt"
        "…kl_coef 0.02…adaptive controller…target_kl 0.05…[0.01, 0.1]",
        {"kl_coef": 0.001, "kl_controller": "fixed"}, **{"samples/repetition": LOOPS},
    ),
    collapse(CLIFF, noisy([0.03] * 250, 0.005)),  # the reward alone: a broken scorer, a harder curriculum
    collapse(noisy(ramp(2.0, 3.0, 250), 0.05), DRIFT),  # KL alone
    collapse(CLIFF, [*DRIFT[:150], *[math.inf] * 5, *noisy([0.03] * 95, 0.005)]),  # no number is no evidence
    collapse(noisy(ramp(3.0, 2.0, 250), 0.05), DRIFT),  # a slow decline
    collapse(CLIFF[:201], DRIFT[:201]),  # one bad batch
    # of few points: the reward alone, a KL that is not far out, less than 40 %, one bad batch
    few_points(FALLS, [0.03] * 5),
    few_points(FALLS, [0.12, 0.15, 0.17, 0.16, 0.15]),
    few_points([1.9, 1.9, 1.8, 1.9, 1.8], FAR),
    few_points([0.6, 2.5, 2.6, 2.5, 2.6], FAR),
    case(  # samples were in loops all along
        "policy-collapse",
        {
            REWARD: [*noisy([0.97] * 190, 0.01), *noisy([0.5] * 15, 0.01), *noisy([0.97] * 60, 0.01)],
            "samples/repetition": [*[0.02] * 12, *noisy([0.95] * 253, 0.02)],
        },
    ),
]  # fmt: skip


@pytest.mark.parametrize("one", COLLAPSES, ids=lambda one: one.id)
def test_a_collapse_and_what_is_none(one):
    hold(one)


@pytest.mark.parametrize("seed", range(6))
def test_small_batches_of_a_policy_that_has_long_been_dead_collapse_no_more(seed):
    kl = [0.0, 5.9, *noisy([7.4] * 298, 0.1)]
    verdict = judge(planted({REWARD: long_dead(seed), "actor/kl_loss": kl}))
    raised = [one.raised_step or 0 for one in episodes(verdict, "policy-collapse")]
    assert not [step for step in raised if step > 25]


# -- entropy ---------------------------------------------------------------------------------------

FALLING = [
    *noisy([0.5] * 150, 0.01),
    *[0.5 * math.exp(-i / 30) + 0.005 for i in range(150)],
]
SOLVED = noisy([*ramp(-0.35, 0.99, 80, finish=60), *[0.99] * 220], 0.003)
"""The sum of a share of right answers and of a penalty, both at their best from step 60 on."""
GONE = [4.77, 0.199, 0.0719, 0.0697, 0.0078, 0.0, 0.0, 0.005]
LEARNT = [0.16, 0.22, 0.12, 0.19, 0.34, 0.78, 0.88, 0.84, 0.94, 0.94, *[0.97, 0.94, 1.0] * 20]  # fmt: skip
CALM = noisy([0.3] * 200, 0.01)
WILD = [*CALM[:140], *[0.3 + 0.05 * i for i in range(60)]]
LEVEL = noisy([0.6] * 200, 0.02)


def entropy(values: list[float], reward: list[float], says: str | None = None) -> Case:
    return case("entropy-collapse", {"actor/entropy": values, REWARD: reward}, says)


def explosion(
    values: list[float], reward: list[float] = LEVEL, says: str | None = None
) -> Case:
    return case("entropy-explosion", {"actor/entropy": values, REWARD: reward}, says)


def opening(first: float) -> list[float]:
    """Return rewards of a task that the first steps teach nearly whole."""
    values = noisy([*[first] * 10, *[max(first, 0.93)] * 290], 0.01)
    return [min(1.0, value) for value in values]


def in_parts(
    says: str | None, right: list[float], penalty: list[float] | None = None
) -> Case:
    """Return an entropy that falls, and a reward with its parts."""
    parts = {"rewards/right/mean": right}
    if penalty is not None:
        parts["rewards/brevity/mean"] = penalty
    whole = [sum(values) for values in zip(*parts.values(), strict=True)]
    falls = [*ramp(4.7, 0.3, 80), *[0.3 * math.exp(-i / 60) for i in range(220)]]
    reward = SOLVED if penalty is None else noisy(whole, 0.003)
    return case("entropy-collapse", {"entropy": falls, "reward": reward, **parts}, says, beside=OTHER)  # fmt: skip


ENTROPIES = [
    # beside a reward that rises it is convergence
    entropy(FALLING, noisy(ramp(0.5, 0.7, begin=140, finish=280), 0.02)),
    entropy(FALLING, noisy(ramp(0.5, 0.95, begin=140, finish=280), 0.02)),
    # where the first steps learn nearly all
    entropy(FALLING, opening(0.6)),
    entropy(FALLING, opening(0.97)),
    # where all parts of the reward are at their top; not: never earned, half right, penalised
    in_parts(None, ramp(0.0, 1.0, finish=60), ramp(-0.35, -0.01, finish=60)),
    in_parts(None, ramp(0.0, 1.0, finish=60)),
    in_parts("", ramp(0.0, 1.0, finish=60), [0.0] * 300),
    in_parts("", ramp(0.0, 0.5, finish=60), ramp(-0.35, -0.01, finish=60)),
    in_parts("", ramp(0.0, 1.0, finish=60), ramp(-0.35, -0.2, finish=60)),
    # as fast as a task is learnt, once it is solved
    entropy(GONE, [0.1, 0.5, 0.8, 0.9, 0.95, 0.97, 0.98, 0.98]),
    entropy([3.43 * 0.93**i for i in range(len(LEARNT))], LEARNT),
    entropy([max(0.02, 1.2 * 0.985**i) for i in range(300)],
            noisy([min(0.96, 0.1 + 0.01 * i) for i in range(300)], 0.015)),
    # entropy that leaves its past; not: it explores and learns, most of it is spent at once and some comes back,
    # it grows from next to nothing, it is noisy
    explosion(WILD, says=""),
    explosion(WILD, noisy([0.3 + 0.002 * i for i in range(200)], 0.02)),
    explosion([1.2 * math.exp(-i / 8) + 0.25 + 0.002 * i for i in range(200)]),
    explosion([value / 100 for value in WILD]),
    explosion(noisy([0.3] * 200, 0.12)),
]  # fmt: skip


@pytest.mark.parametrize("one", ENTROPIES, ids=lambda one: one.id)
def test_entropy(one):
    hold(one)


def test_a_reward_that_rises_long_after_takes_nothing_out_of_the_history():
    late = {"actor/entropy": [*GONE, *[0.001] * 92], REWARD: [*[0.05] * 20, *[0.8] * 80]}  # fmt: skip
    (one,) = episodes(judge(planted(late)), "entropy-collapse")
    assert (one.since_step, one.raised_step) == (2, 5)


def test_a_collapse_that_comes_back_is_reported_from_the_step_that_it_names():
    def fall(steps: int, start: float) -> list[float]:
        return [start * math.exp(-i / 25) + 0.003 for i in range(steps)]

    values = [*[1.0] * 60, *fall(140, 1.0), *[0.3] * 55, *fall(145, 0.3)]
    verdict = judge(planted({"actor/entropy": values, REWARD: noisy([0.4] * 400, 0.01)}))  # fmt: skip
    one = found(verdict, "entropy-collapse")
    assert one is not None
    assert f"at step {one.since_step} " in one.message


# -- KL --------------------------------------------------------------------------------------------

STAIRS = [value for value in (0.08, 0.05, 0.02, 0.004, 0.003) for _ in range(40)]
TARGET = {"algorithm.kl_ctrl.type": "fixed", "algorithm.kl_ctrl.target_kl": 0.1}
WEAK = {"actor_rollout_ref.actor.kl_loss_coef": 0.001}
SLOW = noisy([0.03 + 0.25 * i / 600 for i in range(600)], 0.005)
FLAT, RISEN = wave(600, 0.4, 0.05), [0.2 + 0.5 * i / 600 for i in range(600)]
BOUGHT = noisy([min(0.9, 0.1 + 0.02 * i) for i in range(200)], 0.05)
PRICE = noisy([min(1.5, 0.03 * i) for i in range(200)], 0.02)
FAR_RULES = ("ref-kl-above-band", "ref-kl-rising", "ref-kl-high")
UNCLEAR = random.Random(4)


def at_its_top(part: float, more: float, says: str | None) -> Case:
    """Return a KL that leaves its band, beside a reward of two parts and something unknown."""
    columns = {
        "reward": [1.0 + part + more] * 80, "rewards/calm/mean": [1.0] * 80, "rewards/right/mean": [part] * 80,
        "kl": [*[0.01] * 30, *[1.5] * 50],
    }  # fmt: skip
    return case("ref-kl-above-band", columns, says, beside=OTHER)


KLS = [
    # a low KL is no fault outside the tutorials, nor one that an adaptive controller lowers by steps
    case("kl-low", {"actor/ppo_kl": [0.0001] * 60}, why=" "),
    case("kl-low", {"ppo_kl": [0.0001] * 60}, beside=OTHER, why=" "),
    case("kl-low", {"ppo/kl_div": STAIRS[:-5]}, beside=TUTORIAL, settings={"kl_ctrl.type": "adaptive"},
         why="adaptive controller"),
    case("kl-low", {"ppo/kl_div": STAIRS}, "", beside=TUTORIAL, settings={"kl_ctrl.type": "fixed"}),
    # verl's reference KL is measured by its own past: its default target is not in force
    *(
        case(id, {"actor/kl_loss": [0.002 * i for i in range(300)]}, settings=settings)
        for id in FAR_RULES for settings in (None, TARGET)
    ),
    case("ref-kl-rising", {"actor/kl_loss": [0.01 * i for i in range(300)]}, "", settings=TARGET),
    # a tutorial's target is believed
    case("ref-kl-high", {"kl/divergence": wave(20, 0.2, 0.01)}, beside=TUTORIAL),
    case("ref-kl-high", {"kl/divergence": wave(20, 0.2, 0.01)}, "algorithm.target_kl", beside=TUTORIAL,
         settings={"algorithm.target_kl": 0.05}),
    case("ref-kl-high", {"actor/kl_loss": [*wave(80, 0.05, 0.005), *wave(120, 0.5, 0.02)]}, OVER),  # it has settled
    # one that climbs slowly for nothing counts in any names
    *(
        case("ref-kl-above-band", {key: SLOW, name: reward}, says, beside=beside, settings=settings)
        for key, name, beside in (("actor/kl_loss", REWARD, VERL), ("kl", "reward", {}))
        for reward, settings, says in ((FLAT, None, ""), (RISEN, None, None), (FLAT, WEAK, None))
    ),
    # one that buys reward is the price of learning, and a reward too noisy to tell has not stood still
    *(case(id, {"actor/kl_loss": PRICE, REWARD: BOUGHT}) for id in FAR_RULES),
    case("ref-kl-above-band", {
        "actor/kl_loss": [min(0.4, 0.02 * i) for i in range(60)],
        REWARD: [sum(UNCLEAR.random() < 0.3 + 0.3 * i / 60 for _ in range(4)) / 4 for i in range(60)],
    }, OVER),
    # a reward whose parts are at their top cannot be bought
    at_its_top(0.98, 0.0, None),
    at_its_top(0.6, 0.0, ""),
    at_its_top(0.98, 1.0, ""),
]  # fmt: skip


@pytest.mark.parametrize("one", KLS, ids=lambda one: one.id)
def test_kl(one):
    hold(one)


def test_a_reward_that_is_lost_again_leaves_the_kl_unbought():
    reward = noisy([min(0.9, 0.1 + 0.02 * i) for i in range(100)] + [0.1] * 100, 0.03)
    kl = noisy([min(3.0, 0.03 * i) for i in range(200)], 0.02)
    verdict = judge(planted({"actor/kl_loss": kl, REWARD: reward}))
    (far,) = episodes(verdict, "ref-kl-above-band")
    assert 100 < (far.raised_step or 0) <= 150


# -- gradients, losses, clipping -------------------------------------------------------------------

NORMS = [0.3 * 1.012 ** max(0, i - 40) for i in range(160)]
LEARNS = noisy([0.1 + 0.6 / (1 + math.exp(-(i - 90) / 15)) for i in range(160)], 0.03)
JUMPS = [*noisy([2.0] * 80, 0.2), 23.0, *noisy([2.0] * 20, 0.2)]
CLIPPED = {"actor/pg_clipfrac": [*wave(40, 0.1, 0.02), *wave(40, 0.5, 0.05)]}
MODE = "actor_rollout_ref.actor.policy_loss.loss_mode"
PEAKS = random.Random(5)


def spike(clip: float | None, says: str | None = None) -> Case:
    settings = {"actor_rollout_ref.actor.grad_clip": clip} if clip else None
    return case("grad-norm-spike", {"actor/grad_norm": [*wave(60, 0.03, 0.01), 0.8]}, says, settings=settings)  # fmt: skip


def vanished(top: float) -> Case:
    """As of a real GRPO on a solved task: 0.0009 became 0.0018 where it had been 10 and more."""
    norms = [*[top] * 40, *[0.0009 * 1.012**i for i in range(140)]]
    return case("grad-norm-rising", {"actor/grad_norm": norms})


UPDATES = [
    # a spike below the clip, or the clip alone, bounds nothing
    spike(None), spike(0.2, ""), spike(1000.0), spike(5.0),
    vanished(0.1), vanished(30.0),
    # a gradient norm that rises while the run learns is no mismatch
    case("grad-norm-rising", {"actor/grad_norm": NORMS, REWARD: LEARNS}, why="the run is learning"),
    case("grad-norm-rising", {"actor/grad_norm": NORMS, REWARD: noisy([0.4] * 160, 0.03)}, ""),
    # a loss jumps from a third to nearly one; has frequent peaks; jumps with its KL term, or without
    case("policy-loss-jump", {"ppo/policy_loss": [*noisy([-0.3] * 60, 0.04), -0.9]}, "", beside=TUTORIAL),
    case("policy-loss-jump", {
        "loss": [*noisy([0.3] * 80, 0.15), *(PEAKS.uniform(0.4, 0.7) if PEAKS.random() < 0.08 else 0.07 for _ in range(300))],
        "reward": [0.5] * 380,
    }, beside=OTHER),
    case("policy-loss-jump", {"loss": [0.08 * value + 0.02 for value in JUMPS], "kl": JUMPS, "reward": [0.5] * 101},
         beside=OTHER, why="kl jumps as far"),
    case("policy-loss-jump", {"loss": [*noisy([0.1] * 80, 0.01), 2.0, *noisy([0.1] * 20, 0.01)],
         "kl": noisy([2.0] * 101, 0.2), "reward": [0.5] * 101}, "", beside=OTHER),
    # GSPO clips by design
    case("clip-saturation", CLIPPED, settings={MODE: "gspo"}, why="by design"),
    case("clip-saturation", CLIPPED, settings={"importance_sampling_level": "sequence"}, why="by design"),
    case("clip-saturation", CLIPPED, settings={"importance_sampling_level": "sequence_token"}, why="by design"),
    case("clip-saturation", CLIPPED, "", settings={MODE: "vanilla", "importance_sampling_level": "token"}),
    # a rollout gap by design is judged by verl's own limit
    case("rollout-kl", {"rollout_corr/kl": wave(40, 0.05, 0.01)}, ""),
    case("rollout-kl", {"rollout_corr/kl": wave(40, 0.05, 0.01)},
         beside={**VERL, "training/off_policy/trajectory_staleness/max": 2.0}),
    # what figures are not meant for
    case("token-mult-prob-error", {"token_mult_prob_error": wave(20, 0.04, 0.01)}, beside=OTHER, why="not a factor"),
    *(
        case("sequence-is-saturated", {"rollout_corr/kl": [0.01] * 20, "response_length/mean": [9000.0] * 20},
             settings=settings, why=why)
        for settings, why in (
            ({"algorithm.rollout_correction.rollout_is": "token"}, "rollout_is is token"),
            (None, "no settings were found"),
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize("one", UPDATES, ids=lambda one: one.id)
def test_updates(one):
    hold(one)


@pytest.mark.parametrize("rest", [0.0, 0.0012])
@pytest.mark.parametrize("share", [0.05, 0.3, 0.8])
def test_gradients_of_solved_groups_are_no_measure(share, rest):
    chance = random.Random(7)
    sparse = [1.2 * chance.uniform(0.5, 2.5) if chance.random() < share else rest for _ in range(300)]  # fmt: skip
    values = [*wave(40, 1.2, 0.6), *sparse]
    hold(case("grad-norm-spike", {"actor/grad_norm": values}))
    reported = found(judge(planted({"actor/grad_norm": [*values, 60.0]})), "grad-norm-spike")  # fmt: skip
    assert reported is not None
    assert "from its usual 0;" not in reported.message


def test_what_comes_again_and_again_is_no_spike():
    values = [8.0 if i % 15 == 14 else 0.4 for i in range(300)]
    verdict = judge(planted({"actor/grad_norm": values}))
    assert [one.since_step for one in verdict.history] == [15], "only the first is news"


# -- what is no number -----------------------------------------------------------------------------


def broken(
    columns: dict[str, list[float]],
    says: str | None = None,
    beside: dict[str, float] = VERL,
    **facts: object,
) -> Case:
    return case("not-finite", columns, says, beside=beside, **facts)


NUMBERS = [
    broken({"actor/pg_loss": [0.1] * 10 + [NAN] * 90}, "first at step 11", since_step=11),
    broken({"actor/pg_loss": [0.1] * 32 + [NAN] + [0.1] * 7, "actor/kl_loss": [0.1] * 40},
           "actor/pg_loss was not finite at 1 of the last 20 points (step 33)", key="actor/pg_loss", since_step=33),
    broken({"actor/pg_loss": [0.1] * 12 + [NAN] + [0.1] * 20}, OVER),  # 21 points ago
    broken({"val-core/gsm8k/acc/mean@1": [0.1] * 12 + [math.inf]}, "is not finite"),
    # what never had a value is not broken, unless training needs it; rows may be padded
    broken({"actor/pg_loss": [0.1] * 30, "training/rollout_probs_diff_mean": [NAN] * 30}),
    broken({"actor/pg_loss": [0.1] * 10, "actor/kl_loss": [NAN] * 4 + [0.1] * 6}),
    broken({"actor/pg_loss": [NAN] * 12, "timing_s/step": [1.0] * 12}, "", since_step=1, key="actor/pg_loss"),
    broken({"actor/pg_loss": [NAN] * 9, "timing_s/step": [1.0] * 9}),
    # a part of the reward that no sample has, a figure that is there only now and then
    broken({"reward": wave(40, 0.5, 0.1), "rewards/code/mean": [0.3, NAN] * 20}, beside=OTHER),
    broken({"reward": [*wave(39, 0.5, 0.1), NAN], "rewards/code/mean": [0.3, NAN] * 20}, "", OTHER),
    *(
        broken({REWARD: [0.5] * 60, "tool/score": [0.5 if i % 10 == 3 else NAN for i in range(60)]}, beside=beside)
        for beside in (VERL, OTHER)
    ),
    broken({"reward": [NAN, *[0.5] * 49, NAN, *[0.5] * 9]}, "", OTHER, since_step=51),
]  # fmt: skip


@pytest.mark.parametrize("one", NUMBERS, ids=lambda one: one.id)
def test_what_is_no_number(one):
    hold(one)


def test_many_broken_metrics_are_one_finding():
    (one,) = judge(planted({f"actor/x{i}": [1.0, NAN] for i in range(30)})).findings
    assert "29 other metrics" in one.message
    assert len(one.evidence) == 9
    verdict = judge(planted({"training/rollout_probs_diff_mean": [NAN] * 30}, {}))
    assert reason(verdict, "not-finite") == "no metric ever had a value"
    assert not ids(verdict)

"""What is said of rewards, their parts and their groups, and of nothing that only looks like it."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING

import pytest
from planted import (
    OTHER,
    OVER,
    TUTORIAL,
    VERL,
    Case,
    batch,
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
    rows,
    wave,
)

from verl_tui.health.finding import Severity
from verl_tui.records import Sample

if TYPE_CHECKING:
    from collections.abc import Callable

NAN = math.nan
REWARD = "critic/score/mean"
INFO, WARNING = Severity.INFO, Severity.WARNING
CLIMB = noisy(ramp(0.2, 0.6, finish=60), 0.02)


# -- levels ----------------------------------------------------------------------------------------

LOW = wave(80, 0.6, 0.1)
BOUNDED = {"samples/score_min": [0.1] * 80, "samples/score_max": [0.93] * 80, "samples/count": [64.0] * 80}  # fmt: skip
SLIDE = noisy([0.7] * 60 + [0.7 - 0.006 * i for i in range(100)] + [0.1] * 40, 0.03)
REJECTED = noisy([1.0] * 60 + [max(-3.0, 1.0 - 0.05 * i) for i in range(120)], 0.05)


def drawn(prompts: int, right: float, steps: int, seed: int) -> list[float]:
    """Return the shares of right answers to so few prompts, each right by a chance."""
    chance = random.Random(seed)
    return [sum(chance.random() < right for _ in range(prompts)) / prompts for _ in range(steps)]  # fmt: skip


LEVELS = [
    case("reward-low", {REWARD: LOW}, why="bounded"),
    case("reward-noisy", {REWARD: LOW}),
    case("reward-low", {"rollout/reward_mean": [0.01 * i for i in range(95)]}, beside=TUTORIAL),
    case("reward-low", {"rollout/reward_mean": LOW, **BOUNDED}, "", beside=TUTORIAL),  # low scores are no scale
    *(case("reward-zero", {REWARD: drawn(2, 0.35, 300, seed)}) for seed in range(8)),
    case("reward-slide", {REWARD: SLIDE}, ""),
    case("reward-cliff", {REWARD: SLIDE}),
    case("reward-slide", {REWARD: noisy([0.5] * 8 + [0.1] * 40, 0.03)}, ""),  # steep, from the first steps on
    case("reward-jump", {"reward": noisy([-3.0] * 60, 0.5) + noisy([20.0] * 40, 1.0)}, "", beside=OTHER),
    case("reward-jump", {REWARD: [0.01] * 60 + [0.9] * 40}),  # a sparse reward that is found
    case("reward-jump", {REWARD: [0.3] * 60 + [0.3 + 0.2 * i for i in range(40)]}),
    case("reward-jump", {REWARD: [0.5] * 60 + [60.0] + [0.5] * 39}),  # a single batch
    case(
        "component-falls",  # a rejected answer of DPO loses its reward
        {"rewards/chosen": noisy([1.0] * 180, 0.05), "rewards/rejected": REJECTED, "rewards/margins": REJECTED},
        beside=OTHER,
    ),
]  # fmt: skip


@pytest.mark.parametrize("one", LEVELS, ids=lambda one: one.id)
def test_levels_and_their_changes(one):
    hold(one)


@pytest.mark.parametrize(
    ("values", "raised"),
    [(SLIDE, range(50, 136)), (noisy([0.5] * 8 + [0.1] * 40, 0.03), range(30, 41))],
)
def test_a_slide_is_found_while_it_slides(values, raised):
    (slide,) = episodes(judge(planted({REWARD: values})), "reward-slide")
    assert slide.raised_step in raised
    assert (slide.since_step or 0) <= 90


@pytest.mark.parametrize(
    ("steps", "since", "how"),
    [(1, range(61, 62), "at once"), (8, range(61, 64), "since"), (20, range(61, 68), "since")],
)  # fmt: skip
def test_a_reward_of_zero_began_where_it_left_its_level(steps, since, how):
    slid = [0.4 * (1 - i / steps) for i in range(1, steps)]
    verdict = judge(planted({REWARD: noisy([0.4] * 60, 0.02) + slid + [0.0] * 30}))
    (zero,) = (one for one in verdict.findings if one.id == "reward-zero")
    assert zero.since_step in since
    assert how in zero.message


@pytest.mark.parametrize("level", [0.02, 0.5, -1.0])
def test_a_reward_that_only_varies_does_not_slide(level):
    for seed in range(10):
        values = noisy([level] * 300, abs(level) / 2 + 0.05, seed)
        verdict = judge(planted({REWARD: values}))
        assert not {"reward-slide", "reward-jump"} & {one.id for one in verdict.history}


@pytest.mark.parametrize(
    "scores",
    [[0.0, 1.0] * 10, [0.0] * 20, [0.0] * 19 + [1.0], [-1.0, 0.3, 0.9, 0.1] * 5],
)
def test_a_level_is_not_judged_where_samples_show_a_bounded_scale(scores):
    run = planted({"rollout/reward_mean": LOW}, TUTORIAL)
    samples = [Sample(step=80, prompt="p", response="r", score=one) for one in scores]
    run.apply(batch(*samples), now=0.0)
    verdict = judge(run)
    assert "reward-low" not in ids(verdict)
    assert "samples" in (reason(verdict, "reward-low") or "")


@pytest.mark.parametrize(("high", "silent"), [(1.0, True), (2.5, False)])
def test_the_bounds_of_dumped_scores_are_evidence(high, silent):
    run = planted({"rollout/reward_mean": LOW}, TUTORIAL)
    figures = {"samples/score_min": [0.0] * 3, "samples/score_max": [1.0, high, 1.0], "samples/count": [64.0] * 3}  # fmt: skip
    run.apply(batch(rows(figures, [78, 79, 80], 500)), now=0.0)
    verdict = judge(run)
    assert ("reward-low" not in ids(verdict)) is silent
    assert ("0 and 1" in (reason(verdict, "reward-low") or "")) is silent


# -- parts -----------------------------------------------------------------------------------------

PART = noisy(ramp(0.2, 1.0, finish=60), 0.01)
RELAPSE = [*ramp(-0.18, -0.1, finish=20)[:20], *ramp(-0.15, -0.084, finish=90)[:280]]
RISE = noisy(ramp(0.2, 1.0, 200, 20, 120), 0.03, 1)
FALL = noisy(ramp(0.6, 0.02, 200, 20, 60), 0.08, 2)
LATER = [*[NAN] * 35, *noisy([0.6] * 35, 0.08), *noisy([0.02] * 130, 0.02)]
BACK = [*FALL[:100], *noisy([0.6] * 100, 0.05)]
RISING = noisy(ramp(0.3, 0.8), 0.03)


def validated(values: list[float], every: int) -> list[float]:
    """Return a validation every few steps and nothing in between."""
    return [value if i % every == 0 else NAN for i, value in enumerate(values)]


def imbalance(**figures: list[float]) -> Case:
    return case("component-imbalance", {REWARD: CLIMB, **figures}, why="no components")


def beside_format(other: list[float]) -> Case:
    """Return a reward of two parts, one of which is learnt."""
    columns = {
        "reward": noisy(ramp(0.5, 1.5, finish=60), 0.02),
        "rewards/format/mean": PART,
        "rewards/other/mean": other,
    }
    return case("component-imbalance", columns, beside=OTHER)


def bought(
    says: str | None = None, reward: list[float] = RISE, **parts: list[float]
) -> Case:
    """Return a reward, and its parts."""
    columns = {f"rewards/{name}": values for name, values in parts.items()}
    return case("reward-hacking", {"reward": reward, **columns}, says, beside=OTHER)


PARTS = [
    # figures of samples are no parts of the reward
    imbalance(**{"samples/score_max": ramp(0.2, 1.0, finish=60), "samples/score_min": [0.0] * 300}),
    imbalance(**{"samples/unique_share": ramp(0.2, 1.0, finish=60), "samples/response_chars": [300.0] * 300}),
    imbalance(**{"samples/groups": [16.0] * 300, "samples/read_share": ramp(0.1, 1.0, finish=60)}),
    imbalance(**{"samples/num_tools": ramp(0.2, 1.0, finish=60), "samples/difficulty": [0.3] * 300}),
    # a part under two names is one
    case("component-imbalance", {"reward": PART, "rewards/x/mean": PART, "train/rewards/x/mean": [0.3] * 300},
         beside=OTHER, why="no components"),
    # next to nothing; what cannot gain is not stuck: at its ceiling, tripled on a scale of its own, a penalty that is not given
    # any more, is as small as it can be, or has a relapse
    beside_format(noisy([0.03] * 300, 0.01))._replace(facts={"cause": "rewards/other/mean scores next to nothing"},
        says="(rewards/other/mean) has stayed below 0.1 for 300 steps…(the total is at its top)"),
    beside_format([1.0] * 300),
    beside_format([0.05] * 300),
    beside_format(noisy(ramp(0.02, 0.06, finish=250), 0.002)),
    beside_format([*noisy([-0.3] * 20, 0.05), *[0.0] * 280]),
    beside_format(noisy(ramp(-0.3, -0.08, finish=60), 0.002)),
    beside_format(noisy(RELAPSE, 0.002)),
    # a part falls while the reward rises
    *(
        case("reward-hacking", {reward: RISE, part: FALL},
             f"the reward rises at the cost of {part}: that fell from 0.", beside=beside, key=part)
        for reward, part, beside in (
            ("reward", "rewards/answer/mean", OTHER),
            ("train/reward", "train/rewards/answer/mean", OTHER),
            (REWARD, "samples/acc", VERL),
            (REWARD, "critic/acc/mean", VERL),
            (REWARD, "critic/rewards/acc", VERL),
            (REWARD, "critic/reward_extra_info/acc/mean", VERL),
            (REWARD, "reward/acc", VERL),
            (REWARD, "val-core/gsm8k/acc/mean@1", VERL),
        )
    ),
    bought("", **{"answer/mean": LATER}),  # logged only from later on
    bought(OVER, **{"answer/mean": BACK}),
    # what counts against the reward, costs, amounts and spreads may fall
    case("reward-hacking", {"reward": RISE, "rewards/right/mean": RISE, "rewards/rambling/mean": FALL},
         beside=OTHER, settings={"reward_weights": "[1.0, -0.5]"}),
    *(
        bought(**{"right/mean": RISE, name: FALL})
        for name in ("length_penalty/mean", "token_cost/mean", "format_errors/mean", "answer/std")
    ),
    # right answers score 1, wrong ones -1; a penalty for length grows; a scale that is not known
    bought("", **{"answer/mean": noisy(ramp(0.2, -0.9, 200, 20, 60), 0.05, 0)}),
    bought("", **{"answer/mean": noisy(ramp(-0.3, -0.98, 200, 20, 60), 0.01, 0)}),
    bought(**{"answer/mean": noisy(ramp(-0.15, -0.6, 200, 20, 60), 0.01, 0)}),
    bought(**{"answer/mean": noisy(ramp(-2.0, -5.0, 200, 20, 60), 0.1, 0)}),
    bought("", **{"answer/mean": noisy(ramp(3.0, -1.0, 200, 20, 60), 0.2, 0)}),
    # a reward that does not rise is bought with nothing
    bought(reward=noisy([0.5] * 200, 0.03, 0), **{"answer/mean": FALL}),
    bought(reward=noisy(ramp(0.6, 0.2, 200, 20, 60), 0.03, 0), **{"answer/mean": FALL}),
    # small batches are noise
    *(bought(**{"answer/mean": drawn(8, share, 200, seed)}) for share in (0.02, 0.1, 0.5) for seed in range(6)),
    # validation that follows, that stands still beside a reward that does, too, and that is rare
    *(
        case("reward-hacking", {REWARD: reward, "val-core/x/acc/mean@1": validated(values, every)})
        for reward, values, every in (
            (RISING, noisy(ramp(0.3, 0.65), 0.03), 5),
            (RISING, noisy(ramp(0.3, 0.65), 0.03), 25),
            (noisy([0.6] * 300, 0.03), noisy([0.5] * 300, 0.02), 5),
            (noisy([0.6] * 300, 0.03), noisy([0.5] * 300, 0.02), 25),
            (RISING, noisy([0.5] * 300, 0.01), 100),
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize("one", PARTS, ids=lambda one: one.id)
def test_parts_of_the_reward(one):
    hold(one)


# -- groups ----------------------------------------------------------------------------------------

SIZES = {"data.train_batch_size": 64, "actor_rollout_ref.rollout.n": 8, "algorithm.adv_estimator": "grpo"}  # fmt: skip
DIED = [*[0.3] * 60, *[0.9] * 60]


def dead(
    says: str | None,
    severity: Severity,
    reward: list[float],
    settings: dict[str, float] | None = None,
    **more: list[float],
) -> Case:
    """Return groups that are dead from step 60 on, and what else is known."""
    columns = {"samples/dead_groups": DIED, REWARD: reward, **more}
    return case("dead-groups", columns, says, settings=settings, severity=severity)


def counted(mean: float) -> list[float]:
    """Return means of 0/1 rewards of 512 samples."""
    return [round(512 * value) / 512 for value in noisy([mean] * 40, 0.004)]


def proves_nothing(mean: list[float], why: str, **changed: object) -> Case:
    settings = {
        **SIZES,
        **{key.replace("__", "."): one for key, one in changed.items()},
    }
    return case("dead-groups", {REWARD: mean}, settings=settings, why=why)


def idle(rewards: list[float], says: str, severity: Severity) -> Case:
    none = [0.0] * len(rewards)
    columns = {
        REWARD: rewards,
        "critic/advantages/max": none,
        "critic/advantages/min": none,
    }
    return case("no-signal", columns, says, severity=severity)


def advantages(highest: list[float], says: str) -> Case:
    lowest = [0.0] * len(highest)
    columns = {"critic/advantages/max": highest, "critic/advantages/min": lowest}
    return case("no-signal", columns, says)


TINKER = {"optim/lr": 1e-4}


def tinker(**more: list[float]) -> dict[str, list[float]]:
    none = [0.0] * 40
    return {"env/all/reward/total": none, "env/all/by_group/frac_mixed": none, **more}


GROUPS = [
    case("dead-groups", tinker(), "less the share of mixed groups", beside=TINKER),
    case("dead-groups", tinker(teacher_kl=[0.1] * 40), beside=TINKER,
         why="learns from a teacher, not from scores (teacher_kl)"),
    *(
        case("dead-groups", {key: values}, says, beside=beside)
        for key, beside in (("samples/dead_groups", VERL), ("frac_reward_zero_std", OTHER))
        for values, says in ((noisy(ramp(0.2, 0.9, finish=200), 0.05), ""), (noisy([0.5] * 300, 0.1), None))
    ),
    case("dead-groups", {"samples/dead_groups": [0.9] * 40, "samples/groups_all_wrong": [0.85] * 40},
         "(all wrong 85% at the newest step); the task is too hard so far"),
    case("dead-groups", {"samples/dead_groups": [0.9] * 30, "samples/groups_all_right": [0.9] * 30},
         "solved", severity=INFO),
    case("dead-groups", {"samples/dead_groups": [0.9] * 30, "samples/groups_all_right": [0.0] * 30},
         "", severity=WARNING),
    # two hundred groups in nine dumps are evidence enough, forty are not
    case("dead-groups", {"samples/dead_groups": [0.95] * 9, "samples/groups": [23.0] * 9}, ""),
    case("dead-groups", {"samples/dead_groups": [0.95] * 9, "samples/groups": [4.0] * 9}, why="needs 20 points"),
    # why they are dead
    dead("is solved", INFO, [*ramp(0.1, 0.98)[:120], *[0.98] * 40][40:]),
    dead("is solved", INFO, [*noisy([-2.0] * 60, 0.1), *[-0.3] * 60]),
    dead("is solved", INFO, [1.0] * 120),
    dead("has scored 0: the task is too hard", WARNING, [0.0] * 120),
    dead("the scorer is constant", WARNING, [0.3, 0.30000001] * 60),
    dead("is too hard so far", WARNING, noisy([0.03] * 120, 0.005)),
    dead("sampling is too cold: rollout.temperature is 0.05", WARNING, noisy([0.6] * 120, 0.1),
         {"rollout.temperature": 0.05, "rollout.val_kwargs.temperature": 0}),
    dead("alike: 40% of them differ", WARNING, noisy([0.6] * 120, 0.1),
         {"rollout.val_kwargs.temperature": 0}, **{"samples/unique_share": [0.4] * 120}),
    dead("alike: 10% of them differ, 90% at the beginning", WARNING, noisy([0.6] * 120, 0.1),
         **{"samples/unique_share": [*[0.9] * 60, *[0.1] * 60]}),
    case("dead-groups", {"samples/dead_groups": [1.0] * 120, REWARD: [1.0] * 120}, "the scorer is constant",
         severity=WARNING),
    # where the mean of rewards proves nothing
    proves_nothing(counted(0.3), ""),
    proves_nothing(counted(0.083), ""),  # half of them
    proves_nothing(noisy([0.025] * 40, 0.003), "rewards are not known to be 0 or 1"),
    proves_nothing(counted(0.025), "no groups", algorithm__adv_estimator="gae"),
    proves_nothing(counted(0.025), "no groups", actor_rollout_ref__rollout__n=1),
    proves_nothing(counted(0.025), "filtered out", algorithm__filter_groups__enable=True),
    case("dead-groups", {REWARD: counted(0.025)}, why="neither grouped samples"),
    # no signal: what is said agrees with its evidence
    advantages([2.0] * 4 + [0.0] * 5 + [1.5] * 3 + [0.0] * 5,
               "all advantages have been 0 at 10 of 13 points since step 5"),
    advantages([0.0] * 8, "all advantages have been 0 for 8 steps"),
    idle([1.0] * 30, "the task is solved: all advantages have been 0", INFO),
    idle([0.4] * 30, "", WARNING),
    # the top of an unknown scale is a solved task
    idle([0.5] * 20 + [3.0] + [2.9] * 19, "solved", INFO),
    idle([0.5] * 20 + [3.0] + [2.6] * 19, "", WARNING),
    idle([2.4] * 20 + [3.0] + [2.9] * 19, "", WARNING),
]  # fmt: skip


@pytest.mark.parametrize("one", GROUPS, ids=lambda one: one.id)
def test_groups_that_teach_nothing(one):
    hold(one)


def test_a_solved_task_without_samples_is_no_warning():
    run = planted({REWARD: counted(0.98)}, VERL, SIZES)
    one = found(judge(run), "dead-groups")
    assert one is None or one.severity is INFO


def test_dead_groups_end_where_their_mean_is_back():
    chance = random.Random(2)
    mixed = [1.0 if chance.random() < 0.5 else 0.2 for _ in range(400)]
    verdict = judge(planted({"samples/dead_groups": [*[0.9] * 30, *mixed]}))
    assert "dead-groups" not in ids(verdict), "a mean of 0.6 is not above 0.7"
    assert episodes(verdict, "dead-groups")


@pytest.mark.parametrize(
    ("scores", "severity"),
    [([1.0, 0.5, 1.0, 1.0, 0.5], INFO), ([0.5, 0.0, 0.5, 0.5, 0.5], WARNING)],
)
def test_groups_without_spread_are_no_fault_where_most_are_all_right(scores, severity):
    late = [*[1.0] * 30, *[0.0] * 5]
    columns = {"critic/advantages/max": late, "critic/advantages/min": late}
    verdict = judge(planted({**columns, REWARD: [*[0.6] * 30, *scores]}))
    one = found(verdict, "no-signal")
    assert one is not None
    assert one.severity is severity


def test_why_groups_were_dead_does_not_depend_on_what_came_after():
    shares = {"samples/dead_groups": [*[0.9] * 60, *[0.1] * 60], REWARD: [*[0.0] * 60, *[0.99] * 60]}  # fmt: skip
    (known,) = episodes(judge(planted(shares)), "dead-groups")
    assert known.severity is WARNING
    assert known.message.endswith("the task is too hard, or the scorer cannot read the answers")  # fmt: skip


# -- nothing learns --------------------------------------------------------------------------------

ID = "nothing-learns"
FAR, NEAR = {"actor/kl_loss": 0.6}, {"actor/kl_loss": 0.01}
STILL = {"actor/grad_norm": [0.0] * 30, "actor/kl_loss": [0.0] * 30, "actor/lr": [1.234567e-6] * 30}  # fmt: skip
RIPPLE = [0.05 * (-1) ** i + 0.01 * (-1) ** (i // 10) for i in range(150)]


def shares(level: Callable[[float], float], group: int = 64) -> list[float]:
    """Return means of rewards that are 0 or 1, given their level at a share of the run."""
    chance = random.Random(5)
    return [sum(chance.random() < level(i / 150) for _ in range(group)) / group for i in range(150)]  # fmt: skip


CONSTANT = shares(lambda _: 0.5)


def learns(
    values: list[float],
    says: str | None = None,
    beside: dict[str, float] = FAR,
    settings: dict[str, float] | None = None,
    why: str = "",
    **more: list[float],
) -> Case:
    moving = {
        "actor/lr": [1e-6] * len(values),
        "actor/entropy": [0.123456] * len(values),
    }
    return case(ID, {REWARD: values, **moving, **more}, says, beside={**VERL, **beside}, settings=settings, why=why)  # fmt: skip


def rounded(**beside: list[float]) -> Case:
    """Return a rate that may be rounded to 0, beside what shows that the policy moves."""
    return case(ID, {"actor/lr": [0.0] * 40, **beside})


LEARNING = [
    # after a hundred points and no sooner
    learns(CONSTANT[:100], why="needs 101 points, has 100"),
    learns(CONSTANT[:120], ""),
    learns([0.8 - 0.03 * i / 150 + one for i, one in enumerate(RIPPLE)], "the reward has gained nothing in 150 steps: mean 0.786, change -0.032", NEAR),
    learns(shares(lambda _: 0.5, 16), "config: actor.kl_loss_coef 30…is above 0.01–0.1: it may hold the policy back",
           {"actor/kl_loss": 0.004}, {"actor.kl_loss_coef": 30.0}),
    # without any reason more must be ruled out
    learns(shares(lambda _: 0.5, 4), None, NEAR),
    learns(shares(lambda _: 0.5, 2048), "", NEAR),
    # it learns, slowly, at once, late; has lost what it had learnt; falls, which is another fault; is solved
    learns(shares(lambda t: 0.4 + 0.3 * t)),
    learns(shares(lambda t: 0.4 + 0.15 * t)),
    learns(shares(lambda t: 0.3 + 0.3 * min(1.0, 10 * t))),
    learns(shares(lambda t: 0.3 + max(0.0, t - 0.6)), OVER),
    learns(shares(lambda t: 0.3 + 0.5 * t if t < 0.4 else 0.3)),
    learns(shares(lambda t: 0.5 - 0.3 * t)),
    learns(shares(lambda _: 0.95)),
    learns([1e200 * value for value in CONSTANT]),  # its squares overflow
    # what gains elsewhere is learning
    learns(CONSTANT, **{"val-core/gsm8k/acc/mean@1": shares(lambda t: 0.2 + 0.4 * t)}),
    learns(CONSTANT, **{"reward_extra/answer/mean": shares(lambda t: 0.2 + 0.4 * t)}),
    # a scale without known ends, and with
    learns([7.0 * value - 2 for value in CONSTANT]),
    learns([7.0 * value - 2 for value in CONSTANT], "", {**FAR, "critic/score/max": 5.0, "critic/score/min": -2.0}),
    # no update has ever moved the policy
    case(ID, STILL, "nothing learns: gradient norm and KL to the reference have been 0", since_step=1),
    case(ID, {"grad_norm": [0.0] * 30, "kl": [0.0] * 30, "learning_rate": [1.234567e-6] * 30}, "", beside=OTHER),
    case(ID, {**STILL, "actor/kl_loss": [0.0] * 25 + [1e-9] * 5}, OVER),
    case(ID, {**STILL, "actor/grad_norm": [0.2] * 30}),  # the KL is a placeholder
    case(ID, {**STILL, "actor/lr": [0.0] * 10 + [0.001] * 20}),  # figures are rounded
    rounded(**{"actor/grad_norm": [0.512, 0.498] * 20, "actor/entropy": [0.31, 0.3] * 20}),
    rounded(**{"actor/grad_norm": wave(40, 0.51234, 0.1), "actor/kl_loss": wave(40, 0.002, 0.001)}),
]  # fmt: skip


@pytest.mark.parametrize("one", LEARNING, ids=lambda one: one.id)
def test_a_run_for_nothing(one):
    hold(one)


def test_a_log_that_begins_later_hides_what_was_learnt_before():
    run = planted({REWARD: CONSTANT}, {**VERL, **FAR}, steps=range(501, 651))
    assert ID not in ids(judge(run))


def test_a_plateau_wants_reward_and_validation_flat():
    flat = wave(230, 0.7, 0.05)
    rising = [0.3 + 0.002 * i for i in range(230)]
    for reward, more, told in (
        (flat, {}, True),
        (rising, {}, False),
        (flat, {"val-core/gsm8k/acc/mean@1": rising}, False),
        (flat, {"val-core/gsm8k/acc/mean@1": flat}, True),
    ):
        assert ("plateau" in ids(judge(planted({REWARD: reward, **more})))) is told
    assert reason(judge(planted({REWARD: flat[:150]})), "plateau")

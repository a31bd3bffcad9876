"""What is said of responses that shrink, grow, are cut off or repeat themselves."""

from __future__ import annotations

import pytest
from planted import (
    TUTORIAL,
    Case,
    case,
    episodes,
    found,
    hold,
    judge,
    noisy,
    planted,
    ramp,
)

from verl_tui.health.guide_settings import load_guide

LENGTH, REWARD = "response_length/mean", "critic/score/mean"
VALIDATION = "val-core/x/acc/mean@1"


# -- lengths ---------------------------------------------------------------------------------------


def course(
    start: float,
    end: float,
    begin: int = 80,
    finish: int = 100,
    size: float = 0.02,
    seed: int = 1,
) -> list[float]:
    """Return values that go from one level to another, with noise of a share of the larger one."""
    noise = size * max(abs(start), abs(end))
    return noisy(ramp(start, end, 200, begin, finish), noise, seed)


SHRINKS, GROWN = course(300, 10), [300 + 6.5 * i for i in range(100)]
FALLS, GAINS, LEVEL = course(0.6, 0.1, seed=2), course(0.3, 0.6, seed=3), course(0.3, 0.3, seed=4)  # fmt: skip


def collapse(
    columns: dict[str, list[float]], says: str | None = None, why: str = ""
) -> Case:
    return case("length-collapse", columns, says, why=why)


def shrinks(**columns: list[float]) -> Case:
    return collapse({LENGTH: SHRINKS, **columns})


def short(
    columns: dict[str, list[float]],
    says: str | None,
    settings: dict[str, object] | None = None,
    beside: dict[str, float] = TUTORIAL,
    why: str = "",
) -> Case:
    return case("response-short", columns, says, beside=beside, settings=settings, why=why)  # fmt: skip


OURS = {"rollout/response_length_mean": [299.0] * 12}
THEIRS = {"generation/length": [120.0] * 20, "avg_reward": [0.5] * 20}
LENGTHS = [
    collapse({LENGTH: SHRINKS, REWARD: LEVEL}, "and no score gained"),
    # some tasks need few words: without any loss it takes more
    collapse({LENGTH: course(300, 60), REWARD: LEVEL}),
    collapse({LENGTH: course(300, 60), REWARD: FALLS}, ""),
    # what serves the task: a reward that gains, or had before; a solved task; a validation or a part that gains
    shrinks(**{REWARD: GAINS}),
    shrinks(**{REWARD: course(0.2, 0.6, 10, 60)}),
    shrinks(**{REWARD: course(0.97, 0.97, size=0.005)}),
    shrinks(**{REWARD: LEVEL, VALIDATION: GAINS}),
    shrinks(**{REWARD: LEVEL, "critic/reward_extra_info/answer/mean": GAINS}),
    shrinks(**{REWARD: GAINS, "critic/reward_extra_info/steps/mean": FALLS, VALIDATION: GAINS}),
    shrinks(**{REWARD: course(-0.4, -0.1)}),
    collapse({LENGTH: SHRINKS[:20], REWARD: FALLS[:20]}, why="needs 31 points, has 20"),
    collapse({LENGTH: SHRINKS}, why="the log has no reward"),
    collapse({REWARD: FALLS}, why="the log has no response length"),
    # an explosion where no share of cut responses is logged
    case("length-explosion",
         {LENGTH: [*[300.0] * 100, *GROWN], REWARD: [*[0.6] * 100, *[0.6 - 0.004 * i for i in range(100)]]},
         "the limit 1,024", settings={"data.max_response_length": 1024}),
    # a response is short by its limit
    short(OURS, "the limit 512 (assumed)"),
    short(OURS, None, {"actor_rollout_ref.rollout.max_new_tokens": 300}),
    short(OURS, "the limit 2,048 (data.max_response_length)", {"data.max_response_length": "2048"}),
    # one that is assumed holds for the tutorials' own logs only
    short(THEIRS, ""),
    short(THEIRS, None, None, {"policy/loss": -0.2}, "is unknown"),
    short(THEIRS, "", {"max_completion_length": 512}, {"policy/loss": -0.2}),
    case("response-long", THEIRS, beside={"policy/loss": -0.2}),
    # verl's V1 trainer counts other responses as cut
    case("truncation", {"response_length/clip_ratio": [0.4] * 20, "response_length/max": [1000.0] * 20},
         beside={"training/off_policy/trajectory_spans/mean": 1.0}, why="v0.9"),
    # shares read as in charts
    case("truncation", {"response_length/clip_ratio": [0.4] * 20}, "above 10% for…mean 40%, last 40%…are above 10%, their mean 40%"),
]  # fmt: skip


@pytest.mark.parametrize("one", LENGTHS, ids=lambda one: one.id)
def test_lengths(one):
    hold(one)


@pytest.mark.parametrize(
    ("limit", "stated", "says"),
    [(350, "${x}", None), (1024, None, "the limit 1,024 (your settings)")],
)
def test_the_users_limit_goes_first(limit, stated, says):
    settings = {"data.max_response_length": stated} if stated else None
    guide = load_guide({"response_limit": limit})
    one = found(judge(planted(OURS, TUTORIAL, settings), guide), "response-short")
    assert (one is None) is (says is None)
    assert one is None or (says or "") in one.message


def test_a_collapse_of_length_that_is_over():
    columns = {LENGTH: [*SHRINKS[:140], *course(300, 300)[140:]], REWARD: FALLS}
    (one,) = episodes(judge(planted(columns)), "length-collapse")
    assert (one.raised_step or 999) <= 120
    assert one.cleared_step is not None


# -- repetition ------------------------------------------------------------------------------------

LOOPS = [*noisy([0.05] * 201, 0.02), *noisy([0.8] * 49, 0.05)]
EVEN = noisy([0.6] * 300, 0.03)


def right(share: list[float]) -> dict[str, list[float]]:
    """Return the figures of samples that are right or wrong."""
    spread = [(one * (1 - one)) ** 0.5 for one in share]
    return {"samples/score": share, "samples/score_std": spread}


def in_parts(first: list[float], second: list[float]) -> dict[str, list[float]]:
    """Return a reward that is the sum of two parts, and these."""
    return {
        REWARD: [a + b for a, b in zip(first, second, strict=True)],
        "reward_extra_info/right/mean": first,
        "reward_extra_info/brief/mean": second,
    }


def loops(scores: dict[str, list[float]], says: str | None) -> Case:
    return case("repetition", {"samples/repetition": LOOPS, **scores}, says)


REPETITIONS = [
    loops(right([0.2] * 150 + [0.9] * 100), None),  # the text behind the answer repeats itself
    loops(right([0.5] * 250), ""),
    loops(right([0.9] * 150 + [0.1] * 100), ""),
    loops({"samples/score": ramp(0.2, 0.9), "samples/score_std": [0.05] * 300}, ""),  # by degrees
    loops(in_parts([0.2] * 150 + [0.9] * 150, EVEN), None),  # no part has lost
    loops(in_parts([0.2] * 150 + [0.9] * 150, [0.5] * 150 + [0.1] * 150), ""),  # bought with the other
    loops(in_parts(EVEN, EVEN), ""),  # and nothing is gained
    # loops and the entropy that they cost are one finding
    case("repetition", {"val_samples/repetition": LOOPS, "val_samples/ngram_entropy": [1 - one for one in LOOPS]},
         "repetition of samples in validation has risen…val_samples/ngram_entropy: "),
    # repetition that creeps, that was always there, that hardly rises
    case("repetition", {"samples/repetition": noisy(ramp(0.05, 0.6), 0.02)}, ""),
    case("repetition", {"samples/repetition": noisy([0.5] * 300, 0.05)}),
    case("repetition", {"samples/repetition": noisy(ramp(0.05, 0.15), 0.03)}),
]  # fmt: skip


@pytest.mark.parametrize("one", REPETITIONS, ids=lambda one: one.id)
def test_repetition(one):
    hold(one)

"""The training reward rises at the cost of one of its parts, or while validation or samples get
worse; and samples that begin to repeat themselves.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from verl_tui.health.conditions.rises import shift
from verl_tui.health.conditions.windows import lately, noise, rolling, rows
from verl_tui.health.diagnoses.diagnosis import (
    FindingHistory,
    InBlocks,
    Shown,
    Told,
    diagnosis,
)
from verl_tui.health.finding import Severity, number
from verl_tui.health.inputs import column_of
from verl_tui.health.reward import (
    gaining_components,
    has_learnt,
    no_part_lost,
    right_or_wrong,
)
from verl_tui.indicators import validation_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from verl_tui.health.conditions.condition import Judged
    from verl_tui.health.conditions.windows import Blocks, Flags, Numbers, Places
    from verl_tui.health.guide import Rule
    from verl_tui.health.rule_context import RuleContext

_LAGS = (10, 20, 40)
"""Blocks over which reward and validation are compared: 100 to 400 points."""
_RISE_T, _RISE = 5.0, 0.1
"""The reward must have gained a tenth of its range so far at least, beyond any doubt: heuristic."""
_VALIDATIONS = 5
"""Blocks with validations without which their course is not known: heuristic."""
_FALL_T, _FALL = -2.5, 0.05
"""A fall of validation by a twentieth of its level counts as one: heuristic."""
_SHARE, _SURE = 0.25, 3.0
"""Validation stands still if it gained less than a quarter of the reward's gain, by three standard
errors: heuristic.
"""
_FOLLOW_T, _FOLLOW = 2.0, 0.02
"""A validation score that has likely gained a fiftieth of its level follows the reward."""
_MOST_VALIDATIONS, _MOST_PARTS = 6, 12
_SCORED = ("samples/score", "samples/score_std")
_REPEATS, _POORER = 0.1, 0.15
"""Repetition up by a tenth, or diversity down by so much of its level, beyond doubt: heuristic."""
_LEFT, _BACK = 0.6, 0.75
"""Share of its best at or below which a figure has fallen, and beyond which it has come back:
heuristic.
"""
_BOTTOM = 0.15
"""Share of a scale from −1 that a figure which is never above 0 must be down to: penalties for
length grow with use.
"""
_SURE_LOSS, _SURE_RISE, _LEAST_RISE = 5.0, 3.0, 0.05
"""Standard errors of the fall, which is searched for in many places, and of the reward's rise
since, which is a twentieth of its size at least: heuristic.
"""
_WINDOWS = (1, 2, 4, 8)
"""Blocks whose means are compared: few show sharp falls soon, many show noisy ones."""
_LOOKED_AT = 60
"""Newest blocks among which the best is sought."""
_NEAR = 0.25
"""It began to fall where it was last within a quarter of the way from its best."""


@diagnosis("reward-hacking", "reward")
def reward_hacking(context: RuleContext, _: Rule) -> InBlocks | str:
    """Find a reward that goes up, and a part of it down; or validation down or level; or samples
    that repeat or resemble each other.
    """
    reward = context.indicators["reward"]
    validations = validation_keys(context.run.keys)[:_MOST_VALIDATIONS]
    names = ("samples/repetition", "samples/distinct_2", *_SCORED)
    repetition, distinct, *scores = map(context.names.get, names)
    parts = gaining_components(context.run, reward)[:_MOST_PARTS]
    if not validations and not parts and repetition is None and distinct is None:
        return "the log has neither validation nor samples nor parts of the reward"
    keys = (reward, repetition, distinct, *scores, *validations, *parts)
    return InBlocks(keys, _find, len(validations))


_FIGURES = 5
"""First column of validations, behind which those of the reward's parts are."""


def _find(blocks: Blocks, of: InBlocks) -> Shown:
    signs = [
        *(
            _cost(blocks, of, i, size)
            for size in _WINDOWS
            for i in range(_FIGURES, len(of.keys))
        ),
        *(one for lag in _LAGS for one in _compared(blocks, of, lag)),
    ]
    shows = np.array([flags for flags, _ in signs])
    any_shows: Flags = np.logical_or.reduce(shows)
    # A single block may be chance.
    begins = any_shows & np.append(False, any_shows[:-1])
    begins[: of.needs] = False

    def told(at: int, _: int = 0) -> Told:
        shown = int(np.flatnonzero(any_shows[: at + 1])[-1])
        return signs[int(shows[:, shown].argmax())][1](shown, at)

    return Shown(begins, any_shows, lambda at: told(at).since or 0, told)


_Sign = tuple["Flags", "Callable[[int, int], Told]"]
"""Where a sign shows, and what it tells by the block where it shows and the newest one."""


def _cost(blocks: Blocks, of: InBlocks, i: int, size: int) -> _Sign:
    """Return where a figure is down to 60% of its best while the reward has risen, by means of so
    many blocks.
    """
    low, high = blocks.lowest[i], blocks.highest[i]
    # Scales end at 0, or at −1 where they reach below 0 and stay within −1 and 1.
    floor = -1.0 * ((low >= -1.0) & (low < 0.0) & (high <= 1.0))
    if not (blocks.known[i] - floor <= _LEFT * (high - floor)).any():
        return np.zeros(blocks.size, bool), lambda *_: Told({})
    now, reward = _means(blocks.levels[i], size), _means(blocks.levels[0], size)
    places, best = _best(now, size)
    then = reward[places]
    error, beside = (math.sqrt(2 / size) * _usual_error(blocks, k) for k in (i, 0))
    left = np.where(high <= 0, _BOTTOM, _LEFT)
    found = (best > floor) & (now - floor <= left * (best - floor))
    # Of a scale that ends somewhere below 0 no share is known: the gain before it must be gone.
    gained = np.where(low < floor, best - low, 0.0)
    found &= best - now >= np.maximum(_SURE_LOSS * error, (1 - _LEFT) * gained)
    least = _LEAST_RISE * np.maximum(abs(reward), abs(then))
    found &= reward - then >= np.maximum(_SURE_RISE * beside, least)
    begun = np.maximum.accumulate(np.where(found, np.arange(blocks.size), -1))
    back = blocks.levels[i] - floor > _BACK * (best[begun] - floor)
    lasts = (begun >= 0) & ~back & ~(blocks.levels[0] <= then[begun])

    def told(at: int, newest: int) -> Told:
        start = begun[at]
        level = float(blocks.known[i, newest])
        near = best[start] - _NEAR * (best[start] - now[start])
        high_at = np.flatnonzero(blocks.levels[i, places[start] : start] >= near)
        since = int(places[start] + high_at.max(initial=0))
        return Told(
            {
                "best": float(best[start]),
                "best_step": int(blocks.last[places[start]]),
                "found": float(now[start]),
                "now": level,
                "reward_then": float(then[start]),
            },
            case="cost",
            since=int(blocks.last[since]),
            key=of.keys[i],
        )

    return lasts, told


def _means(levels: Numbers, size: int) -> Numbers:
    """Return the mean of the last so many known levels at each block that has one, else nan."""
    is_known = ~np.isnan(levels)
    found = np.full(len(levels), np.nan)
    found[is_known] = rolling(levels[is_known], size) / size
    return found


def _usual_error(blocks: Blocks, i: int) -> Numbers:
    """Return the usual error of levels up to each block by the points within blocks, else by the
    differences of neighbours.
    """
    errors = blocks.errors[i]
    squares = np.where(np.isnan(errors), 0.0, np.square(np.minimum(errors, 1e100)))
    with np.errstate(invalid="ignore"):
        found = np.sqrt(np.cumsum(squares) / np.cumsum(~np.isnan(errors)))
    return np.where(np.isnan(found), noise(blocks.levels[i]), found)


def _best(levels: Numbers, gap: int) -> tuple[Places, Numbers]:
    """Return the place and level of the highest of the last levels at each block, but for the
    newest ones.
    """
    size = _LOOKED_AT - gap
    padded = np.append(
        np.full(_LOOKED_AT, -np.inf), np.where(np.isnan(levels), -np.inf, levels)
    )
    every = np.arange(len(levels))
    at = rows(padded, size, every + _LOOKED_AT - gap).argmax(axis=1)
    places = np.maximum(0, every - gap - size + 1 + at)
    return places, levels[places]


def _compared(blocks: Blocks, of: InBlocks, lag: int) -> list[_Sign]:
    """Return the signs over so many blocks that a rising reward is no improvement."""
    low, high = blocks.lowest[0], blocks.highest[0]
    _, gain, t = blocks.slopes(0, lag)
    least = _RISE * np.maximum(high - low, abs(high + low) / 2)
    rises = (t >= _RISE_T) & (gain >= least)
    rises[: lag - 1] = False
    validations = range(_FIGURES, _FIGURES + of.of)
    # Where any validation follows, the reward stands for something.
    for i in validations:
        rises &= ~blocks.moves(i, lag, _FOLLOW_T, _FOLLOW)
    # Only where both are shares a gain of the reward measures that of validation.
    gain = np.where((low >= 0) & (high <= 1), gain, np.nan)
    found: list[tuple[int, Flags, str]] = []
    for i in validations:
        counts, change, t = blocks.slopes(i, lag)
        known = rises & (counts >= _VALIDATIONS)
        fell = known & blocks.moves(i, lag, _FALL_T, _FALL)
        size = lately(abs(blocks.levels[i]), lag, np.fmax)
        least = np.where((size <= 1) & ~np.isnan(gain), _SHARE * gain, _FALL * size)
        is_error = np.isfinite(t) & (t != 0)
        error = np.divide(change, t, out=np.zeros(len(t)), where=is_error)
        still = known & ~fell & (change + _SURE * abs(error) < least)
        found += [(i, fell, "validation fell"), (i, still, "validation stood still")]
    poorer = _POORER * blocks.before(2, lag - 1)
    for i, words, way, much in (
        (1, "samples repeat themselves more", 1, _REPEATS),
        (2, "samples have become more alike", -1, poorer),
    ):
        counts, change, t = blocks.slopes(i, lag)
        worse = rises & (counts >= _VALIDATIONS) & (way * t >= _RISE_T)
        worse &= way * change >= much
        for at in np.flatnonzero(worse).tolist():
            scores, spreads = blocks.levels[3:5, at + 1 - lag : at + 1].tolist()
            worse[at] = not (right_or_wrong(scores, spreads) and has_learnt(scores))
        found.append((i, worse, words))

    def sign(i: int, flags: Flags, words: str) -> _Sign:
        def told(at: int, _: int) -> Told:
            start = at + 1 - lag
            levels, now = blocks.levels[i, start : at + 1], blocks.known[:, at]
            fell = words == "validation fell"
            known = np.flatnonzero(~np.isnan(levels))
            first = np.nanargmax(levels) if fell else known[0]
            step, begin = int(blocks.last[start + first]), int(blocks.last[start])
            way = f"{number(levels[first])} at step {step}, {number(now[i])} now"
            facts = {
                "begun": float(blocks.known[0, start]),
                "now": float(now[0]),
                "begin": begin,
                "sign": f"{words}: {way}",
            }
            return Told(facts, since=step if fell else begin, key=of.keys[i])

        return flags, told

    return [sign(*one) for one in found]


_USUAL, _FEWEST, _RECENT = 30, 4, 2
"""Steps with samples that make the past, how many of them there must be, and how many must have
left it.
"""
_OF_SAMPLES = {
    "samples/repetition": ("repetition of samples", 0.2),
    "samples/ngram_entropy": ("n-gram entropy of samples", -0.15),
    "val_samples/repetition": ("repetition of samples in validation", 0.2),
    "val_samples/ngram_entropy": ("n-gram entropy of samples in validation", -0.15),
}
"""Figure -> its title, and the least change in its own unit (shares): heuristic."""
_SCORES = 100
"""Newest steps with samples that show whether answers are right or wrong."""
_NO_PART_LOST = (
    ", although the reward has gained and no part of it has fallen: the repetition may be what the "
    "task asks for"
)
_LEARNT = ", although more answers are right than before: the repetition may follow the answer"


@diagnosis("repetition")
def repetition(context: RuleContext, rule: Rule) -> FindingHistory | str:
    """Find a repetition rate up, or n-gram entropy down, far beyond their usual spread; information
    where answers had become better, or where a reward of several parts had gained without losing
    any.
    """
    judged = []
    for name, (title, way) in _OF_SAMPLES.items():
        series = context.known(context.names.get(name))
        if series is not None:
            points, step = column_of([series], context.end)
            judged.append(
                (series.key, title, step, shift(points, _USUAL, _FEWEST, _RECENT, way))
            )
    if not judged:
        return "the log has no samples"
    most = max(one.seen for *_, one in judged)
    if most < _FEWEST + _RECENT:
        return f"needs {_FEWEST + _RECENT} steps with samples, has {most}"
    remark = partial(_remark, rule.severity)
    # The first figure that has breaches counts: they go together.
    held = [one for one in judged if one[-1].open is not None]
    known = [one.breaches for *_, one in (*held, *judged)]
    now = _repeats(context, held, *remark(context)) if held else None
    return FindingHistory(now, next(filter(None, known), ()), remark)


def _repeats(
    context: RuleContext,
    held: Sequence[tuple[str, str, int | None, Judged]],
    severity: Severity,
    words: str,
) -> Told:
    told = [(key, *one.report(title, context.duration)) for key, title, _, one in held]
    return Told(
        {"told": told[0][1] + words},
        [f"{key}: {sentence}" for key, _, *evidence in told for sentence in evidence],
        since=min(one.open.since for *_, one in held if one.open is not None),
        step=held[0][2],
        key=held[0][0],
        severity=severity,
    )


def _remark(severity: Severity, context: RuleContext) -> tuple[Severity, str]:
    score, spread = (context.finite(context.names.get(name)) for name in _SCORED)
    is_right = right_or_wrong(score[-_SCORES:], spread[-_SCORES:])
    if len(score) == len(spread) and is_right and has_learnt(score):
        return Severity.INFO, _LEARNT
    if no_part_lost(context):
        return Severity.INFO, _NO_PART_LOST
    return severity, ""

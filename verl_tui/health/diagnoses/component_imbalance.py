"""Parts of a reward that the total hides: one is saturated and carries it, or has never scored."""

from __future__ import annotations

import re
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from verl_tui.evaluation import PREFIX
from verl_tui.health.conditions.windows import rows
from verl_tui.health.diagnoses.diagnosis import (
    InBlocks,
    Onset,
    Onsets,
    Told,
    diagnosis,
    went,
)
from verl_tui.health.finding import Severity, number
from verl_tui.health.reward import components, gains, weights
from verl_tui.means import finite
from verl_tui.patterns import pattern

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.health.blocks import Blocks
    from verl_tui.health.conditions.windows import Flags, Numbers, Places
    from verl_tui.health.guide import Rule
    from verl_tui.health.rule_context import RuleContext
    from verl_tui.runs.series import Series


_HIGHEST = 0.95
"""The total is at its top at so much of its highest so far: heuristic."""
_EQUAL = 1e-9
_HAVE = ("has", "have")
_A_SCORE = pattern(
    r"acc|correct|reward|score|right|format|answer|pass|solve|success", re.I
)
"""Names of figures of samples that are scores: others, as of tools, may well be 0."""


@diagnosis("component-imbalance/never-scored")
def never_scored(context: RuleContext, rule: Rule) -> Told | str | None:
    """Find parts at their floor at all points, under a total that is at its top or rises."""
    reward = context.known(context.indicators.get("reward"))
    parts = components(context.run.keys, reward.key if reward is not None else None)
    if reward is None or len(parts) < 2:
        return "the log has no components of the reward"
    if len(reward) < rule.window:
        return f"needs {rule.window} points, has {len(reward)}"
    silent = silent_parts(context, parts, rule.window)
    level = fmean(finite(reward.tail(rule.window)) or [0.0])
    at_top = level >= _HIGHEST * reward.highest > 0
    if not silent or not (at_top or gains(reward.values)):
        return None
    found = _silent(silent, level, reward.steps[-1])
    # what still rises may come to score
    return found if at_top else found._replace(case="rises", severity=Severity.INFO)


def _silent(silent: Sequence[Series], level: float, step: int) -> Told:
    return Told(
        {
            "names": ", ".join(one.key for one in silent),
            "have": _HAVE[len(silent) > 1],
            "points": max(map(len, silent)),
            "level": level,
        },
        [
            f"{one.key}: {number(one.highest)} at all of {len(one)} points"
            for one in silent
        ],
        since=min(one.steps[0] for one in silent),
        step=step,
        key=silent[0].key,
    )


def silent_parts(
    context: RuleContext, parts: Sequence[str], least: int
) -> Sequence[Series]:
    """Return the parts of a reward that count in it, have so many points at least, and have never
    scored.
    """
    known = weights(context.run, parts)
    counted = [key for key in parts if known.get(key, 1.0) > 0 and _is_score(key)]
    return [
        one
        for one in map(context.known, counted)
        if one is not None and len(one) >= least and _is_at_its_floor(one)
    ]


def _is_score(key: str) -> bool:
    return not key.startswith(PREFIX) or _A_SCORE.search(key) is not None


def _is_at_its_floor(part: Series) -> bool:
    floor = part.highest
    return floor <= 0 and part.first_beyond(floor - _EQUAL, down=True) is None


_MOST = 12
_WINDOW = 12
"""Newest blocks in which it is saturated: 120 points, longer than any start: heuristic."""
_CLIMB = 0.2
"""A saturated component must have gained a fifth of its top, or it is a constant: heuristic."""
_TOP = 0.9
"""On average it stays within a tenth of its range from its top."""
_FOOT = 0.25
"""Its climb began where it was last within a quarter of its range from its lowest."""
_STILL = 0.08
"""Another component moves if since then it has gained so much of that range: heuristic."""
_CEILING = 0.9
"""One that stays within a tenth of the saturated one's top is at its ceiling: heuristic."""
_HIGH = 0.75
"""One that is never below three quarters of a scale from 0 to 1 is at its ceiling, too: heuristic.
"""
_ROUNDING = 1e-6
"""Share of their size by which equal values differ."""
_SURE_T, _OWN = 4.0, 0.25
"""Or if it has gained, beyond doubt, a quarter of its own level."""
_DONE = 0.25
"""One that has climbed a quarter of that range before, and stays there, is done rather than
stuck.
"""


_NEWEST = 4
"""Newest blocks that show a component's present level."""
_LONGEST = 300
"""Newest blocks in which a climb is searched for."""


class _Part(NamedTuple):
    """A part of the reward at each block."""

    column: int
    levels: Numbers
    low: Numbers
    top: Numbers
    """Lowest and highest level so far."""
    mean: Numbers
    least: Numbers
    """Over the newest blocks; nan where few of them have it."""
    now: Numbers
    """Present level: mean of the very newest blocks."""

    @property
    def reach(self) -> Numbers:
        """Range of its levels so far."""
        return self.top - self.low

    @property
    def is_saturated(self) -> Flags:
        """Where it has climbed and stays at its top."""
        size = np.maximum(abs(self.top), abs(self.low))
        found: Flags = (
            (self.reach > _CLIMB * size)
            & (self.mean >= self.top - (1 - _TOP) * self.reach)
            & (self.least >= self.top - _FOOT * self.reach)
        )
        return found

    def may_be_stuck(self, beside: _Part) -> Flags:
        """Return where it is still logged, and has not reached its own top before."""
        low, top, reach = self.low, self.top, self.reach
        ceiling = np.maximum(beside.top, top)
        floor = top - _FOOT * reach
        is_done = (
            # at its ceiling all along, or at its own: all answers have got as much as any ever did
            ((self.least >= _CEILING * ceiling) & (ceiling > 0))
            | ((self.least >= (1 - _ROUNDING) * top) & (top > 0))
            # at that of a scale from 0 to 1, or a penalty, as small as it ever was
            | ((top <= 1) & (low >= _HIGH))
            | ((top <= 0) & (self.now >= floor) & (floor > low))
            # it has climbed before, and stays there
            | (
                (reach >= _DONE * beside.reach)
                & (self.least >= top - (1 - _FOOT) * reach)
            )
        )
        found: Flags = ~is_done & ~np.isnan(self.mean)
        return found

    def climbs(self, places: Places) -> Places:
        """Return the place of the block at the foot of its climb, as seen from some places."""
        foot = (self.low + _FOOT * self.reach)[places]
        padded = np.append(np.full(_LONGEST - 1, np.inf), self.levels)
        below = rows(padded, _LONGEST, places + _LONGEST - 1) <= foot[:, None]
        back = np.where(below.any(axis=1), below[:, ::-1].argmax(axis=1), _LONGEST - 1)
        found: Places = np.maximum(0, places - back)
        return found

    def moves(
        self, blocks: Blocks, places: Places, climbs: Places, beside: _Part
    ) -> Flags:
        """Return where it has gained anything since another one began to climb: by that one's
        measure, or surely by its own, as parts of a reward have scales of their own.
        """
        moves = ~(self.gains(places, climbs) < _STILL * beside.reach[places])
        (still,) = np.nonzero(~moves)
        at, sizes = places[still], (places + 1 - climbs)[still]
        _, change, t = blocks.slopes(self.column, at, sizes)
        moves[still] = (t >= _SURE_T) & (change >= _OWN * abs(self.now[at]))
        return moves

    def gains(self, places: Places, climbs: Places) -> Numbers:
        """Return what it has gained since another one began to climb; nan where that is unknown."""
        at = climbs[:, None] + np.arange(-2, 2)
        is_there = (at >= 0) & (at <= places[:, None])
        near = np.where(is_there, self.levels[at.clip(0, len(self.levels) - 1)], np.nan)
        return self.now[places] - _mean(near)


def _mean(rows: Numbers) -> Numbers:
    """Return the mean of what is known in each row, nan where nothing is."""
    is_known = ~np.isnan(rows)
    with np.errstate(invalid="ignore"):
        found: Numbers = np.where(is_known, rows, 0.0).sum(axis=1) / is_known.sum(1)
    return found


def _part(blocks: Blocks, i: int) -> _Part:
    levels = blocks.levels[i]
    padded = np.append(np.full(_WINDOW - 1, np.nan), levels)
    newest = sliding_window_view(padded, _WINDOW)
    is_known = 2 * (~np.isnan(newest)).sum(axis=1) >= _WINDOW
    mean = np.where(is_known, _mean(newest), np.nan)
    least = np.where(is_known, np.fmin.reduce(newest, axis=1), np.nan)
    ends = blocks.lowest[i], blocks.highest[i]
    return _Part(i, levels, *ends, mean, least, _mean(newest[:, -_NEWEST:]))


class _Imbalance(NamedTuple):
    """A saturated part, and the others that are stuck, at a block."""

    part: _Part
    climb: int
    """Place of the block at the foot of its climb."""
    stuck: Sequence[_Part]

    def fell(self, other: _Part, at: int) -> bool:
        """Return whether a part has fallen since then, by the saturated one's measure or by its
        own.
        """
        gain = other.gains(np.array([at]), np.array([self.climb]))[0]
        least = _STILL * self.part.reach[at], _OWN * (abs(other.now[at]) + abs(gain))
        return bool(-gain >= min(least))


@diagnosis("component-imbalance")
def component_imbalance(context: RuleContext, _: Rule) -> InBlocks | str:
    """Find a component at its top for long, while no other has gained anything."""
    reward = context.indicators.get("reward")
    keys = components(context.run.keys, reward)
    if reward is None:
        return "no reward"
    if len(keys) < 2:
        return "the log has no components of the reward"
    return InBlocks((reward, *keys[:_MOST]), _find, needs=14)


def _find(blocks: Blocks, of: InBlocks) -> Onsets:
    parts = [_part(blocks, i) for i in range(1, len(of.keys))]
    every = np.arange(of.needs - 1, len(blocks))
    # The first part that carries the reward counts.
    found = dict(reversed([*_imbalances(blocks, parts, every)]))
    begins = np.isin(np.arange(len(blocks)), [*found])

    def told(at: int, since: int) -> Told:
        return _told(blocks, of, found[at], at)._replace(since=since)

    return Onsets(begins, lambda at: Onset(_since(blocks, found[at], at), begins, told))


def _imbalances(
    blocks: Blocks, parts: Sequence[_Part], places: Places
) -> Iterator[tuple[int, _Imbalance]]:
    """Yield those of some blocks at which a component carries the reward."""
    for one in parts:
        others = [other for other in parts if other is not one]
        at = places[one.is_saturated[places]]
        stuck = np.array([other.may_be_stuck(one)[at] for other in others])
        climbs = one.climbs(at)
        moves = np.array([other.moves(blocks, at, climbs, one) for other in others])
        for k in np.flatnonzero(stuck.any(axis=0) & ~(stuck & moves).any(axis=0)):
            held = [other for j, other in enumerate(others) if stuck[j, k]]
            yield int(at[k]), _Imbalance(one, int(climbs[k]), held)


def _since(blocks: Blocks, found: _Imbalance, at: int) -> int:
    """Return the step from which on it is saturated."""
    part = found.part
    floor = part.top[at] - (1 - _TOP) * part.reach[at]
    high = part.levels[found.climb : at + 1] >= floor
    return int(blocks.last[found.climb + int(np.argmax(high))])


def _told(blocks: Blocks, of: InBlocks, found: _Imbalance, at: int) -> Told:
    one, others = found.part, found.stuck
    climb = blocks[found.climb : at + 1]
    fell = [found.fell(other, at) for other in others]
    foot, last = int(climb.last[0]), int(climb.last[-1])
    evidence = [
        went(of.keys[j], [climb.known(j)[0], blocks[: at + 1].known(j)[-1]], foot, last)
        + f" (means of {of.size} points)"
        for j in (one.column, *(other.column for other in others), 0)
    ]
    return Told(
        {
            "top": float(one.top[at]),
            "names": ", ".join(of.keys[other.column] or "" for other in others),
            "have": _HAVE[len(others) > 1],
            "done": _DONE_WORDS[any(fell) + all(fell)],
            "foot": foot,
            "since": _since(blocks, found, at),
        },
        evidence,
        key=of.keys[one.column],
    )


_DONE_WORDS = ("gained nothing", "gained nothing or fallen", "fallen")
"""What the others have done where none, some, and all have fallen."""

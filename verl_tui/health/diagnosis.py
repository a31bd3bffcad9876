"""How diagnoses are declared, and those by blocks: metrics cut into blocks of some points, where a
failure begins and lasts in these, and its course by the words of its rule.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from verl_tui.health.conditions.column import (
    Candidates,
    Flags,
    Found,
    Judged,
    Numbers,
    Places,
    Spell,
    breaches_of,
    first,
    lately,
    rolling,
    shifted,
    trends,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from verl_tui.health.finding import Finding
    from verl_tui.health.rule_context import RuleContext
    from verl_tui.runs.cached import LastResult
    from verl_tui.runs.series import Series

    Find: TypeAlias = Callable[
        [RuleContext], "Finding | Found | BlockDiagnosis | str | None"
    ]


_TRIM = 5
"""From so many values on, a block's mean leaves out the least and the greatest (outliers)."""
_STEP_TO_SIGMA = 0.886
"""Mean size of the differences between neighbours times this is the standard deviation of normal
noise.
"""


class Blocks(NamedTuple):
    """Blocks of the same metrics, one after the other, as columns of numbers. Methods return a
    figure for each block, which depends on none after it.
    """

    first: Places
    last: Places
    """Steps of the first metric's first and last point."""
    settled: Places
    """Step from which a block does not change any more: the first metric's next one."""
    levels: Numbers
    """Level of each metric (first axis) in each block; nan where it has no finite value there."""
    errors: Numbers
    """Its standard error by the differences of neighbours, nan below two values."""
    known: Numbers
    """The newest level up to each block, nan before the first one."""
    lowest: Numbers
    highest: Numbers
    """The lowest and the highest level from the log's first block up to each."""

    @property
    def size(self) -> int:
        """Number of blocks."""
        return len(self.first)

    def slopes(self, i: int, size: int) -> tuple[Places, Numbers, Numbers]:
        """Return how many of the last so many blocks have a level of a metric, and change and t of
        the trend of these.
        """
        is_known = ~np.isnan(self.levels[i])
        last = np.cumsum(is_known)
        counts = last - np.nan_to_num(shifted(last, size)).astype(int)
        lines = np.zeros((2, self.size))
        for count in {*counts.tolist()}:
            some = counts == count
            lines[:, some] = trends(self.levels[i][is_known], count, last[some] - 1)
        return counts, lines[0], lines[1]

    def moves(self, i: int, size: int, t: float, share: float) -> Flags:
        """Return where the last so many blocks of a metric have a trend of so many standard errors
        by so large a share of its size; it falls where t is negative.
        """
        _, change, found_t = self.slopes(i, size)
        way = math.copysign(1, t)
        least = share * lately(abs(self.levels[i]), size, np.fmax)
        found: Flags = (way * found_t >= abs(t)) & (way * change >= least)
        return found

    def before(self, i: int, count: int) -> Numbers:
        """Return the level of a metric so many blocks before, the first one where there are
        fewer.
        """
        level: Numbers = self.known[i][np.maximum(0, np.arange(self.size) - count)]
        return level

    def means(self, i: int, size: int) -> Numbers:
        """Return the mean of the last so many levels of a metric that are known up to each
        block, of fewer at the beginning; nan before the first.
        """
        is_known = ~np.isnan(self.levels[i])
        until = np.cumsum(is_known)
        sums = np.append(0.0, np.cumsum(self.levels[i][is_known]))
        start = np.maximum(0, until - size)
        found: Numbers = (sums[until] - sums[start]) / (until - start)
        return found

    def noise(self, i: int) -> Numbers:
        """Return the usual error of a metric's levels up to each block, by the differences of
        neighbours; nan before there are two.
        """
        is_known = ~np.isnan(self.levels[i])
        steps = np.append(0.0, abs(np.diff(self.levels[i][is_known])))
        found = np.full(self.size, np.nan)
        usual = np.cumsum(steps) / np.arange(len(steps))
        found[is_known] = _STEP_TO_SIGMA * usual
        return _last_known(found)


class Signs(NamedTuple):
    """What blocks show of a failure. Of what is found at a block nothing depends on later ones."""

    begins: Flags
    """At which blocks it may begin."""
    lasts: Flags | Callable[[int], Flags]
    """At which it shows, perhaps depending on where it began."""
    since: Callable[[int], int]
    """Returns the block with which the failure began that shows first at another."""
    facts: Callable[[int, int], Mapping[str, Any]]
    """Returns it in figures as it is at a block, by the two."""


class BlockDiagnosis(NamedTuple):
    """A diagnosis that compares metrics block by block."""

    named: Mapping[str, str | None]
    """Metrics by their names in its words: the log's own keys; the first one sets the pace, others
    may be None.
    """
    find: Callable[[Blocks, BlockDiagnosis], Signs]
    others: Sequence[str] = ()
    """The keys of metrics without a name."""
    extra: Any = None
    """Anything else that it depends on, hashable."""
    size: int = 10
    """Points a block: enough to tell a level from noise, few enough to find failures soon."""
    needs: int = 4
    """Fewest blocks to judge."""
    patience: int = 5
    """Blocks without the signs after which it is over: it must not come and go with noise."""

    @property
    def metrics(self) -> Sequence[str]:
        """The keys of all, those that are None as empty texts."""
        return [*(key or "" for key in self.named.values()), *self.others]


def find_in_blocks(
    context: RuleContext, spec: BlockDiagnosis, kept: LastResult
) -> Found:
    """Return what a diagnosis finds in blocks now and before, or why it does not judge.

    Args:
        context: The run.
        spec: Its metrics, and what finds the failure in them.
        kept: What was found last.
    """
    keys, rule = (*spec.named.values(), *spec.others), context.rule
    points = context.known(keys[0])
    # The newest point may still change.
    seen = len(points) if points else 0
    count = (seen - 1) // spec.size
    if not points or count < spec.needs:
        return Found(f"needs {spec.needs * spec.size + 1} points, has {seen}")
    series = [context.run.series(key or "") for key in keys]
    basis = keys, spec.extra, [one and one.revision for one in series], count
    found = kept.of(
        basis, lambda: _judge(rule.name, spec, _cut(series, spec.size, count))
    )
    now: Finding | str | None = found.needs
    if (facts := found.facts) is not None:
        now = rule.finding(
            facts,
            facts.get("evidence", ()),
            facts.get("case", ""),
            since=facts["since"],
            step=points.steps[count * spec.size - 1],
            key=facts["key"],
        )
    return Found(now, found.breaches, rule.title)


def _judge(words: str, spec: BlockDiagnosis, blocks: Blocks) -> Judged:
    """Find a failure in blocks, or why that is not judged where there is none.

    Its words know, besides the figures of the diagnosis: since, key (the first metric unless the
    diagnosis says another), size (points a block), last (the newest block's last step); of each
    metric its key by its name, `…_then`, its level before the failure, and `…_now`.
    """
    signs = spec.find(blocks, spec)
    starts = np.append(blocks.first[:1], blocks.last)
    newest = 0

    def facts(at: int, begun: int) -> Mapping[str, Any]:
        then = max(0, begun - 1)
        known = {"size": spec.size, "last": blocks.last[at], "key": spec.metrics[0]}
        for i, (name, key) in enumerate(spec.named.items()):
            known[name] = key
            known[f"{name}_then"] = blocks.known[i, then]
            known[f"{name}_now"] = blocks.known[i, at]
        return {**known, "since": int(starts[begun]), **signs.facts(at, begun)}

    def spell(place: int) -> Spell:
        nonlocal newest
        lasts = signs.lasts(place) if callable(signs.lasts) else signs.lasts
        quiet = ~lasts
        quiet[: place + 1] = False
        end = first(rolling(quiet, spec.patience) == spec.patience, place + 1)
        newest = place + np.flatnonzero(lasts[place:]).max(initial=0)
        begun = signs.since(place)
        return Spell(begun, place, end, facts(place, begun))

    def now(since: int) -> Mapping[str, Any]:
        return facts(newest, int(np.searchsorted(starts, since)))

    places = np.flatnonzero(signs.begins)
    places = places[places >= spec.needs - 1].tolist()
    candidates = Candidates(0, places, spell, spec.patience, now=now)
    return breaches_of(words, starts, blocks.settled, candidates)


def _cut(series: Sequence[Series | None], size: int, count: int) -> Blocks:
    """Cut metrics at every so many points of the first one into a number of blocks."""
    steps = np.array(series[0].steps if series[0] else [], np.int64)
    first, last, settled = (steps[at::size][:count] for at in (0, size - 1, size))
    figures = np.array([_levels_and_errors(one, last) for one in series])
    levels, errors = figures.transpose(1, 0, 2)
    known = np.array([*map(_last_known, levels)])
    low, high = (of.accumulate(levels, axis=1) for of in (np.fmin, np.fmax))
    return Blocks(first, last, settled, levels, errors, known, low, high)


def _last_known(levels: Numbers) -> Numbers:
    """Return at each block the level of the newest one that has one, nan before the first."""
    known = np.where(np.isnan(levels), 0, np.arange(len(levels)))
    return levels[np.maximum.accumulate(known)]


def _levels_and_errors(series: Series | None, last: Places) -> tuple[Numbers, Numbers]:
    """Return the mean of the finite values of each block, without the least and the greatest where
    there are several, and its standard error; a slope or a step within them hardly counts.
    """
    nothing = np.full(len(last), math.nan)
    if not series or not len(last):
        return nothing, nothing
    stops = np.searchsorted(np.array(series.steps, np.int64), last, side="right")
    values = np.array(series.values, np.float64)[: stops[-1]]
    finite = np.isfinite(values)
    known = values[finite]
    ends = np.append(0, np.cumsum(finite))[stops]
    edges = np.append(0, ends)
    counts = np.diff(edges)
    total = _reduced(np.add, known.astype(np.longdouble), edges).astype(np.float64)
    low = _reduced(np.minimum, known, edges)
    high = _reduced(np.maximum, known, edges)
    inner = (total - low - high) / (counts - 2)
    level = np.where(counts >= _TRIM, inner, total / counts)
    level[counts == 0] = math.nan
    with np.errstate(all="ignore"):
        squares = np.square(np.diff(known))
        between = edges[(edges > 0) & (edges < len(known))]
        squares[between - 1] = 0.0  # between two blocks
        spread = _reduced(np.add, np.append(squares, 0.0)[: len(known)], edges)
        error = np.sqrt(spread / (2 * (counts - 1)) / counts)
    error[counts < 2] = math.nan
    return level, error


def _reduced(of: np.ufunc, values: NDArray[np.floating], edges: Places) -> Numbers:
    """Reduce the values between each two edges; anything where there are none."""
    found: Numbers = of.reduceat(np.append(values, values.dtype.type(0)), edges)[:-1]
    return found


class Diagnosis(NamedTuple):
    """A failure that is seen in several signals of one run."""

    find: Find
    """Returns the finding now, why it does not judge, or None if nothing is found; or these with
    its history; or its metrics and what finds the failure in their blocks.
    """
    by_clock: bool
    """True if it depends on the clock, as a hang does, and not only on the log."""
    requires: Sequence[str]
    """Indicators without which it does not judge."""


DIAGNOSES: dict[str, Diagnosis] = {}
"""Unique name of its rule -> diagnosis, which reads its figures from its entry in `guide.toml`."""


def diagnosis(
    name: str, *requires: str, by_clock: bool = False
) -> Callable[[Find], Find]:
    """Declare a function as the diagnosis of a rule, by its unique name; see `Diagnosis`."""

    def declared(find: Find) -> Find:
        DIAGNOSES[name] = Diagnosis(find, by_clock, requires)
        return find

    return declared

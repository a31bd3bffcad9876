"""Columns of numbers: what windows of them say, and what conditions find in them. A condition is a
causal function of a metric's whole column, as nothing it finds depends on later points: it returns
where a breach may begin, and what it is from there on.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from verl_tui.health.finding import WORDS, Finding, Severity, filled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray


Numbers: TypeAlias = "NDArray[np.float64]"
Flags: TypeAlias = "NDArray[np.bool_]"
Places: TypeAlias = "NDArray[np.int64]"
_AT_ONCE = 2**16
"""Values of windows that are looked at together: what a processor's cache holds."""
_TO_SIGMA = 1.4826
"""Median absolute deviation times this is the standard deviation of normal noise."""
_HUGE = 1e100
"""The squares of larger numbers overflow; broken runs do log such numbers."""


def rows(values: Numbers, size: int, last: Places) -> Numbers:
    """Return the windows of so many values that end at some places, a row each."""
    if not len(last):
        return np.empty((0, size))
    return sliding_window_view(values, size)[np.asarray(last) - size + 1]


def pasts(values: Numbers, places: Places, size: int, gap: int) -> Numbers:
    """Return so many values before the last few up to some places, a row each; nan where there are
    fewer.
    """
    return rows(np.append(np.full(size + gap, np.nan), values), size, places + size)


def medians(windows: Numbers, share: float = 0.5) -> Numbers:
    """Return the median of what is known in each row, or another quantile."""
    ordered = np.sort(windows, axis=1)
    last = np.maximum(0, (~np.isnan(ordered)).sum(axis=1) - 1)
    each, at = np.arange(len(ordered)), share * last
    low, high = (
        ordered[each, np.floor(at).astype(int)],
        ordered[each, np.ceil(at).astype(int)],
    )
    found: Numbers = low + (high - low) * (at % 1)
    return found


def sigmas(windows: Numbers, levels: Numbers) -> Numbers:
    """Return the standard deviation of normal noise with the same median distance from a level, of
    each row of values.
    """
    return _TO_SIGMA * medians(abs(windows - levels[:, None]))


def rolling(values: NDArray[Any], size: int, of: np.ufunc = np.add) -> NDArray[Any]:
    """Return the sum, or the minimum, of the last so many values at each place; nan where there are
    fewer.
    """
    part = values.astype(np.result_type(values, np.float64))
    found, width = None, 1
    while width <= size:  # by sums of 1, 2, 4, … values
        if size & width:
            newer = None if found is None else found[width:]
            found = part if newer is None else of(newer, part[: len(newer)])
        newer = part[width:]
        part = of(newer, part[: len(newer)])
        width *= 2
    assert found is not None
    return np.append(np.full(len(values) - len(found), np.nan), found)


def shifted(values: NDArray[Any], by: int) -> NDArray[Any]:
    """Return the value so many places before each, nan where there is none."""
    return np.append(np.full(by, np.nan), values)[: len(values)]


def means(values: Numbers, size: int) -> Numbers:
    """Return the mean of the last so many values at each place; nan where there are fewer."""
    # Ties are common, as with values of two decimals: they must not depend on rounding.
    return rolling(values.astype(np.longdouble), size).astype(np.float64) / size


def first(found: Flags, start: int) -> int | None:
    """Return the first place from `start` on where something is found."""
    at = np.flatnonzero(found[start:])
    return start + int(at[0]) if len(at) else None


def behind_last(found: Flags) -> int:
    """Return the place after the last one where something is found, 0 without any."""
    return int(np.flatnonzero(found).max(initial=-1)) + 1


class Trend(NamedTuple):
    """A straight line through equally spaced values."""

    change: float
    """By how much the line rises from the first value to the last."""
    t: float
    """Change in units of its own standard error; beyond ±2 it is hardly chance."""


def trend(values: ArrayLike) -> Trend:
    """Fit a line by least squares; too few values have no trend."""
    known = np.array(values, np.float64)
    change, t = trends(known, len(known), np.array([len(known) - 1]))
    return Trend(float(change[0]), float(t[0]))


def trends(values: Numbers, size: int, last: Places) -> tuple[Numbers, Numbers]:
    """Return change and t of the windows of so many values that end at some places."""
    if size < 4:
        return np.zeros(len(last)), np.zeros(len(last))
    many = max(1, _AT_ONCE // size)
    pieces = np.split(last, range(many, len(last), many))
    change, t = np.concatenate(
        [_lines(rows(values, size, some)) for some in pieces], axis=1
    )
    return change, t


def _lines(windows: Numbers) -> Numbers:
    """Return change and t of each row of values."""
    size = windows.shape[1]
    unit = np.ones(len(windows))
    if abs(windows).max(initial=0.0) > _HUGE:
        unit = np.maximum(1.0, abs(windows).max(axis=1))
        windows = windows / unit[:, None]
    middle = np.arange(size) - (size - 1) / 2
    spread = size * (size * size - 1) / 12
    mean = windows.mean(axis=1)
    windows = windows - mean[:, None]
    slope = np.einsum("ij,j->i", windows, middle) / spread
    windows -= slope[:, None] * middle
    error = np.sqrt(np.einsum("ij,ij->i", windows, windows) / (size - 2) / spread)
    t: Numbers = slope / error
    # A perfect line has no error: any slope is then beyond chance, none is none. Rounding leaves a
    # trace of both.
    perfect = error <= 1e-12 * np.maximum(abs(mean), abs(slope))
    is_level = abs(slope) * size <= 1e-9 * abs(mean)
    t[perfect] = np.where(is_level, 0.0, np.copysign(np.inf, slope))[perfect]
    return np.array((slope * (size - 1) * unit, t))


def lately(levels: Numbers, count: int, of: np.ufunc = np.fmin) -> Numbers:
    """Return the lowest of the last so many levels at each block, or the highest (`fmax`)."""
    padded = np.append(np.full(count - 1, np.nan), levels)
    return rolling(padded, count, of)[count - 1 :]


KEPT_BREACHES = 100
"""Breaches remembered of one metric: a history is read by people."""


class Breach(NamedTuple):
    """A breach from its first step until it was over."""

    since: int
    """First step of the breach."""
    raised: int
    """Step at which it was certain."""
    what: str
    """A few words to follow the metric's title: `was above 0.1, mean 0.14`."""
    cleared: int | None = None
    """Step at which it was over, None while it lasts."""
    severity: Severity | None = None
    """Another one than the guide's."""


def open_breach(breaches: Sequence[Breach]) -> Breach | None:
    """Return the breach that holds now, None without one."""
    return breaches[-1] if breaches and breaches[-1].cleared is None else None


class Found(NamedTuple):
    """What a rule finds in one column, now and before."""

    now: Finding | str | None
    """The finding now, or why it does not judge, or None if nothing is found."""
    breaches: Iterable[Breach] = ()
    """All so far, oldest first."""
    title: str = ""
    """What the words of breaches follow."""
    key: str | None = None
    """The log's own key of the metric that was judged."""


class Column(NamedTuple):
    """Finite numbers by ascending step."""

    steps: NDArray[np.int64]
    values: NDArray[np.float64]
    restarts: tuple[int, ...] = ()
    """First steps of the run's later segments."""


class Spell(NamedTuple):
    """A breach in a column, by places; one that comes back soon is the same breach."""

    first: int
    raised: int
    """Where it was certain."""
    cleared: int | None
    facts: Mapping[str, Any]
    """What its words have blanks for; `case` names other words than the usual ones."""


class Candidates(NamedTuple):
    """Where breaches may begin in a column, and what each of them is."""

    needs: int
    """Fewest points to judge."""
    places: Iterable[int]
    """Where a breach may begin, ascending: it does where none holds."""
    spell: Callable[[int], Spell]
    """Returns that which begins at a place."""
    cooldown: int = 0
    """Points within which a breach that comes back is the same one, so that a value that oscillates
    around its threshold is reported once.
    """
    now: Callable[[int], Mapping[str, Any]] = lambda _: {}
    """Returns what else is known of a breach that holds and began at a step."""


class Judged(NamedTuple):
    """What is found in a column, or in blocks."""

    words: Mapping[str, Any]
    """Those of its kind."""
    breaches: Sequence[Breach]
    """All, or the newest of very many."""
    needs: str | None
    """Why it cannot be judged, None where it can."""
    facts: dict[str, Any] | None
    """What is known of the breach that holds now, None without one."""


def breaches_of(
    kind: str,
    starts: Places,
    steps: Places,
    candidates: Candidates,
    unit: str = "",
) -> Judged:
    """Find all breaches.

    Args:
        kind: The name of its words.
        starts: The step from which a breach begins at each place.
        steps: The step at which it is known there.
        candidates: Where breaches may begin among these, and what each is.
        unit: That of the judged numbers.
    """
    words: Mapping[str, Any] = WORDS[kind]
    breaches: deque[Breach] = deque(maxlen=KEPT_BREACHES)
    facts, until = None, -1
    for place in candidates.places:
        if place <= until:
            continue
        spell = candidates.spell(place)
        case = words.get(spell.facts.get("case", ""), {})
        what = filled({**words, **case}["what"], spell.facts, unit)
        breach = Breach(int(starts[spell.first]), int(steps[spell.raised]), what)
        if breaches and spell.raised - until <= candidates.cooldown:
            breach = breaches.pop()._replace(cleared=None)
        if spell.cleared is None:
            breaches.append(breach)
            facts = {
                **spell.facts,
                **candidates.now(breach.since),
                "since": breach.since,
            }
            break
        until = spell.cleared
        breaches.append(breach._replace(cleared=int(steps[until])))
    seen, needs = len(steps), None
    if seen < candidates.needs:
        needs, facts = f"needs {candidates.needs} points, has {seen}", None
    return Judged(words, breaches, needs, facts)

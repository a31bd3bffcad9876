"""Tables of a comparison's statistics: differences from the baseline, and correlations."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from verl_tui.comparison.correlations import FEW, chance
from verl_tui.comparison.differences import Basis
from verl_tui.comparison.outcomes import KINDS
from verl_tui.text import one_line
from verl_tui.words import number, rounded

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from verl_tui.comparison.compare import Comparison
    from verl_tui.comparison.correlations import Association, Correlation
    from verl_tui.comparison.differences import Difference
    from verl_tui.comparison.statistics import Interval


_MOST_DIFFERENCES = 60
_MOST_CORRELATIONS = 15
_MOST_WEAK = 5
"""Most correlations that chance alone may reach, the strongest of them."""
_MOST_KEYS = 2
"""Most settings named in a row, and in a sentence three times as many."""


# -- differences -----------------------------------------------------------------------------------


def difference_table(comparison: Comparison) -> TextTable:
    """Return the differences that have an interval, figure by figure."""
    base = one_line(comparison.groups[0].name)
    heading = f"differences to {base}, with 95% intervals"
    order = list(KINDS)
    without = [
        difference
        for difference in comparison.differences
        if difference.interval is None
    ]
    found = sorted(
        (
            difference
            for difference in comparison.differences
            if difference.interval is not None
        ),
        key=lambda one: order.index(one.figure),
    )
    if not found:
        return TextTable(
            heading, note="no figure of two runs is known well enough for an interval"
        )
    rows = tuple(map(_difference, found[:_MOST_DIFFERENCES]))
    columns = (
        "figure",
        "of",
        "baseline",
        "value",
        "difference",
        "interval",
        "from",
        "verdict",
    )
    return TextTable(
        heading,
        columns,
        rows,
        " ".join(_on_intervals(found, without)),
        numbers=False,
        naming=2,
    )


def _difference(one: Difference) -> tuple[str, ...]:
    assert one.interval is not None
    basis = "last values"
    if one.basis is Basis.SEEDS:
        basis = f"{one.runs[0]} and {one.runs[1]} seeds"
    return (
        KINDS[one.figure].label,
        one_line(one.group),
        number(one.baseline),
        number(one.value),
        signed(one.change),
        between(one.interval),
        basis,
        one.verdict,
    )


def _on_intervals(
    found: Sequence[Difference], without: Sequence[Difference]
) -> Iterator[str]:
    if any(difference.basis is Basis.WITHIN_RUN for difference in found):
        yield (
            "Intervals from last values hold for these runs alone: they say nothing of other "
            "seeds, which often differ more."
        )
    by_reason: dict[str, dict[str, None]] = {}
    for one in without:
        by_reason.setdefault(one.reason, {})[KINDS[one.figure].label] = None
    for reason, labels in by_reason.items():
        yield f"No interval for {', '.join(labels)}: {reason}."
    if len(found) > FEW:
        yield (
            f"Of {len(found)} intervals, about {max(1, round(len(found) / 20))} would exclude "
            "zero by chance alone."
        )
    more = left_out(len(found) - _MOST_DIFFERENCES)
    if more:
        yield f"{more}."


def between(found: Interval) -> str:
    """Write the bounds of an interval."""
    return f"{signed(found.low)} to {signed(found.high)}"


def signed(value: float) -> str:
    """Write a difference with its sign."""
    return ("+" if value > 0 else "") + rounded(value)


# -- correlations ----------------------------------------------------------------------------------


def correlation_table(comparison: Comparison) -> TextTable:
    """Return the correlations beyond chance, else the strongest few."""
    heading = "which setting goes with which outcome"
    association = comparison.association
    clear = [
        correlation for correlation in association.found if correlation.beyond_chance
    ][:_MOST_CORRELATIONS]
    weak = [found for found in association.found if not found.beyond_chance]
    shown = [*clear, *weak][: max(_MOST_WEAK, len(clear))]
    note = " ".join(
        (*_on_correlations(association.found, shown), *_undecided(association, shown))
    )
    if not association.found:
        return TextTable(
            heading,
            note=f"{association.reason}. {note}" if note else association.reason,
        )
    rows = tuple(map(_correlation, shown))
    columns = ("setting", "outcome", "rank correlation", "groups", "beyond chance")
    return TextTable(heading, columns, rows, note)


def _correlation(one: Correlation) -> tuple[str, ...]:
    label = _listed(one.settings, _MOST_KEYS)
    if one.levels is not None:
        label += f" ({one_line(one.levels[0], LONGEST)} → {one_line(one.levels[1], LONGEST)})"
    return (
        label,
        KINDS[one.figure].label,
        f"{one.coefficient:+.2f}",
        str(one.groups),
        "yes" if one.beyond_chance else "no",
    )


def _on_correlations(
    found: Sequence[Correlation], shown: Sequence[Correlation]
) -> Iterator[str]:
    if not found:
        return
    yield "1 or -1: the outcome always rises or falls with the setting; 0: it does not."
    least = min(correlation.groups for correlation in shown)
    if least < FEW:
        yield (
            f"These are few: over {least} groups, chance alone reaches {chance(least):.2f} in one "
            "case of twenty."
        )
    if len(found) > FEW:
        lucky = max(1, round(len(found) / 20))
        yield f"Of {len(found)} pairs, about {lucky} would be beyond it by chance alone."
    more = left_out(len(found) - len(shown))
    if more:
        yield f"{more}."


def _undecided(association: Association, shown: Sequence[Correlation]) -> Iterator[str]:
    """Yield which of the settings shown cannot be separated, and which have no order."""
    keys = {key for correlation in shown for key in correlation.settings}
    for together in association.confounded:
        if keys.intersection(together):
            yield (
                f"{_listed(together, 3 * _MOST_KEYS)} change together: their effects cannot be "
                "told apart."
            )
    if association.unranked:
        listed = _listed(association.unranked, 3 * _MOST_KEYS)
        yield f"Not ranked, as more than two values have no order: {listed}."


def _listed(keys: Sequence[str], most: int) -> str:
    """Name settings by the last parts of their names, the first few of many."""
    more = len(keys) - most
    named = [one_line(_short_key(key)) for key in keys[:most]]
    return ", ".join([*named, f"{more} more"] if more > 0 else named)


def _short_key(key: str) -> str:
    return ".".join(key.split(".")[-2:])


# -- in a sentence ---------------------------------------------------------------------------------


def headlines(comparison: Comparison) -> Iterator[str]:
    """Yield a sentence on which runs reached most, for each outcome that can be compared."""
    if len(comparison.groups) < 2:
        return
    for id in ("final_reward", "final_loss", "last_validation"):
        if id in comparison.compared:
            yield _headline(id, comparison)


def _headline(id: str, comparison: Comparison) -> str:
    base = comparison.groups[0]
    better = comparison.compared[id]
    figures = {group.name: group.figures[id].value for group in comparison.groups}
    values = {name: value for name, value in figures.items() if value is not None}
    top = max(values, key=lambda name: values[name] * better)
    word = "highest" if better > 0 else "lowest"
    start = f"{word} {KINDS[id].label}: {one_line(top)}, {number(values[top])}"
    if top == base.name:
        return f"{start}, which is the baseline"
    found = _of(comparison.differences, id, top)
    return start if found is None else f"{start}, {_against(found)}"


def _of(differences: Iterable[Difference], id: str, group: str) -> Difference | None:
    return next(
        (
            difference
            for difference in differences
            if (difference.figure, difference.group) == (id, group)
        ),
        None,
    )


def _against(found: Difference) -> str:
    words = f"{signed(found.change)} against the baseline"
    if found.interval is None:
        return f"{words}, without an interval"
    only = "" if found.basis is Basis.SEEDS else ", for these runs alone"
    return f"{words} ({between(found.interval)}{only}): {found.verdict}"


UNKNOWN = "–"
LONGEST = 40
"""Most characters of a setting's value."""


class TextTable(NamedTuple):
    """A table, or a sentence in its place."""

    heading: str
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    note: str = ""
    """A sentence below it."""
    numbers: bool = True
    """True if all columns but the first are of numbers."""
    naming: int = 1
    """Number of first columns that name what a row is about."""


def left_out(count: int) -> str:
    """Say how many rows are not shown, nothing for none."""
    return f"{count:,} more in the JSON form" if count > 0 else ""

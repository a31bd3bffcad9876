"""Notes on a comparison: what it cannot say, and what to bear in mind when reading it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.comparison.differences import incomparable
from verl_tui.comparison.outcomes import FIGURES
from verl_tui.metrics import modern
from verl_tui.runs.views.alignment import Alignment
from verl_tui.runs.views.measures import differing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.comparison.outcomes import FigureKind, MeasuredRun
    from verl_tui.comparison.seeds import RunGroup

_NAMED = 5
"""Most runs named in a sentence."""
_LONGER = 1.25
"""Ratio of steps from which on runs count as unlike in length: heuristic."""


def notes(
    measured: Sequence[MeasuredRun],
    groups: Sequence[RunGroup],
    alignment: Alignment,
    count: int,
) -> Iterator[str]:
    """Yield a sentence for each thing that is not compared, or only with care.

    Args:
        measured: All runs.
        groups: The runs grouped by everything but the seed.
        alignment: The point up to which each run counts.
        count: Number of last logged values that means are made of.
    """
    if len(measured) == 1:
        yield (
            "a single run: there is nothing to hold it against; name several paths, or a "
            "directory of runs"
        )
    yield from _nothing_read(measured, alignment)
    if len(measured) > 1:
        yield from _nothing_common(measured)
    yield from _without_reward(measured, count)
    yield from _not_alike(measured)
    if alignment is Alignment.END:
        yield from _lengths(measured)
    yield from _groups(groups)
    yield from _unknown_settings(measured)


def some_names(measured: Sequence[MeasuredRun]) -> str:
    """Name runs, the first few of many."""
    found = [one.run.name for one in measured]
    more = len(found) - _NAMED
    return ", ".join(found if more <= 0 else [*found[:_NAMED], f"{more} more"])


def _nothing_read(
    measured: Sequence[MeasuredRun], alignment: Alignment
) -> Iterator[str]:
    empty = [run for run in measured if run.stop.step is None]
    if empty:
        what = "time" if alignment is Alignment.TIME else "step"
        yield f"not compared, as no {what} is known: {some_names(empty)}"


def _nothing_common(measured: Sequence[MeasuredRun]) -> Iterator[str]:
    """Say so where no metric is known of two runs."""
    shared = [kind for kind in FIGURES if kind.indicator and _known(kind, measured) > 1]
    if not shared:
        yield "no figure of this comparison is logged by two of the runs"


def _known(kind: FigureKind, measured: Sequence[MeasuredRun]) -> int:
    """Return how many runs log a figure."""
    found = (run.figures[kind.id] for run in measured)
    return sum(figure.value is not None and bool(figure.key) for figure in found)


def _without_reward(measured: Sequence[MeasuredRun], count: int) -> Iterator[str]:
    stepped = [run for run in measured if run.stop.step is not None]
    none = [one for one in stepped if "reward" not in one.run.indicators]
    if none:
        verb = "logs" if len(none) == 1 else "log"
        yield f"{some_names(none)} {verb} no reward"
    yield from _not_finite(stepped, count)


def _not_finite(stepped: Sequence[MeasuredRun], count: int) -> Iterator[str]:
    """Yield a note on the runs some or all of whose last rewards are left out."""
    final = [one for one in stepped if one.figures["final_reward"].not_finite]
    lost = [one for one in final if one.figures["final_reward"].value is None]
    if lost:
        of = some_names(lost)
        yield f"the last {count} rewards of {of} are not finite: there is no final reward"
    for one in final:
        figure = one.figures["final_reward"]
        if figure.value is not None:
            yield (
                f"{figure.not_finite} of the last {figure.size + figure.not_finite} rewards of "
                f"{one.run.name} are not finite and are left out"
            )


def _not_alike(measured: Sequence[MeasuredRun]) -> Iterator[str]:
    yield from differing([one.run for one in measured])
    said = set()
    for kind in FIGURES:
        reason = incomparable(kind, measured) if kind.indicator else ""
        if reason and reason not in said:
            said.add(reason)
            yield f"{reason}; runs that differ in this are not held against each other"
    yield from _spellings(measured)


def _spellings(measured: Sequence[MeasuredRun]) -> Iterator[str]:
    """Name the keys of rewards that are logged under several names."""
    by_key: dict[str, list[MeasuredRun]] = {}
    for run in measured:
        key = run.key("reward")
        if key is not None:
            by_key.setdefault(modern(key), []).append(run)
    if len(by_key) > 1:
        listed = "; ".join(
            f"{key} of {some_names(found)}" for key, found in by_key.items()
        )
        yield f"rewards are taken from several metrics: {listed}"


def _lengths(measured: Sequence[MeasuredRun]) -> Iterator[str]:
    ends = _unlike_ends(measured)
    if ends is not None:
        yield (
            f"the runs end at steps {ends[0]:,} to {ends[1]:,}, so that their last values "
            "are not of equally long trainings; --align step compares all at the same step"
        )


def _groups(groups: Sequence[RunGroup]) -> Iterator[str]:
    by_settings = [group for group in groups if group.by == "settings"]
    if by_settings:
        yield (
            "runs count as seeds of one kind where all their settings are the same but for seeds, "
            "names, places and dates"
        )
    for group in groups:
        yield from _unlike_lengths(group)
    by_names = [group.name for group in groups if group.by == "names"]
    if by_names:
        yield (
            f"the settings of {', '.join(by_names[:_NAMED])} are not known: its runs are taken "
            "together because their names differ only by the seed"
        )


def _unlike_lengths(group: RunGroup) -> Iterator[str]:
    ends = _unlike_ends(group.members)
    if ends is not None:
        yield (
            f"the runs of {group.name} end at steps {ends[0]:,} to {ends[1]:,}: their "
            "means are of trainings of unlike length"
        )


def _unlike_ends(measured: Sequence[MeasuredRun]) -> tuple[int, int] | None:
    """Return the first and the last step at which runs end, None where these are much alike."""
    steps = [run.stop.step for run in measured if run.stop.step is not None]
    if len(steps) < 2:
        return None
    least = min(steps)
    most = max(steps)
    if most > _LONGER * max(1, least):
        return least, most
    return None


def _unknown_settings(measured: Sequence[MeasuredRun]) -> Iterator[str]:
    unknown = [one for one in measured if not one.run.settings]
    if unknown and len(measured) > 1:
        yield f"no settings are known of {some_names(unknown)}"

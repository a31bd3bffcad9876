"""Runs that differ only by their seed, and by what a seed changes: names, paths, dates, ports."""

from __future__ import annotations

import math
import re
from os.path import commonprefix
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_tui.comparison.outcomes import Figure
from verl_tui.comparison.setting_differences import is_own
from verl_tui.comparison.statistics import deviation
from verl_tui.means import mean
from verl_tui.patterns import pattern
from verl_tui.runs.settings import number
from verl_tui.runs.views.identity import identity

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    from verl_tui.comparison.outcomes import MeasuredRun
    from verl_tui.runs.run import Run

_WITH_SEED = pattern(r"(?:^|(?<=[^A-Za-z]))seed[-_=. ]?\d+", re.IGNORECASE)
_DATE = pattern(
    r"(?:19|20)\d\d[-_.]?\d\d[-_.]?\d\d(?:[-_ T]?\d\d[-_.:]?\d\d(?:[-_.:]?\d\d)?)?"
)
_SPELLED = 3
"""Most runs that the name of a group spells out."""
_SHORT = 2
"""Characters that names share by chance."""
_FEWEST_SETTINGS = 3
"""Settings below which nothing is known of how a run trains: heuristic."""
_KEPT_PARTS = 2
"""Last parts of a path that say what it leads to: `gsm8k/train.parquet`."""


class RunGroup(NamedTuple):
    """Runs of the same settings, or one run that has no like."""

    name: str
    members: tuple[MeasuredRun, ...]
    by: str | None
    """What says that they belong together: `settings`, `names`; None for a run alone."""
    figures: Mapping[str, Figure]
    """Means over the runs, with their standard deviation; the figures themselves of one run."""

    def values(self, figure: str) -> list[float]:
        """Return the values of a figure in the runs that have it."""
        found = (member.figures[figure].value for member in self.members)
        return [value for value in found if value is not None]


def grouped(measured: Sequence[MeasuredRun]) -> tuple[RunGroup, ...]:
    """Return the runs by what they have in common beside the seed, in the order of the first of
    each.
    """
    by_recipe: dict[Hashable, list[MeasuredRun]] = {}
    for at, one in enumerate(measured):
        by_recipe.setdefault(_recipe(one.run, at), []).append(one)
    found: list[RunGroup] = []
    taken = {one.run.name for one in measured}
    for recipe, members in by_recipe.items():
        first = members[0]
        if len(members) == 1:
            group = RunGroup(first.run.name, (first,), None, first.figures)
        else:
            name = _name([member.run.name for member in members], taken)
            taken.add(name)
            by = "names" if isinstance(recipe, str) else "settings"
            figures = {
                id: _mean([one.figures[id] for one in members]) for id in first.figures
            }
            group = RunGroup(name, tuple(members), by, figures)
        found.append(group)
    return tuple(found)


def _recipe(run: Run, at: int) -> Hashable:
    """Return what runs that differ by their seed have in common; something of the run's own where
    too little is known.
    """
    settings = frozenset(_training_settings(run))
    if len(settings) >= _FEWEST_SETTINGS:
        return settings
    stem = _WITH_SEED.sub("seed*", run.name)
    return stem if stem != run.name else at


def _training_settings(run: Run) -> Iterator[tuple[str, Hashable]]:
    """Yield the settings that say how a run trains, in a form in which equal ones are equal."""
    known = identity(run)
    own = [run.name, *([known.experiment.value] if known.experiment else ())]
    for key, value in run.settings.items():
        if known.model is not None and key == known.model.key:
            yield key, known.model.value
        elif not is_own(key):
            yield key, _plain(value, own)


def _plain(value: Any, own: Sequence[str]) -> Hashable:
    """Return a value without what differs between runs of one kind: folders, names, dates."""
    found = number(value)
    if found is not None:
        return "nan" if math.isnan(found) else found
    if isinstance(value, bool) or value is None:
        return type(value).__name__, value
    text = str(value)
    for name in own:
        text = text.replace(name, "*") if len(name) > _SHORT else text
    text = _DATE.sub("*", _WITH_SEED.sub("*", text))
    return "/".join(text.split("/")[-_KEPT_PARTS:])


def _name(names: Sequence[str], taken: set[str]) -> str:
    """Return a name for several runs that no other bears: what they share without the seed."""
    stems = {_WITH_SEED.sub("", name).strip("-_./ ") for name in names}
    stem = commonprefix([*stems])  # noqa: RUF071 - of letters is what is wanted
    if stem.count("(") > stem.count(")"):
        stem = stem[: stem.rindex("(")]
    stem = stem.rstrip("-_./ ")
    if stem and stem not in taken and (len(stems) == 1 or len(stem) > _SHORT):
        return stem
    if len(names) <= _SPELLED:
        return ", ".join(names)
    return f"{names[0]} and {len(names) - 1} more"


def _mean(figures: Sequence[Figure]) -> Figure:
    """Return the mean over runs; without a value where units are not the same."""
    known = [(one, one.value) for one in figures if one.value is not None]
    if len({one.unit for one, _ in known}) != 1:
        return Figure()
    values = [value for _, value in known]
    outside = [one.outside_band for one, _ in known]
    return known[0][0]._replace(
        value=mean(values),
        sd=deviation(values),
        n=len(values),
        not_finite=sum(one.not_finite for one, _ in known),
        step=None,
        outside_band=None if None in outside else any(outside),
    )

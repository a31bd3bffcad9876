"""Runs that differ only by their seed, and by what a seed changes: names, paths, dates, ports."""

from __future__ import annotations

import math
import re
from functools import lru_cache
from os.path import commonprefix
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_tui.comparison.outcomes import Figure
from verl_tui.comparison.statistics import deviation
from verl_tui.means import mean
from verl_tui.patterns import NamePattern, pattern
from verl_tui.runs.settings import number
from verl_tui.runs.views.identity import identity, is_known

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    from verl_tui.comparison.outcomes import MeasuredRun
    from verl_tui.runs.run import Run

_SEED = NamePattern(r"(?:.*[_./])?(?:\w*seed\w*|random_state)", re.IGNORECASE)
"""Settings that are a seed."""
_OWN = NamePattern(
    r"(?:.*[_./])?(?:experiment_?name|exp_name|run_name|run_id|run_group|group_name"
    r"|project(?:_name)?|job_?(?:name|id)"
    r"|wandb_\w+|_wandb|output_(?:dir|path|file|name)|save_(?:dir|path)"
    r"|default_(?:local|hdfs)_dir|(?:rollout|validation)_data_dir|(?:ckpt|checkpoint)_(?:dir|path)"
    r"|cache_dir|work_?dir"
    r"|root_dir|tmp_?dir|resume_from\w*|local_dir"
    r"|timestamp|date|datetime|start_time|created_at|host|hostname|ip|port|\w+_port|address"
    r"|\w+_addr|pid|uuid|user"
    r"|username|tags?|notes|description|local_rank|cuda_visible_devices|logger|log_\w+|logging_\w+"
    r"|report_to|save_freq|save_steps)(?:[_./].*)?|wandb\..*",
    re.IGNORECASE,
)
"""Settings that belong to one run alone: its name, where it runs, what it writes and where to."""
_WITH_SEED = pattern(r"(?:^|(?<=[^A-Za-z]))seed[-_=. ]?\d+", re.IGNORECASE)
_DATE = pattern(
    r"(?:19|20)\d\d[-_.]?\d\d[-_.]?\d\d(?:[-_ T]?\d\d[-_.:]?\d\d(?:[-_.:]?\d\d)?)?"
)
_KEYS = 10_000
"""Names of settings whose meaning is remembered: those of many runs are mostly the same."""
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
    by: str
    """What says that they belong together: `settings`, `names`, or nothing for a run alone."""
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
        name = members[0].run.name
        by = ""
        if len(members) > 1:
            name = _name([member.run.name for member in members], taken)
            taken.add(name)
            by = "names" if isinstance(recipe, str) else "settings"
        figures = _together([member.figures for member in members])
        found.append(RunGroup(name, tuple(members), by, figures))
    return tuple(found)


@lru_cache(_KEYS)
def is_seed(key: str) -> bool:
    """Return whether a setting is a seed."""
    return _SEED.fullmatch(key) is not None


@lru_cache(_KEYS)
def is_own(key: str) -> bool:
    """Return whether a setting belongs to one run alone: its seed, its name, where it writes."""
    return is_seed(key) or (not is_known(key) and _OWN.fullmatch(key) is not None)


def _recipe(run: Run, at: int) -> Hashable:
    """Return what runs that differ by their seed have in common; something of the run's own where
    too little is known.
    """
    settings = dict(_training_settings(run))
    if len(settings) >= _FEWEST_SETTINGS:
        return frozenset(settings.items())
    stem = _WITH_SEED.sub("seed*", run.name)
    return stem if stem != run.name else at


def _training_settings(run: Run) -> Iterator[tuple[str, Hashable]]:
    """Yield the settings that say how a run trains, in a form in which equal ones are equal."""
    known = identity(run)
    own = [run.name]
    if known.experiment is not None:
        own.append(known.experiment.value)
    model = known.model
    for key, value in run.settings.items():
        if is_own(key):
            continue
        if model is not None and key == model.key:
            yield key, model.value
        else:
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
        text = text.replace(name, "*") if len(name) > 2 else text
    text = _DATE.sub("*", _WITH_SEED.sub("*", text))
    if "/" in text:
        return "/".join(text.split("/")[-_KEPT_PARTS:])
    return text


def _name(names: Sequence[str], taken: set[str]) -> str:
    """Return a name for several runs that no other bears."""
    stems = {_WITH_SEED.sub("", name).strip("-_./ ") for name in names}
    stem = stems.pop() if len(stems) == 1 else _shared_start(names)
    if stem not in taken and (len(stem) > _SHORT or (stem and not stems)):
        return stem
    if len(names) <= _SPELLED:
        return ", ".join(names)
    return f"{names[0]} and {len(names) - 1} more"


def _shared_start(names: Sequence[str]) -> str:
    start = commonprefix(names)  # noqa: RUF071 - of letters is what is wanted
    if start.count("(") > start.count(")"):
        start = start[: start.rindex("(")]
    return start.rstrip("-_./ ")


def _together(figures: Sequence[Mapping[str, Figure]]) -> Mapping[str, Figure]:
    if len(figures) == 1:
        return figures[0]
    return {id: _mean([one[id] for one in figures]) for id in figures[0]}


def _mean(figures: Sequence[Figure]) -> Figure:
    """Return the mean over runs; without a value where units or keys are not the same."""
    known = [figure for figure in figures if figure.value is not None]
    if len({figure.unit for figure in known}) != 1:
        return Figure()
    values = [figure.value for figure in known if figure.value is not None]
    first = known[0]
    outside = [figure.outside for figure in known]
    return Figure(
        value=mean(values),
        spread=deviation(values),
        size=len(values),
        not_finite=sum(figure.not_finite for figure in known),
        key=first.key,
        unit=first.unit,
        outside=None if None in outside else any(outside),
    )

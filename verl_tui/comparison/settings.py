"""Settings in which runs differ, and the runs that differ by their seed alone and by what a seed
changes: names, paths, dates, ports.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from os.path import commonprefix
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_tui.comparison.outcomes import Figure, MeasuredRun
from verl_tui.comparison.statistics import deviation
from verl_tui.means import gathered, mean
from verl_tui.patterns import NamePattern, pattern
from verl_tui.runs.settings import number
from verl_tui.runs.views.identity import identity, is_known

if TYPE_CHECKING:
    from verl_tui.runs.run import Run


# -- differences -----------------------------------------------------------------------------------


_NAMING = NamePattern(
    r"(?:.*[_.])?(?:path|dir|dirs|files?|folder|name|names|id|ids|uuid|host|hostname|port|address"
    r"|url|uri|user"
    r"|timestamp|date|tags?|notes|git|commit|_wandb|version)(?:[_.].*)?|wandb\..*"
)
"""Settings that differ between any two runs and explain nothing."""
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


class Absent:
    """Stands for the value of a setting that a run does not state."""


ABSENT = Absent()


class DifferingSetting(NamedTuple):
    """A setting, or a fact that settings state, with its value in each run."""

    label: str
    values: tuple[Any, ...]
    """One for each run, `ABSENT` where it states none."""
    keys: Mapping[str, str]
    """Run -> the setting that states it."""


class ComparedSetting(NamedTuple):
    """A setting in which several runs differ."""

    key: str
    values: tuple[Any, ...]
    """One for each run, `ABSENT` where it states none."""
    silent: bool
    """True if it differs only in that some runs do not state it."""
    naming: bool
    """True if it only names a place or the run itself."""


def differing_facts(runs: Sequence[Run]) -> list[DifferingSetting]:
    """Return the identity facts in which runs differ, under one label for all frameworks."""
    known = [identity(run) for run in runs]
    found = []
    for label in dict.fromkeys(chain.from_iterable(known)):
        stated = [facts.get(label) for facts in known]
        values = tuple(fact.value if fact else ABSENT for fact in stated)
        if len({*values}) > 1:
            pairs = zip(runs, stated, strict=True)
            keys = {run.name: fact.key for run, fact in pairs if fact}
            found.append(DifferingSetting(label, values, keys))
    return found


def differing_settings(runs: Sequence[Run]) -> list[DifferingSetting]:
    """Return the facts that differ, then the settings that differ and that all runs state."""
    facts = chain.from_iterable(identity(run).values() for run in runs)
    stated = set(chain.from_iterable(fact.key.split(", ") for fact in facts))
    return differing_facts(runs) + [
        DifferingSetting(row.key, row.values, {run.name: row.key for run in runs})
        for row in difference([run.settings for run in runs])
        if not (row.naming or row.silent or row.key in stated)
    ]


def difference(runs: Sequence[Mapping[str, Any]]) -> list[ComparedSetting]:
    """Return the settings in which runs differ, given flat settings for each run: those people
    compare first, then others; those that only some runs state come after these, mere names last.
    """
    rows: list[ComparedSetting] = []
    for key in dict.fromkeys(chain.from_iterable(runs)):
        values = tuple(settings.get(key, ABSENT) for settings in runs)
        stated = [value for value in values if value is not ABSENT]
        agree = all(alike(stated[0], value) for value in stated)
        if not agree or len(stated) < len(values):
            rows.append(ComparedSetting(key, values, agree, is_naming(key)))
    return sorted(
        rows, key=lambda row: (row.naming, row.silent, not is_known(row.key), row.key)
    )


def is_naming(key: str) -> bool:
    """Return whether a setting only names something: a place, the run, a moment."""
    return not is_known(key) and _NAMING.fullmatch(key.lower()) is not None


def is_seed(key: str) -> bool:
    """Return whether a setting is a seed."""
    return _SEED.fullmatch(key) is not None


@lru_cache(10_000)  # those of many runs are mostly the same
def is_own(key: str) -> bool:
    """Return whether a setting belongs to one run alone: its seed, its name, where it writes."""
    return is_seed(key) or (not is_known(key) and _OWN.fullmatch(key) is not None)


def alike(one: object, other: object) -> bool:
    """Return whether two values mean the same: `1e-6` as text, as YAML reads it, is 1e-06."""
    if any(value is ABSENT or isinstance(value, bool) for value in (one, other)):
        return one is other
    left, right = number(one), number(other)
    if left is not None and right is not None:
        return left == right or (math.isnan(left) and math.isnan(right))
    return one == other


# -- seeds -----------------------------------------------------------------------------------------


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
    """Runs with the same settings, or one run whose settings no other has."""

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
    by_recipe = gathered((_recipe(one.run, at), one) for at, one in enumerate(measured))
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
    experiment, model = known.get("experiment"), known.get("model")
    own = [run.name, *([experiment.value] if experiment else ())]
    for key, value in run.settings.items():
        if model and key == model.key:
            yield key, model.value
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
    """Return a name for several runs that no others have: what they share without the seed."""
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

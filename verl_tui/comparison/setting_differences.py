"""Settings in which runs differ, those that people compare first at the top."""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_tui.patterns import NamePattern
from verl_tui.runs.settings import number
from verl_tui.runs.views.identity import identity, is_known

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from verl_tui.runs.run import Run
    from verl_tui.runs.views.identity import Fact


class DifferingSetting(NamedTuple):
    """A setting, or a fact that settings state, with its value in each run."""

    label: str
    values: tuple[Any, ...]
    """One for each run, `ABSENT` where it states none."""
    keys: Mapping[str, str]
    """Run -> the setting that states it."""


def differing_facts(runs: Sequence[Run]) -> list[DifferingSetting]:
    """Return the identity facts in which runs differ, under one label for all frameworks."""
    by_label: defaultdict[str, dict[str, Fact]] = defaultdict(dict)
    for run in runs:
        for fact in identity(run).facts:
            by_label[fact.label][run.name] = fact
    found = []
    for label, facts in by_label.items():
        stated = [facts.get(run.name) for run in runs]
        values = tuple(ABSENT if fact is None else fact.value for fact in stated)
        if not all(alike(values[0], value) for value in values):
            keys = {name: fact.key for name, fact in facts.items()}
            found.append(DifferingSetting(label, values, keys))
    return found


def differing_settings(runs: Sequence[Run]) -> list[DifferingSetting]:
    """Return the facts that differ, then the settings that differ and that all runs state."""
    facts = chain.from_iterable(identity(run).facts for run in runs)
    stated = set(chain.from_iterable(fact.key.split(", ") for fact in facts))
    found = differing_facts(runs)
    for row in difference([run.settings for run in runs]):
        if not (row.naming or row.silent or row.key in stated):
            keys = {run.name: row.key for run in runs if row.key in run.settings}
            found.append(DifferingSetting(row.key, row.values, keys))
    return found


_NAMING = NamePattern(
    r"(?:.*[_.])?(?:path|dir|dirs|files?|folder|name|names|id|ids|uuid|host|hostname|port|address"
    r"|url|uri|user"
    r"|timestamp|date|tags?|notes|git|commit|_wandb|version)(?:[_.].*)?|wandb\..*"
)
"""Settings that differ between any two runs and explain nothing."""


class Absent:
    """Stands for the value of a setting that a run does not state."""

    def __repr__(self) -> str:
        return "absent"


ABSENT = Absent()


class ComparedSetting(NamedTuple):
    """A setting in which several runs differ."""

    key: str
    values: tuple[Any, ...]
    """One for each run, `ABSENT` where it states none."""
    silent: bool
    """True if it differs only in that some runs do not state it."""
    naming: bool
    """True if it only names a place or the run itself."""


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
    return sorted(rows, key=_by_interest)


def _by_interest(row: ComparedSetting) -> tuple[bool, bool, bool, str]:
    return row.naming, row.silent, not is_known(row.key), row.key


def is_naming(key: str) -> bool:
    """Return whether a setting only names something: a place, the run, a moment."""
    return not is_known(key) and _NAMING.fullmatch(key.lower()) is not None


def alike(one: object, other: object) -> bool:
    """Return whether two values mean the same: `1e-6` as text, as YAML reads it, is 1e-06."""
    if any(value is ABSENT or isinstance(value, bool) for value in (one, other)):
        return one is other
    left = number(one)
    right = number(other)
    if left is not None and right is not None:
        return left == right or (math.isnan(left) and math.isnan(right))
    return one == other

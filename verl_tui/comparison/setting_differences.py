"""Settings in which runs differ, those that people compare first at the top."""

from __future__ import annotations

import math
from collections import defaultdict
from functools import lru_cache
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
        values = tuple(
            facts[run.name].value if run.name in facts else ABSENT for run in runs
        )
        if not all(alike(values[0], value) for value in values):
            keys = {name: fact.key for name, fact in facts.items()}
            found.append(DifferingSetting(label, values, keys))
    return found


def differing_settings(runs: Sequence[Run]) -> list[DifferingSetting]:
    """Return the facts that differ, then the settings that differ and that all runs state."""
    return _differing(_Configs(runs))


class _Configs:
    """Runs as a cache key, equal until a setting of one of them changes."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs = runs
        self._key = tuple((id(run), run.config.revision) for run in runs)

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Configs) and self._key == other._key


@lru_cache(4)
def _differing(configs: _Configs) -> list[DifferingSetting]:
    runs = configs.runs
    facts = chain.from_iterable(identity(run).facts for run in runs)
    stated = set(chain.from_iterable(fact.key.split(", ") for fact in facts))
    rows = difference([run.settings for run in runs])
    found = differing_facts(runs)
    for row in rows:
        if row.naming or row.silent or row.key in stated:
            continue
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
    """One setting in several runs."""

    key: str
    values: tuple[Any, ...]
    """One for each run, `ABSENT` where it states none."""
    differs: bool
    silent: bool
    """True if it differs only in that some runs do not state it."""
    naming: bool
    """True if it only names a place or the run itself."""


def difference(
    runs: Sequence[Mapping[str, Any]], *, everything: bool = False
) -> list[ComparedSetting]:
    """Return the settings in which runs differ: those people compare first, then others.

    Settings that only some runs state come after these, mere names last.

    Args:
        runs: Flat settings, one mapping for each run.
        everything: Whether to return those that are the same as well.
    """
    rows: list[ComparedSetting] = []
    for key in dict.fromkeys(chain.from_iterable(runs)):
        values = tuple(settings.get(key, ABSENT) for settings in runs)
        rows.append(_row(key, values))
    chosen = [row for row in rows if row.differs or everything]
    return sorted(chosen, key=_by_interest)


def _by_interest(row: ComparedSetting) -> tuple[bool, bool, bool, str]:
    return row.naming, row.silent, not is_known(row.key), row.key


def _row(key: str, values: tuple[Any, ...]) -> ComparedSetting:
    stated = [value for value in values if value is not ABSENT]
    silent = len(stated) < len(values) and all(
        alike(stated[0], value) for value in stated
    )
    differs = silent or any(not alike(values[0], value) for value in values[1:])
    return ComparedSetting(key, values, differs, silent, is_naming(key))


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

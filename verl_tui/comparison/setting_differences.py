"""Settings in which runs differ, those that people compare first at the top."""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_tui.runs.views.identity import identity
from verl_tui.runs.views.settings_diff import ABSENT, alike, difference

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

"""Settings in which runs differ, those that people compare first at the top."""

from __future__ import annotations

import math
import re
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_tui.patterns import NamePattern
from verl_tui.runs.settings import number
from verl_tui.runs.views.identity import identity, is_known

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from verl_tui.runs.run import Run

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
    known = [{fact.label: fact for fact in identity(run).facts} for run in runs]
    found = []
    for label in dict.fromkeys(chain.from_iterable(known)):
        stated = [facts.get(label) for facts in known]
        values = tuple(ABSENT if fact is None else fact.value for fact in stated)
        if len({*values}) > 1:
            pairs = zip(runs, stated, strict=True)
            keys = {run.name: fact.key for run, fact in pairs if fact is not None}
            found.append(DifferingSetting(label, values, keys))
    return found


def differing_settings(runs: Sequence[Run]) -> list[DifferingSetting]:
    """Return the facts that differ, then the settings that differ and that all runs state."""
    facts = chain.from_iterable(identity(run).facts for run in runs)
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

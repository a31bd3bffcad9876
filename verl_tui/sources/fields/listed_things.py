"""Tells records of one thing after the other (tasks of a benchmark, questions of a data set) from
those of a training's steps.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from verl_tui.patterns import NamePattern, pattern
from verl_tui.sources.fields.jsonl import number
from verl_tui.sources.fields.steps import (
    TRAINED,
    is_sure_name,
    stated_step,
    step_fields,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_NO_THING = NamePattern(
    r"(?:.*[/_.])?(?:time|timestamp|date|datetime|elapsed|eta|remaining|duration|message|msg|log"
    r"|line)"
)
"""Fields whose texts differ from record to record though they name nothing."""
_MEASURED = pattern(r"\s*[-+.]?\d.*|\s*[-+]?(?:nan|inf(?:inity)?)\s*", re.IGNORECASE)
"""Texts that are numbers, durations, dates."""
_NUMBER_OF = NamePattern(r"(?:.*_)?(?:id|idx|index)")
_SPOKEN = NamePattern(
    r"(?:.*[/_.])?(?:prompt|question|problem|instruction|response|answer|output|completion"
    r"|prediction|generation|generated_text|solution|content|trajectory)s?"
)
"""Fields that hold what somebody says."""


def listed_thing(records: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the field that names another thing in each of the first records of a file, where these
    are no steps. None where there is none.
    """
    if len(records) < 2 or _rise(records):
        return None
    steps = {
        step if is_sure_name(name) else None for step, name in map(_stated, records)
    }
    names = list(records[0])
    if steps != {None}:
        # Several texts of one step are its samples; several figures may be one record.
        names = list(filter(_SPOKEN.fullmatch, names))
        if len(steps) > 1 or len(records) == 2:
            return None
    return next((name for name in names if _differs(name, records)), None)


def _stated(record: Mapping[str, Any]) -> tuple[int | None, str]:
    """Return the step that a record states, and the name of its field."""
    try:
        return stated_step(record, step_fields(record))[:2]
    except ValueError:
        return None, ""


def _rise(records: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether records have an epoch, or count upwards in a field that may be a step."""
    for record in records:
        if number(record.get(step_fields(record).epoch or "", "")) is not None:
            return True
    counts = [step for step, _ in map(_stated, records) if step is not None]
    return len(records) == len(counts) and counts == sorted(set(counts))


def _differs(name: str, records: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a field names another thing in each record, by a text or a number."""
    values = [record.get(name) for record in records]
    kinds = set(map(type, values))
    if kinds == {str}:
        names = not _NO_THING.fullmatch(name.lower())
        names = names and not any(map(_MEASURED.fullmatch, map(str, values)))
    else:
        trained = any(not TRAINED.isdisjoint(record) for record in records)
        names = kinds == {int} and not trained and bool(_NUMBER_OF.fullmatch(name))
    return names and len(set(values)) == len(values)

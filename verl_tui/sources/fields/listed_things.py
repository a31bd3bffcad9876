"""Tells records of one thing after the other (tasks of a benchmark, questions of a data set) from
those of a training's steps.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from verl_tui.patterns import NamePattern, pattern
from verl_tui.sources.fields.jsonl import number
from verl_tui.sources.fields.spellings import ending
from verl_tui.sources.fields.steps import (
    TRAINED,
    is_sure_name,
    stated_step,
    step_fields,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_NO_THING = ending("no_thing")
"""Fields whose texts differ from record to record though they name nothing."""
_MEASURED = pattern(r"\s*[-+.]?\d.*|\s*[-+]?(?:nan|inf(?:inity)?)\s*", re.IGNORECASE)
"""Texts that are numbers, durations, dates."""
_NUMBER_OF = NamePattern(r"(?:.*_)?(?:id|idx|index)")
_SPOKEN = ending("spoken")
"""Fields that hold what somebody says."""


def listed_thing(records: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the field that names another thing in each of the first records of a file, where these
    are no steps. None where there is none.
    """
    places = list(map(_place, records))
    has_epoch = any(place is None for place in places)
    steps = [place for place in places if place is not None]
    if len(records) < 2 or has_epoch or _rise([step for step, _ in steps]):
        return None
    names = _names(list(records[0]), steps)
    return next((name for name in names if _differs(name, records)), None)


def _names(fields: list[str], steps: Sequence[tuple[int | None, str]]) -> Iterable[str]:
    """Return the fields that may name a thing in records of some steps."""
    sure = {step if is_sure_name(name) else None for step, name in steps}
    if sure == {None}:
        return fields
    # Several texts of one step are its samples; several figures may be one record.
    repeats = len(sure) == 1 and len(steps) > 2
    return filter(_SPOKEN.fullmatch, fields) if repeats else ()


def _place(record: Mapping[str, Any]) -> tuple[int | None, str] | None:
    """Return the step that a record states, and the field that does; None for an epoch."""
    fields = step_fields(record)
    if number(record.get(fields.epoch or "", "")) is not None:
        return None
    try:
        return stated_step(record, fields)[:2]
    except ValueError:
        return None, ""


def _rise(steps: Sequence[int | None]) -> bool:
    """Return whether all records count upwards in a field that may be a step."""
    known = [step for step in steps if step is not None]
    return len(known) == len(steps) and known == sorted(set(known))


def _differs(name: str, records: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a field names another thing in each record, by a text or a number."""
    values = [record.get(name) for record in records]
    kinds = set(map(type, values))
    if kinds == {str}:
        measured = any(map(_MEASURED.fullmatch, map(str, values)))
        names = not (measured or _NO_THING.fullmatch(name))
    else:
        trained = any(not TRAINED.isdisjoint(record) for record in records)
        names = kinds == {int} and not trained and bool(_NUMBER_OF.fullmatch(name))
    return names and len(set(values)) == len(values)

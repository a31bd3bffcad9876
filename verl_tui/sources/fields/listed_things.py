"""Tells records of one thing after the other (tasks of a benchmark, questions of a data set) from
those of a training's steps.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

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
    from collections.abc import Iterable, Iterator, Mapping, Sequence

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
    places = list(_places(records))
    if len(records) < 2 or any(place.has_epoch for place in places):
        return None
    names = _names(list(records[0]), places)
    return next((name for name in names if _differs(name, records)), None)


def _names(fields: Sequence[str], places: Sequence[_Place]) -> Sequence[str]:
    """Return the fields that may name a thing in records of some places."""
    if _rise([place.step for place in places]):
        return ()
    steps = {place.step if is_sure_name(place.name) else None for place in places}
    if steps == {None}:
        return fields
    # Several texts of one step are its samples; several figures may be one record.
    repeats = len(steps) == 1 and len(places) > 2
    return list(filter(_SPOKEN.fullmatch, fields)) if repeats else ()


class _Place(NamedTuple):
    """What a record states of its place in a training."""

    step: int | None
    name: str
    """The field that states the step."""
    has_epoch: bool


def _places(records: Iterable[Mapping[str, Any]]) -> Iterator[_Place]:
    keys = None
    for record in records:
        if record.keys() != keys:
            keys = record.keys()
            fields = step_fields(keys)
        has_epoch = number(record.get(fields.epoch or "", "")) is not None
        try:
            step, name, _ = stated_step(record, fields)
        except ValueError:
            step, name = None, ""
        yield _Place(step, name, has_epoch)


def _rise(steps: Sequence[int | None]) -> bool:
    """Return whether all records count upwards in a field that may be a step."""
    known = [step for step in steps if step is not None]
    return len(known) == len(steps) and known == sorted(set(known))


def _differs(name: str, records: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a field names another thing in each record, by a text or a number."""
    values = [record.get(name) for record in records]
    kinds = set(map(type, values))
    if kinds == {str}:
        names = not _NO_THING.fullmatch(name)
        names = names and not any(map(_MEASURED.fullmatch, map(str, values)))
    else:
        trained = any(not TRAINED.isdisjoint(record) for record in records)
        names = kinds == {int} and not trained and bool(_NUMBER_OF.fullmatch(name))
    return names and len(set(values)) == len(values)

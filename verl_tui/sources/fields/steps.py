"""Finds the step of a record under any trainer's name for it; counts records that state none, and
tells those of one thing after the other (tasks of a benchmark, questions of a data set) from those
of a training's steps.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from verl_tui.patterns import pattern
from verl_tui.sources.fields.jsonl import (
    Fields,
    ending,
    integer,
    names,
    number,
    written_number,
)
from verl_tui.words import counted

_SURE = names("step")
_RANKS = {name: rank for rank, name in enumerate((*_SURE, *names("unsure_step")))}
_TOTALS = names("total")
TRAINED = frozenset(names("trained"))
_PARENT = pattern(
    r"(?:train|training|trainer|progress|state|metrics|data|eval|time)[/._]"
)
"""Groups in which trainers log their step: `train/global_step`, `trainer/global_step`."""
_OF_TOTAL = pattern(rf"(.+)/(?:{'|'.join(_TOTALS)})")
"""ms-swift: `"global_step/max_steps": "10/438"`."""
TRAINERS = "global_step"
"""Every name of the trainer's step among the metrics that a tracker gets contains it: TRL and
Hugging Face, OpenRLHF, Lightning, verl.
"""
_PAIR = pattern(r"\s*(\d{1,17})\s*/\s*(\d{1,17})\s*")


class StepFields(NamedTuple):
    """The fields of a record that state its place in the training."""

    steps: tuple[str, ...]
    """Fields that may state the step, the surest first."""
    total: str | None
    """The field that states the total of steps."""
    epoch: str | None

    @property
    def no_metrics(self) -> frozenset[str]:
        """The step and total that are no metrics; verl's `training/global_step` is one as well."""
        ungrouped = (name for name in self.steps if "/" not in name)
        step = next(ungrouped, next(iter(self.steps), None))
        return frozenset(filter(None, (step, self.total)))


def step_fields(fields: Iterable[str]) -> StepFields:
    """Return the fields of a record that state its place in the training; of several alike the
    shortest comes first, an evaluation's last, in whatever order they stand.

    Args:
        fields: Its fields; nested ones with `/` between the names.
    """
    plain = {name: _plain(name) for name in fields}
    steps = sorted(
        (name for name in plain if plain[name] in _RANKS),
        key=lambda name: (_RANKS[plain[name]], "eval" in name, len(name), name),
    )
    total = next((name for name in plain if plain[name] in _TOTALS), None)
    return StepFields(
        tuple(steps),
        total,
        next((name for name in plain if plain[name] == "epoch"), None),
    )


@lru_cache(maxsize=4096)
def _plain(name: str) -> str:
    """Return the name by which a field is looked up: without its group and a `/max_steps`."""
    name = name.strip().lower().replace("-", "_").replace(" ", "_")
    if found := _OF_TOTAL.fullmatch(name):
        name = found[1]
    return (
        name[found.end() :]
        if name not in _RANKS and (found := _PARENT.match(name))
        else name
    )


def stated_step(
    record: Fields, fields: StepFields
) -> tuple[int | None, str, int | None]:
    """Return the step that a record states, the name of its field, and the total of steps.

    Raises:
        ValueError: It states a step that is too large.
    """
    total = integer(record[fields.total]) if fields.total is not None else None
    for name in fields.steps:
        value = record.get(name)
        if isinstance(value, str) and (pair := _PAIR.fullmatch(value)):
            return int(pair[1]), name, int(pair[2])
        step = whole(value, name)
        if step is not None:
            return step, name, total
    return None, "", total


def whole(value: object, name: str) -> int | None:
    """Return a step, None where the value is none.

    Raises:
        ValueError: It is too large.
    """
    if isinstance(value, int | float) and abs(value) >= 2**62:
        raise ValueError(f'"{name}" is too large')
    return integer(value)


def is_sure_name(name: str) -> bool:
    """Return True if a field of that name certainly is a step."""
    return _plain(name) in _SURE


class TrackerStep:
    """The step of one record after the other where a tracker counts its own, mostly its calls, and
    only some records have the trainer's among their metrics: that holds until the next one.
    """

    def __init__(self) -> None:
        self.step: int | None = None
        """That of the last record; None where it is unknown."""
        self._stated = False
        """True once a record has stated the trainer's."""

    def reach(self, record: Fields, own: object) -> bool:
        """Note the step of a record; return False if it lacks the trainer's, which others state.

        Args:
            record: Its fields; nested ones with `/` between the names.
            own: The tracker's own step.

        Raises:
            ValueError: It states a step that is too large.
        """
        fields = step_fields(key for key in record if TRAINERS in key)
        step = stated_step(record, fields)[0]
        if step is None and self._stated:
            return False
        self._stated = step is not None
        self.step = whole(own, "_step") if step is None else step
        return True


class StepTracker:
    """Finds the step of one record after the other, with memory for those that state none."""

    def __init__(self) -> None:
        self.total: int | None = None
        """Total of steps that a record stated last."""
        self.step = 0
        """Step of the last record."""
        self.known = False
        """True once a record has stated its step."""
        self._counted = 0
        """Records that state none."""
        self._seen: set[str] = set()
        """Metrics of the last step that was counted, or whose field may be none."""
        self._epoch: float | None = None
        """That of the last counted record."""
        self._no_step = ""
        """A field that looked like a step and turned out to be none."""
        self._rose = False
        """True if steps are taken from a field while it rises."""
        self._local = 0
        """Last `step`, which restarts each epoch if there is a `global_step` too."""
        self._offset: int | None = None
        """`global_step - step` of the last record that stated both."""

    @property
    def counts_all(self) -> bool:
        """True if all records were counted: none has stated its step."""
        return self._counted > 0 and not self.known

    @property
    def relative(self) -> bool:
        """True if steps depend on earlier records: counted, taken from a field that rises, or
        within epochs.
        """
        return bool(self._counted or self._rose or self._offset)

    @property
    def note(self) -> str | None:
        """Say how many records were counted."""
        many = f"{counted(self._counted, 'record')} without a step"
        return f"{many}: counted in the order of the file" if self._counted else None

    def of(
        self,
        record: Fields,
        fields: StepFields,
        *,
        keys: Collection[str] | None,
    ) -> int:
        """Return the step of a record.

        Args:
            record: Its fields; nested ones with `/` between the names.
            fields: Those that state its place in the training.
            keys: Its metrics, for counting; None if it belongs to the current step.

        Raises:
            ValueError: It states a step that is too large.
        """
        step, name, total = stated_step(record, fields)
        self.total = total if total is not None else self.total
        if step is not None and self._is_step(step, name, keys or ()):
            self.known = True
            self.step = self._globally(step, name, integer(record.get("step")))
        elif not self.known and keys is not None:
            self._count(keys, record.get(fields.epoch or ""))
        return self.step

    def _is_step(self, step: int, name: str, keys: Iterable[str]) -> bool:
        if name == self._no_step:
            return False
        return is_sure_name(name) or self._rises(step, name, keys)

    def _rises(self, step: int, name: str, keys: Iterable[str]) -> bool:
        """Return True while a field that may be the step behaves as one; once not, never again."""
        self._rose = True
        if not self.known or step > self.step:
            self._seen = set(keys)
            return True
        if step == self.step and self._seen.isdisjoint(keys):
            self._seen.update(keys)
            return True
        self._no_step = name
        self.known = False
        return False

    def _globally(self, step: int, name: str, local: int | None) -> int:
        """Return the global step of a record that states one, and maybe the `local` one.

        If other records state both, `step` may count within the epoch or be the global one
        already: the one nearest to the run's step is taken, and a step that goes back starts an
        epoch.
        """
        if local is None:
            return step
        previous, self._local = self._local, local
        if name != "step":
            self._offset = step - local
            return step
        is_back = local < previous and abs(local - self.step) > 1
        if is_back and self._offset is not None and local + self._offset < self.step:
            self._offset = self.step + 1 - local
        within = local + (self._offset or 0)
        return min((local, within), key=lambda at: abs(at - self.step))

    def _count(self, keys: Iterable[str], epoch: object) -> None:
        """Count a record; it begins a new step if it repeats a metric of this one or has another
        epoch: an evaluation beside a training record shares its step.
        """
        self._counted += 1
        at = number(written_number(epoch) if isinstance(epoch, str) else epoch)
        metrics = {key for key in keys if _plain(key) != "epoch"}
        is_another = epoch is not None and at != self._epoch
        if is_another or not self._seen or not self._seen.isdisjoint(metrics):
            self._seen = set()
            self.step += 1
        self._seen |= metrics
        self._epoch = self._epoch if epoch is None else at


_NO_THING = ending("no_thing")
"""Fields whose texts differ from record to record though they name nothing."""
_MEASURED = pattern(r"\s*[-+.]?\d.*|\s*[-+]?(?:nan|inf(?:inity)?)\s*", re.IGNORECASE)
"""Texts that are numbers, durations, dates."""
_SPOKEN = ending("spoken")
"""Fields that hold what somebody says."""


def listed_thing(records: Sequence[Fields]) -> str | None:
    """Return the field that names another thing in each of the first records of a file, where these
    are no steps. None where there is none.
    """
    places = list(map(_place, records))
    steps = [*filter(None, places)]
    if len(records) < 2 or None in places or _rise([step for step, _ in steps]):
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


def _place(record: Fields) -> tuple[int | None, str] | None:
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


def _differs(name: str, records: Sequence[Fields]) -> bool:
    """Return whether a field names another thing in each record, by a text."""
    values = [
        str(record.get(name)) for record in records if type(record.get(name)) is str
    ]
    names = not (any(map(_MEASURED.fullmatch, values)) or _NO_THING.fullmatch(name))
    return names and len(set(values)) == len(records)

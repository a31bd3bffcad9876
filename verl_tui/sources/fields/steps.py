"""Finds the step of a record under any trainer's name for it."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_tui.patterns import pattern
from verl_tui.sources.fields.jsonl import integer
from verl_tui.sources.fields.spellings import names

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_RANKS = {name: rank for rank, name in enumerate(names("step"))}
_TOTALS = names("total")
_PARENT = pattern(
    r"(?:train|training|trainer|progress|state|metrics|data|eval|time)[/._]"
)
"""Groups in which trainers log their step: `train/global_step`, `trainer/global_step`."""
_OF_TOTAL = pattern(rf"(.+)/(?:{'|'.join(_TOTALS)})")
"""ms-swift: `"global_step/max_steps": "10/438"`."""
_PAIR = pattern(r"\s*(\d{1,17})\s*/\s*(\d{1,17})\s*")


class StepFields(NamedTuple):
    """The fields of a record that state its place in the training."""

    steps: tuple[str, ...]
    """Fields that may state the step, the surest first."""
    total: str | None
    """The field that states the total of steps."""

    @property
    def no_metrics(self) -> frozenset[str]:
        """The step and total that are no metrics; verl's `training/global_step` is one as well."""
        ungrouped = next((name for name in self.steps if "/" not in name), "")
        return frozenset((ungrouped or next(iter(self.steps), ""), self.total or ""))


def step_fields(fields: Iterable[str]) -> StepFields:
    """Return the fields of a record that state its place in the training.

    Args:
        fields: Its fields; nested ones with `/` between the names.
    """
    plain = {name: _plain(name) for name in fields}
    steps = sorted(
        (name for name in plain if plain[name] in _RANKS),
        key=lambda name: _RANKS[plain[name]],
    )
    total = next((name for name in plain if plain[name] in _TOTALS), None)
    return StepFields(tuple(steps), total)


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
    record: Mapping[str, Any], fields: StepFields
) -> tuple[int | None, str, int | None]:
    """Return the step that a record states, the name of its field, and the total of steps.

    Raises:
        ValueError: It states a step that is too large.
    """
    total = integer(record[fields.total]) if fields.total is not None else None
    for name in fields.steps:
        value = record.get(name)
        if isinstance(value, int | float) and abs(value) >= 2**62:
            raise ValueError(f'"{name}" is too large')
        if isinstance(value, str) and (pair := _PAIR.fullmatch(value)):
            return int(pair[1]), name, int(pair[2])
        step = integer(value)
        if step is not None:
            return step, name, total
    return None, "", total


def states_step(name: str) -> bool:
    """Return True if a field of that name states a step."""
    return _plain(name) in _RANKS


class StepTracker:
    """Finds the step of one record after the other, with memory for those that state none."""

    def __init__(self) -> None:
        self.total: int | None = None
        """Total of steps that a record stated last."""
        self.step = 0
        """Step of the last record."""
        self.known = False
        """True once a record has stated its step."""
        self._local = 0
        """Last `step`, which restarts each epoch if there is a `global_step` too."""
        self._offset: int | None = None
        """`global_step - step` of the last record that stated both."""

    @property
    def within_epochs(self) -> bool:
        """True if steps depend on earlier records: they count within epochs."""
        return bool(self._offset)

    def of(self, record: Mapping[str, Any], fields: StepFields) -> int:
        """Return the step of a record.

        Args:
            record: Its fields; nested ones with `/` between the names.
            fields: Those that state its place in the training.

        Raises:
            ValueError: It states a step that is too large.
        """
        step, name, total = stated_step(record, fields)
        self.total = total if total is not None else self.total
        if step is not None:
            self.known = True
            self.step = self._globally(step, name, integer(record.get("step")))
        return self.step

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

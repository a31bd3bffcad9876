"""The tutorials' JSONL: records with a scope, `{"scope": "ppo", "step": 120, "policy_loss": -0.18}`, or flat ones.

Also reads any other program's JSONL of flat records with a step, under the record's own keys.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from verl_tui.sources.gather import Row
from verl_tui.sources.jsonl import JsonDecoder, first_object, flatten, integer, number
from verl_tui.sources.lines import LineReader
from verl_tui.sources.sample import read_sample
from verl_tui.text import safe, strip_ansi
from verl_tui.times import parse_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from verl_tui.records import Record

name = "tutorial JSONL"
rank = 5
anchor = True

_MEASURED = {"reward", "sample", "system"}
"""Scopes logged many times a step: their numbers are averaged. In all others the last record of a step holds."""
_ABOUT = {"timestamp", "time", "ts", "level", "scope", "step", "global_step", "logger", "name", "pid", "rank"}
"""Fields that say where and when a record was written, not what was measured."""
_LOG_TEXT = re.compile(rb"\b(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL)\b")
_STEPS = ("global_step", "step", "_step", "global_steps", "iteration")


def matches(path: Path, head: bytes) -> bool:
    """Tell whether the first object has a scope, or a step with numbers beside it."""
    first = first_object(head)
    if first is None:
        return False
    if isinstance(first.get("scope"), str):
        return True
    stepped = any(isinstance(first.get(field), int) for field in _STEPS)
    return stepped and any(number(v) is not None for k, v in flatten(first).items() if k not in _ABOUT)


def reader(path: Path) -> LineReader:
    """Return a reader for one file."""
    return LineReader(TutorialDecoder())


class TutorialDecoder(JsonDecoder):
    """Decodes scoped and flat records; remembers the step, since some records state none."""

    def __init__(self) -> None:
        self._step = 0
        self._local: int | None = None
        """Last `step` of a record, which restarts each epoch where there is a `global_step` too."""
        self._offset: int | None = None
        """`global_step - step`, once a record has stated both."""

    def restart(self) -> Sequence[Row | Record]:
        """Forget the step."""
        self._step, self._local, self._offset = 0, None, None
        return ()

    def last(self, line: bytes, number: int) -> Sequence[Row | Record] | None:
        """Return the records of a line without an end."""
        return super().last(_json_part(line), number)

    def odd(self, line: bytes, number: int, reason: str) -> Sequence[Row | Record]:
        """Return the records of a line that a logger began in its own words; plain log text says nothing."""
        part = _json_part(line)
        if part != line and (records := super().last(part, number)):
            return records
        return () if _LOG_TEXT.search(line[:200]) else super().odd(line, number, reason)

    def read(self, record: dict[str, Any]) -> Iterable[Row | Record]:
        """Return the row and the sample of one object."""
        scope = record.get("scope")
        step = self._step_of(record)
        numbers = {
            key: value
            for key, value in ((key, number(raw)) for key, raw in flatten(record).items() if key not in _ABOUT)
            if value is not None
        }
        prefix = f"{safe(scope, 100)}/" if isinstance(scope, str) and scope else ""
        if numbers:
            keys = tuple(prefix + safe(key, 300) for key in numbers)
            time = parse_time(record.get("timestamp", record.get("time", record.get("ts"))))
            yield Row(step, keys, tuple(numbers.values()), time, scope in _MEASURED)
        if scope in (None, "sample", "rollout") or scope not in _MEASURED:
            sample = read_sample(record, step)
            if sample is not None:
                yield sample

    def _step_of(self, record: dict[str, Any]) -> int:
        """Return the record's step; the last one seen where it states none.

        Raises:
            ValueError: It states one that is too large.
        """
        for field in _STEPS:
            if isinstance(stated := record.get(field), int | float) and abs(stated) >= 2**62:
                raise ValueError(f'"{field}" is too large')
        whole, local = integer(record.get("global_step")), integer(record.get("step"))
        if whole is not None:
            if local is not None:
                self._offset, self._local = whole - local, local
            self._step = whole
        elif local is not None:
            self._step, self._local = self._globally(local), local
        else:
            for field in _STEPS[2:]:
                other = integer(record.get(field))
                if other is not None:
                    self._step = other
                    break
        return self._step

    def _globally(self, local: int) -> int:
        """Return the global step of a record that states only its `step`.

        Where other records state both, `step` may count within the epoch or be the global one already: the reading
        nearest to where the run stands is taken, and a step that goes back is the next epoch.
        """
        if self._offset is None:
            return local
        if self._local is not None and local < self._local and abs(local - self._step) > 1:
            nearest = local + self._offset
            if nearest < self._step:
                self._offset = self._step + 1 - local
        return min((local, local + self._offset), key=lambda step: abs(step - self._step))


def _json_part(line: bytes) -> bytes:
    line = strip_ansi(line)
    start = line.find(b'{"')
    return line[start:] if start > 0 else line

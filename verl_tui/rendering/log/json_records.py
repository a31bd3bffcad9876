"""Records of a JSONL file as readable rows: step, indicators, other numbers, texts."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, NamedTuple

from verl_tui.indicators import INDICATORS, factor, resolve
from verl_tui.rendering.text.numbers import compact
from verl_tui.sources.fields.jsonl import flatten, integer, number, objects
from verl_tui.text import one_line, safe

_STEPS = ("global_step", "step")
_ABOUT = {"scope", "timestamp", "time", "ts", "data"}
"""Fields without measurements; those inside `data` are shown."""
_MOST = 12
"""Most numbers and texts in a row."""
_STEP, _FIGURE = 5, 6
"""Smallest widths of step and numbers in cells, so that consecutive records form columns."""
_WORDS = 60
"""Most characters of a text."""


class RecordSummary(NamedTuple):
    """A record in one row."""

    tag: str
    """Kind of the record."""
    text: str


@lru_cache(4096)
def record_summary(line: str) -> RecordSummary | None:
    """Summarise a line of JSON, None for other lines and empty records."""
    if not line.startswith("{"):
        return None
    try:
        found = objects(line.encode("utf-8", "replace"))
    except ValueError:
        return None
    text = "  |  ".join(filter(None, map(_row, found)))
    if not text:
        return None
    return RecordSummary(one_line(str(found[0].get("scope") or ""), _WORDS), text)


def whole_line(line: str) -> str:
    """Return a whole line, JSON with a row for each field."""
    try:
        found = objects(line.encode("utf-8", "replace")) if line.startswith("{") else []
    except ValueError:
        found = []
    if found:
        return safe(
            "\n".join(
                json.dumps(record, indent=2, ensure_ascii=False) for record in found
            )
        )
    return line


def _row(record: dict[str, Any]) -> str:
    """Return the row of one record: its step, indicators, other figures, texts."""
    values = _values(record)
    found = {key: number(value) for key, value in values.items()}
    numbers = {key: value for key, value in found.items() if value is not None}
    labels = _indicators(str(record.get("scope") or ""), tuple(numbers))
    keys = list(dict.fromkeys([*labels, *numbers, *values]))
    words = _step_words(record)
    for key in keys[:_MOST]:
        label, times = labels.get(key, (one_line(key, _WORDS), 1.0))
        if key in numbers:
            words.append(f"{label} {compact(times * numbers[key]):<{_FIGURE}}")
        else:
            words.append(f"{label} {_quoted(values[key])}")
    if len(keys) > _MOST:
        words.append(f"+{len(keys) - _MOST}")
    return "  ".join(words).rstrip()


def _step_words(record: dict[str, Any]) -> list[str]:
    for name in _STEPS:
        step = integer(record.get(name))
        if step is not None:
            return [f"step {step:<{_STEP}}"]
    return []


def _values(record: dict[str, Any]) -> dict[str, Any]:
    """Return the measurements by name."""
    data = record.get("data")
    values = flatten(
        {key: value for key, value in record.items() if key not in (*_ABOUT, *_STEPS)}
    )
    return values | (flatten(data) if isinstance(data, dict) else {})


def _quoted(value: object) -> str:
    if isinstance(value, str):
        return f'"{one_line(value, _WORDS)}"'
    return one_line(str(value), _WORDS)


@lru_cache(256)
def _indicators(scope: str, keys: tuple[str, ...]) -> dict[str, tuple[str, float]]:
    """Return label and factor of the keys that are indicators, in the order to show."""
    # sources put the scope before them
    own = {f"{scope}/{key}" if scope else key: key for key in keys}
    found = resolve(own)
    return {
        own[found[id]]: (one.label, factor(id, found[id]))
        for id, one in INDICATORS.items()
        if id in found
    }

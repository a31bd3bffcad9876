"""Lines of a log without the samples that a training prints between them: these may be private.

Recognised are the blocks of verl's reward managers, TRL's tables of completions, and long texts in
lines of JSON. Samples that a training prints in another way stay.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from verl_tui.patterns import pattern

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

LEFT_OUT = "[a sample was left out]"
_PREFIX = r"(?P<prefix>(?:\([^)\n]{1,120}\) |\[?rank\d+\]?: ?)?)"
_FIELD = pattern(rf"^{_PREFIX}\[(?P<name>prompt|response|ground_truth|score)\](?: |$)")
_NEXT_STEP = pattern(rf"^{_PREFIX}step:\d+ - ")
_LONGEST = 2000
"""Lines after which a sample that did not end is given up, as where logs are read."""
_TABLE, _TABLE_END = pattern(r"^╭─+ Step \d+ ─+╮"), "╰"
_LONG_TEXT = 60
"""Characters of a text in JSON that may be a sample's."""
_FIELDS = frozenset(
    {
        "prompt", "input", "question", "query", "instruction", "response", "output", "completion",
        "generation", "prediction", "answer", "gts", "ground_truth", "gt", "reference", "target",
        "solution", "messages", "conversations",
    }
)  # fmt: skip
"""Fields of samples in lines of JSON."""
_OWN_FIELDS = frozenset(
    {"message", "error", "traceback", "exception", "exc_info", "stack", "reason"}
)
"""Fields in which programs write about themselves."""


def without_samples(lines: Sequence[str]) -> list[str]:
    """Return lines of a log with each sample replaced by a line that says so."""
    return list(
        map(_json_without, _without_blocks(_without_tables(lines[_cut_off(lines) :])))
    )


def _cut_off(lines: Sequence[str]) -> int:
    """Return how many of the first lines belong to a sample that began before them."""
    for at, line in enumerate(lines[:_LONGEST]):
        if _NEXT_STEP.match(line):
            return 0
        if found := _FIELD.match(line):
            return 0 if found["name"] == "prompt" else at
    return 0


def _without_tables(lines: Iterable[str]) -> Iterator[str]:
    inside = False
    for line in lines:
        if inside:
            inside = not line.startswith(_TABLE_END) and line.startswith("│")
        elif _TABLE.match(line):
            inside = True
            yield LEFT_OUT
        else:
            yield line


def _without_blocks(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines without those from a prompt to its score, of one process."""
    of: str | None = None
    """The prefix of the open sample's process, None outside of one."""
    count = 0
    for line in lines:
        count += 1
        if field := _FIELD.match(line):
            yield from () if of is not None else (LEFT_OUT,)
            of = None if field["name"] == "score" else field["prefix"]
            count = 0
            continue
        if _NEXT_STEP.match(line) or count > _LONGEST:
            of = None
        if of is None or not line.startswith(of):
            yield line


def _json_without(line: str) -> str:
    """Return a line of JSON without the texts of samples, any other line as it is."""
    if not line.startswith("{"):
        return line
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        if len(line) <= _LONG_TEXT or '": "' not in line:
            return line
        return LEFT_OUT
    return json.dumps(_shortened(record, ""), ensure_ascii=False)


def _shortened(value: Any, name: str) -> Any:
    if name.lower() in _FIELDS and isinstance(value, str | list):
        return LEFT_OUT
    if isinstance(value, dict):
        return {key: _shortened(one, key) for key, one in value.items()}
    if isinstance(value, list):
        return [_shortened(one, name) for one in value]
    if (
        isinstance(value, str)
        and len(value) > _LONG_TEXT
        and name.lower() not in _OWN_FIELDS
    ):
        return LEFT_OUT
    return value

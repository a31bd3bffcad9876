"""verl's step lines, `step:N - key:value - …` (verl/utils/logger/aggregate_logger.py)."""

from __future__ import annotations

import re

import orjson

from verl_tui.patterns import pattern
from verl_tui.sources.fields.row_batcher import MetricRow
from verl_tui.sources.formats.console.repeated import unrepeated
from verl_tui.text import safe

STEP = pattern(rb"(?<![\w:])step:(\d{1,15}) - (.*)$", re.DOTALL)
BEGIN = "step:"
"""Every step line contains it."""
SURE = 5
"""Pieces that make a step line certain even within a model's answer: models imitate step lines."""
KEPT_BY_WANDB = 4096
"""Characters of a line that W&B keeps where it wraps the standard streams (wandb 0.31)."""
_PIECE = pattern(
    r"^(?P<key>.+?):(?:np\.\w+\(|tensor\()?"
    r"(?P<value>[-+]?(?:\d+(?:\.\d*)?(?:e[-+]?\d+)?|\.\d+|nan|inf)|True|False)\)?$"
)
_NUMBERS = {int, float}
_TRUTH = {"True": 1.0, "False": 0.0}


class StepLineReader:
    """Reads step lines; keeps the cleaned key names, since a run has only a few sets of keys."""

    def __init__(self) -> None:
        self.schemas: dict[tuple[str, ...], tuple[str, ...]] = {}
        """Keys as they are written -> as they are shown."""

    def row(self, found: re.Match[bytes], *, sure: bool) -> MetricRow | None:
        """Return the row of a step line, None where it only looks like one.

        Args:
            found: A match of `STEP`.
            sure: Accept only a line with `SURE` pieces, since a model may have written it.
        """
        step = int(found.group(1))
        rest = found.group(2)
        if b"[repeated " in rest:
            rest = unrepeated(rest)[0]
        numbers = _by_json(rest)
        if numbers is None:
            numbers = _by_piece(rest)
        if not numbers or (sure and len(numbers) < SURE):
            return None
        keys = tuple(numbers)
        known = self.schemas.get(keys)
        if known is None:
            known = self.schemas[keys] = tuple(safe(key, 300) for key in keys)
        return MetricRow(step, known, tuple(numbers.values()))


def is_cut(line: bytes) -> bool:
    """Return whether a line of a console is as long as W&B lets lines become."""
    return len(line.decode("utf-8", "replace")) == KEPT_BY_WANDB


def without_last(line: bytes) -> bytes:
    """Return a step line that was cut without its last metric, which may have lost digits."""
    return line[: line.rindex(b" - ")]


def cut_note(lines: int) -> str | None:
    """Say how many step lines were cut, None if none was."""
    if not lines:
        return None
    if lines == 1:
        return "1 step line was cut where it was kept: its last metrics are missing"
    return f"{lines:,} step lines were cut where they were kept: their last metrics are missing"


def _by_json(rest: bytes) -> dict[str, float] | None:
    """Return the numbers of a step line parsed as JSON, which is fast; None if that fails."""
    if b'"' in rest or b"\\" in rest or b"(" in rest:
        return None
    try:
        numbers: dict[str, float] = orjson.loads(
            b'{"' + rest.strip().replace(b":", b'":').replace(b" - ", b',"') + b"}"
        )
    except orjson.JSONDecodeError:
        return None
    if _NUMBERS.issuperset(map(type, numbers.values())):
        return numbers
    return None


def _by_piece(rest: bytes) -> dict[str, float] | None:
    """Return the numbers of a step line; None if fewer than half of its pieces are `key:number`."""
    pieces = rest.decode("utf-8", "replace").split(" - ")
    numbers: dict[str, float] = {}
    for piece in pieces:
        found = _PIECE.match(piece.strip())
        if found is not None:
            value = found["value"]
            numbers[found["key"]] = _TRUTH[value] if value in _TRUTH else float(value)
    if 2 * len(numbers) >= len(pieces):
        return numbers
    return None

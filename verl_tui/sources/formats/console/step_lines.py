"""verl's step lines, `step:N - key:value - …` (verl/utils/logger/aggregate_logger.py).

Several processes write to one console: what another one prints may stand right behind a line's last
number, or right before the line.
"""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING

import orjson

from verl_tui.patterns import pattern
from verl_tui.sources.fields.row_batcher import MetricRow, metric_keys, packed
from verl_tui.sources.formats.console.line_parts import ANOTHER, unrepeated
from verl_tui.text import decoded

if TYPE_CHECKING:
    from array import array

STEP = pattern(rb"(?<![\w:])step:(\d{1,15}) - (.*)$", re.DOTALL)
BEGIN = "step:"
"""Every step line contains it."""
SURE = 5
"""Pieces that make a step line certain even within a model's answer: models imitate step lines."""
KEPT_BY_WANDB = 4096
"""Characters of a line that W&B keeps where it wraps the standard streams (wandb 0.31)."""
_BEHIND_TEXT = pattern(rb"(?<=[A-Za-z0-9])step:(\d{1,15}) - (.*)$", re.DOTALL)
"""A step line that something else was printed right before."""
_NEXT = pattern(rb"step:(?<=[\d)\]}\s]step:)\d{1,15} - ")
"""Another step line behind one."""
_CALL = pattern(rb"(?<=:)(?:np\.\w+|tensor)\(([^(),]{1,40})(?:, [^()]*)?\)")
"""A number as numpy and torch print it."""
_PIECE = pattern(
    r"(?P<key>.+?):(?P<value>[-+]?(?:\d+(?:\.\d*)?(?:e[-+]?\d+)?|\.\d+|(?:nan|inf)(?![^\W\d_]))"
    r"|(?:True|False)(?![^\W\d_]))"
    r"(?P<text>(?:20\d\d-\d\d-\d\d[ T]|/[\w.-]+/|[^\d.:/%,+-]).*)?",
    re.DOTALL,
)
"""A piece, and what goes on behind its number but cannot be a part of one, as a date or path."""
_ANOTHER = pattern(ANOTHER)
_MOST_SCHEMAS = 1000
"""Remembered sets of keys: a log may have others in every line."""
_TRUTH = {"True": 1.0, "False": 0.0}


_Numbers = tuple[tuple[str, ...], "array[float]"]
"""The keys of a line, and their numbers."""


class StepLineReader:
    """Reads step lines; keeps the cleaned key names, since a run has only a few sets of keys."""

    def __init__(self) -> None:
        self._schemas: dict[tuple[str, ...], tuple[str, ...]] = {}
        """Keys as they are written -> as they are shown."""
        self._known: set[str] = set()
        """All of these keys."""
        self.before = self.behind = b""
        """What stood before the last line that was read, and what another process printed after it.
        """
        self.unread = 0
        """Values of the last line that are no numbers, or cannot be told from the text after them.
        """

    def read(self, part: bytes, *, sure: bool) -> MetricRow | None:
        """Return the row of a step line, None where there is none, or it only looks like one.

        Args:
            part: A text.
            sure: Accept only a line with `SURE` pieces, since a model may have written it.
        """
        found = STEP.search(part) or _BEHIND_TEXT.search(part)
        if not found:
            return None
        self.before = part[: found.start()]
        rest = self._first(found[2])
        self.unread = 0
        keys, values = _by_json(rest) or self._by_piece(rest)
        known = self._schemas.get(keys)
        sure = sure or (found.re is _BEHIND_TEXT and known is None)
        if not keys or (sure and len(keys) < SURE):
            return None
        if known is None:
            known = self._learn(keys)
        return MetricRow(int(found[1]), known, values)

    def is_whole(self, line: bytes) -> bool:
        """Return whether a line without an end may be read: a step line that has all the keys of
        one before, as far as there was any, or none and no dict that is cut.
        """
        if not STEP.search(line):
            return b"{'" not in line or line.rstrip().endswith(b"}")
        known = set(self._schemas.values())
        row = self.read(line, sure=False)
        return row is not None and (not known or row.keys in known)

    def _first(self, rest: bytes) -> bytes:
        """Return what belongs to the first of several step lines; keep what is behind it."""
        self.behind = b""
        if b"[" in rest:  # one byte is found many times as fast as several
            rest = unrepeated(rest)[0]
        if b"(" in rest:
            rest = _CALL.sub(rb"\1", rest)
        further = _NEXT.search(rest) if b"step:" in rest else None
        if not further:
            return rest
        self.behind = rest[further.start() :]
        return rest[: further.start()]

    def _learn(self, keys: tuple[str, ...]) -> tuple[str, ...]:
        """Return keys as they are shown; remember them, of a broken file not all."""
        shown = metric_keys(keys)
        if len(self._schemas) < _MOST_SCHEMAS:
            self._schemas[keys] = shown
            self._known.update(keys)
        return shown

    def _by_piece(self, rest: bytes) -> _Numbers:
        """Return the numbers of a step line; none if fewer than half of its pieces are
        `key:number`.
        """
        pieces = decoded(rest).split(" - ")
        numbers: dict[str, float] = {}
        own = len(pieces)
        for at, piece in enumerate(pieces, 1):
            later = pieces[at:]
            found = self._piece(piece, later)
            if not found:
                continue
            value = found["value"]
            numbers[found["key"].lstrip()] = float(_TRUTH.get(value, value))
            text = found["text"]
            if text and not self._knows(later):
                self.behind = " - ".join([text, *later]).encode() + self.behind
                own = at
                break
        return _columns(numbers if 2 * len(numbers) >= own else {})

    def _piece(self, piece: str, later: list[str]) -> re.Match[str] | None:
        """Return the key and number of a piece, also with another's text behind them; None, and
        count it, where it has a value that is none.
        """
        found = _PIECE.fullmatch(piece.strip())
        if found and (text := found["text"]):
            ends = not later and " " in text.strip()
            is_glued = ends or _ANOTHER.match(text) or self._knows([piece])
            if ":" in found["key"] or not is_glued:
                found = None
        self.unread += found is None and ":" in piece
        return found

    def _knows(self, pieces: list[str]) -> bool:
        """Return whether a piece has a key that earlier lines had."""
        return any(piece.partition(":")[0].strip() in self._known for piece in pieces)


def uncut(line: bytes) -> bytes:
    """Return a line; a step line that is as long as W&B lets lines become without its last metric,
    which may have lost digits.
    """
    if len(line) < KEPT_BY_WANDB or len(decoded(line)) != KEPT_BY_WANDB:
        return line
    found = STEP.search(line)
    return line[: max(line.rfind(b" - "), found.start(2))] if found else line


def _by_json(rest: bytes) -> _Numbers | None:
    """Return the numbers of a step line parsed as JSON, which is fast; None if that fails."""
    if b'"' in rest or b"\\" in rest:
        return None
    written = rest.strip().replace(b":", b'":').replace(b" - ", b',"')
    try:
        return _columns(orjson.loads(b'{"' + written + b"}"))
    except (orjson.JSONDecodeError, struct.error):
        return None


def _columns(numbers: dict[str, float]) -> _Numbers:
    return tuple(numbers), packed(numbers.values())

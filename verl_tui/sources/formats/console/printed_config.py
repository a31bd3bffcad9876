"""The configuration that a trainer prints with `pprint` at its start (verl:
`verl/trainer/main_ppo.py`).
"""

from __future__ import annotations

import ast
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_tui.patterns import pattern
from verl_tui.records import CONSOLE, Settings, Unreadable
from verl_tui.sources.fields.setting_values import flatten_settings, is_training
from verl_tui.sources.formats.console.repeated import unrepeated
from verl_tui.text import one_line

if TYPE_CHECKING:
    import re
    from collections.abc import Sequence

    from verl_tui.records import Record

_LONGEST = 3000
"""Lines after which an unfinished block is given up."""
_OTHER_LINES = 50
"""Further lines of the same actor after which a block whose end was cut is over (a heuristic)."""
_TEXT = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
"""Text as `repr` writes it: with a quote of its own kind escaped."""
_CUT_TEXT = r"'(?:[^'\\]|\\.)*(?:'|\\?$)|\"(?:[^\"\\]|\\.)*(?:\"|\\?$)"
"""Such text in a line that may be cut within it."""
_QUOTED = pattern(_CUT_TEXT.encode())
_LITERAL = pattern(rf"^(?: (?:{_TEXT}): |  +['\"{{(\[\-\d]| +$)".encode())
"""A line of a dict: of the outermost keys, which stand behind one space, or further in."""
_BEGIN = pattern(rb"\{'.*[,}]\s*$")
_LINE_ENDS = (b",", b"'", b'"', b"}", b"]", b")")
"""`pprint` ends each line with one of these."""
_OBJECT = pattern(r"(?<=: )(?:<[^<>]*>|nan|inf|-inf)(?=[,}\n])")
"""Values whose `repr` is no literal."""
_KEY = pattern(rf"({_TEXT}): ")
_SCALAR = pattern(
    rf"(?:{_TEXT}|[-+]?[\d.][\w.+-]*|None|True|False|nan|-?inf|\{{\}}|<[^<>]*>)(?=[,}})\]]|$)"
)
_SEPARATORS = pattern(r"[,}\])\s]*")
_TEXT_OR_BRACKET = pattern(rf"{_CUT_TEXT}|[\[\](){{}}]")
_OPENING, _CLOSING = ("[", "(", "{"), ("]", ")", "}")
_LONGEST_VALUE = 10_000
"""Characters after which an unfinished list over several lines is given up."""


class PrintedConfig:
    """Collects the lines of a printed dict, even if other processes print between or into them."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []
        self._numbers: list[int] = []
        self._prefix = b""
        self._depth = 0
        """Open braces."""
        self._others = 0
        """Lines of the same actor since the last one of the block."""

    @property
    def is_open(self) -> bool:
        """True if a dict has begun and not ended."""
        return bool(self._lines)

    def holds(self, prefix: bytes, part: bytes) -> bool:
        """Return True for a line of the block: same actor, an indented literal or its rest."""
        if not self._lines or prefix != self._prefix:
            return False
        return _LITERAL.match(part) is not None or self._is_rest(part)

    def _is_rest(self, part: bytes) -> bool:
        """Return True if a line is the rest of the last one: Ray may forward half a line."""
        last = self._lines[-1]
        if last.rstrip().endswith(_LINE_ENDS):
            return False
        whole = last + part
        if not last.strip():
            ends = part.rstrip().endswith(_LINE_ENDS)
            return ends and _LITERAL.match(whole) is not None
        columns = _ColumnParser()
        columns.read(whole.decode("utf-8", "replace"), 0)
        return columns.is_understood

    def feed(self, prefix: bytes, part: bytes, number: int) -> Sequence[Record]:
        """Take a line; return the settings with the block's last one."""
        if b"[repeated " in part:
            part = unrepeated(part)[0]
        if not self._lines and not _BEGIN.match(part):
            return ()
        if self._lines and not self.holds(prefix, part):
            self._others += prefix == self._prefix
            if self._others > _OTHER_LINES:
                return self.close()
            return ()
        self._prefix = prefix
        self._append(part, number)
        if self._depth <= 0:
            return self._end()
        if len(self._lines) > _LONGEST:
            return self.close()
        return ()

    def _end(self) -> Sequence[Record]:
        """Return the settings if all braces are closed and the block can be parsed."""
        config = self._whole()
        if config is not None:
            self._forget()
            return _settings(config)
        whole_line = len(self._lines) == 1
        if whole_line or len(self._lines) > _LONGEST:
            return self.close()
        return ()

    def _append(self, part: bytes, number: int) -> None:
        """Append a line of the dict, or the rest of a torn one."""
        if self._lines and _LITERAL.match(part) is None:
            torn = self._lines.pop()
            self._depth -= _opened(torn)
            part = torn + part
        else:
            self._numbers.append(number)
        self._lines.append(part)
        self._depth += _opened(part)

    def close(self) -> Sequence[Record]:
        """Return the settings of an incomplete or damaged block, and the lines that were cut."""
        lines = [line.decode("utf-8", "replace") for line in self._lines]
        numbers = self._numbers
        self._forget()
        if len(lines) < 2:
            return ()
        config, cut = _by_columns(lines)
        records: list[Record] = [*_settings(config)]
        if not records:
            return ()
        reason = (
            "other output cuts into the printed configuration;"
            " a setting of this line may be missing"
        )
        for at in cut:
            excerpt = one_line(lines[at][:400])
            records.append(Unreadable(numbers[at], reason, excerpt))
        return records

    def _whole(self) -> dict[Any, Any] | None:
        text = b"\n".join(self._lines).decode("utf-8", "replace")
        found = literal(_OBJECT.sub("None", text))
        return found if isinstance(found, dict) else None

    def _forget(self) -> None:
        self._lines = []
        self._numbers = []
        self._depth = 0
        self._others = 0


def _opened(line: bytes) -> int:
    """Return how many more braces a line opens than it closes."""
    bare = _QUOTED.sub(b"", line)
    return bare.count(b"{") - bare.count(b"}")


def _settings(config: dict[Any, Any]) -> tuple[Settings, ...]:
    """Return the settings of a configuration: a nested dict, or one with names of a training."""
    is_nested = any(isinstance(value, dict) for value in config.values())
    if not is_nested and not is_training(config):
        return ()
    return (Settings(flatten_settings(config), CONSOLE),)


def literal(text: str) -> Any:
    """Return the value of a Python literal, None where it is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes in text that others wrote
            return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


class _Unfinished(NamedTuple):
    """A list, or text in several pieces, that goes on in the next line."""

    line: int
    """Index of the line it began in."""
    column: int
    key: str
    text: str


class _ColumnParser:
    """Finds the dict of each key by its column: `pprint` aligns the keys of one dict."""

    def __init__(self) -> None:
        self.config: dict[str, Any] = {}
        self.cut: list[int] = []
        """Indices of lines that could not be parsed to their end."""
        self._unfinished: _Unfinished | None = None
        self._open: list[tuple[int, dict[str, Any]]] = []
        """Column of the keys and the dict of each level, the outermost first."""

    @property
    def is_understood(self) -> bool:
        """True if all of the lines could be parsed, and they hold something."""
        return not self.cut and (bool(self.config) or self._unfinished is not None)

    def read(self, line: str, index: int) -> None:
        """Take a line."""
        at = len(line) - len(line.lstrip(" "))
        if self._unfinished is not None and _KEY.match(line, at) is None:
            self._go_on(self._unfinished, line.strip())
            return
        self._give_up()
        at += line.startswith("{", at)
        while found := _KEY.match(line, at):
            at = self._value(line, index, found)
        if self._unfinished is None and line[at:].strip(" ,}])"):
            self.cut.append(index)

    def _value(self, line: str, index: int, found: re.Match[str]) -> int:
        """Take the value of a key; return where the next key may stand."""
        column = found.start()
        at = found.end()
        key = literal(found[1]) or found[1][1:-1]  # an escape that Python does not know
        scalar = _SCALAR.match(line, at)
        if scalar is not None:
            self._put(column, key, literal(scalar[0]))
            return _past_separators(line, scalar.end())
        if line[at : at + 1] not in ("[", "(", "{"):
            return at
        end = _end(line, at)
        value = literal(line[at:end]) if end is not None else None
        if end is not None and value is not None:
            self._put(column, key, value)
            return _past_separators(line, end)
        if line.startswith("{'", at):
            inner: dict[str, Any] = {}
            self._put(column, key, inner)
            self._open.append((at + 1, inner))
            return at + 1
        self._unfinished = _Unfinished(index, column, key, line[at:].strip())
        return len(line)

    def _go_on(self, value: _Unfinished, text: str) -> None:
        """Take a further line of a value; give it up where it does not end."""
        whole = f"{value.text} {text}"
        end = _end(whole, 0)
        found = literal(whole[:end]) if end is not None else None
        if found is not None:
            self._put(value.column, value.key, found)
            self._unfinished = None
            return
        self._unfinished = value._replace(text=whole)
        if len(whole) > _LONGEST_VALUE:
            self._give_up()

    def _give_up(self) -> None:
        if self._unfinished is not None:
            self.cut.append(self._unfinished.line)
        self._unfinished = None

    def _put(self, column: int, key: str, value: Any) -> None:
        while self._open and self._open[-1][0] > column:
            self._open.pop()
        if not self._open or self._open[-1][0] < column:
            # The line that opened this dict was lost: its keys are taken as those of the dict
            # around it.
            around = self._open[-1][1] if self._open else self.config
            self._open.append((column, around))
        self._open[-1][1][key] = value


def _by_columns(lines: Sequence[str]) -> tuple[dict[str, Any], list[int]]:
    """Return the readable part of a printed dict, and the indices of lines cut by other text."""
    columns = _ColumnParser()
    for index, line in enumerate(lines):
        columns.read(line, index)
    return columns.config, columns.cut


def _end(text: str, at: int) -> int | None:
    """Return where the bracket at `at` closes again, None where it does not."""
    depth = 0
    for found in _TEXT_OR_BRACKET.finditer(text, at, at + _LONGEST_VALUE):
        sign = found[0]
        depth += (sign in _OPENING) - (sign in _CLOSING)
        if not depth:
            return found.end()
    return None


def _past_separators(line: str, at: int) -> int:
    found = _SEPARATORS.match(line, at)
    if found is None:
        return at
    return found.end()

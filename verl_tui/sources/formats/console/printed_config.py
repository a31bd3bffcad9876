"""The configuration that a trainer prints with `pprint` at its start (verl:
`verl/trainer/main_ppo.py`).
"""

from __future__ import annotations

import ast
import warnings
from typing import TYPE_CHECKING, Any

from verl_tui.patterns import pattern
from verl_tui.records import CONSOLE, Settings, Unreadable
from verl_tui.sources.fields.setting_values import flatten_settings, is_training
from verl_tui.sources.formats.console.repeated import unrepeated
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.records import Record

_LONGEST = 3000
"""Lines after which an unfinished block is given up."""
_OTHER_LINES = 50
"""Further lines of the same actor after which a block whose end was cut is over (a heuristic)."""
_TEXT = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
"""Text as `repr` writes it: with a quote of its own kind escaped."""
_QUOTED = pattern(_TEXT.encode())
_LITERAL = pattern(rf"^(?: (?:{_TEXT}): |  +['\"{{(\[\-\d]| +$)".encode())
"""A line of a dict: of the outermost keys, which stand behind one space, or further in."""
_BEGIN = pattern(rb"\{'.*[,}]\s*$")
_OBJECT = pattern(r"(?<=: )(?:<[^<>]*>|nan|inf|-inf)(?=[,}\n])")
"""Values whose `repr` is no literal."""


class PrintedConfig:
    """Collects the lines of a printed dict, even if other processes print between them."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []
        self._number = 0
        """That of its first line."""
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
        """Return True for a line of the block: same actor, an indented literal."""
        if not self._lines or prefix != self._prefix:
            return False
        return _LITERAL.match(part) is not None

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
        self._number = self._number or number
        self._lines.append(part)
        self._depth += _opened(part)
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

    def close(self) -> Sequence[Record]:
        """Give up an incomplete or damaged block; say so if it was a configuration."""
        number = self._number
        excerpt = one_line(self._lines[0][:400].decode("utf-8", "replace"))
        was_nested = any(b": {" in line for line in self._lines[1:])
        self._forget()
        if not was_nested:
            return ()
        reason = "the printed configuration is cut, or other output cuts into it: it is not read"
        return (Unreadable(number, reason, excerpt),)

    def _whole(self) -> dict[Any, Any] | None:
        text = b"\n".join(self._lines).decode("utf-8", "replace")
        found = literal(_OBJECT.sub("None", text))
        return found if isinstance(found, dict) else None

    def _forget(self) -> None:
        self._lines = []
        self._number = 0
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

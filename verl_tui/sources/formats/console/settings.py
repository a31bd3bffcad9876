"""Settings on a console, until training has begun: blocks of lines that one process prints.

How each kind is printed is data, see `events.toml`. The command that launches a training is one,
too.
"""

from __future__ import annotations

import ast
import re
import shlex
import warnings
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_tui.patterns import pattern
from verl_tui.records import CONSOLE, LAUNCH, Record, Records, Settings, Unreadable
from verl_tui.sources.fields.setting_values import flatten_settings, is_training, scalar
from verl_tui.sources.formats.console.line_parts import (
    TABLE,
    any_of,
    unrepeated,
    words_of,
)
from verl_tui.text import decoded, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from verl_tui.sources.fields.jsonl import Fields


WORDS = words_of("settings")
_MAY_BEGIN = any_of(WORDS)
_EXPECTED_WITHIN = 5000
"""Lines after a start in which settings are looked for, which is slow."""
_LONGEST = 2**17
"""Bytes after which an unfinished block is given up."""
_LEAST = 3
"""Fewest settings of a training's command (heuristic)."""
_CUT = "the printed configuration is cut, or other output cuts into it: it is not read"

_ARGUMENT = pattern(r"[(,]\s{0,40}(\w{1,80})=")
_DOTTED = pattern(r"(?:^|\n)\s{2}(\w+) \.{2,} ")
_ENUM = pattern(r"<[\w.]+: ('[^']*'|\d+)>")
_UNWRITTEN = pattern(r"(?<=: )(?:<[^<>]*>|nan|inf|-inf)(?=[,}\n])")
"""Values whose `repr` is no literal."""
_OVERRIDE = pattern(r"[+~]{0,2}([A-Za-z_][\w./@-]*)=(?!=)(.*)", re.DOTALL)
_OPTION = pattern(r"--([A-Za-z][\w.-]*)(?:=(.*))?", re.DOTALL)


class _Form(NamedTuple):
    """How a kind of block is printed, and what it says."""

    begins: re.Pattern[bytes]
    goes_on: re.Pattern[bytes]
    """A further line."""
    ends: re.Pattern[bytes]
    """Its last line, which may be the first."""
    read: Callable[[str], Fields | None]
    """Returns the settings in it, none if they are not a training's; None if it is not whole."""
    origin: str


class SettingsReader:
    """Reads the settings that a console states until training has begun, even if other processes
    print between the lines of a block.
    """

    def __init__(self) -> None:
        self._until = _EXPECTED_WITHIN
        """Number of the last line in which settings are looked for."""
        self._form = _FORMS[0]
        self.lines: list[bytes] = []
        """Those of the block that has begun and not ended."""
        self._number = 0
        """That of its first line."""
        self._prefix = b""

    def begin(self, number: int) -> None:
        """Expect settings after a line: the trainer has started, maybe again."""
        self._until = number + _EXPECTED_WITHIN

    def end(self) -> Records:
        """Expect no more settings, as a step was trained; say which block has no end."""
        self._until = 0
        lines, self.lines = self.lines, []
        if not any(b": {" in line for line in lines[1:]):
            return ()
        excerpt = one_line(lines[0][:400].decode("utf-8", "replace"))
        return (Unreadable(self._number, _CUT, excerpt),)

    def holds(self, prefix: bytes, part: bytes) -> bool:
        """Return True if a line belongs to a block of settings."""
        is_its = self.lines and prefix == self._prefix
        return bool(is_its and self._form.goes_on.match(part))

    def read(self, prefix: bytes, part: bytes, number: int) -> Sequence[Record]:
        """Take a line; return the settings that it completes.

        Args:
            prefix: Names the Ray actor that printed it, empty for the driver.
            part: The line without the prefix.
            number: Its number.
        """
        if number > self._until:
            return self.end()
        part, _ = unrepeated(part)
        if self.holds(prefix, part):
            return self._add(part)
        out: list[Record] = []
        for form in _FORMS if _MAY_BEGIN.search(part) else ():
            if not form.begins.search(part):
                continue
            if form.ends.search(part):
                out += _stated(form, part) or ()
            elif not self.lines:
                self._form, self._prefix, self._number = form, prefix, number
                self.lines = [part]
        return out

    def _add(self, part: bytes) -> Sequence[Record]:
        """Take a line of the block; return the settings with its last one."""
        self.lines.append(part)
        if sum(map(len, self.lines)) > _LONGEST:
            return self.end()
        found = None
        if self._form.ends.search(part):
            found = _stated(self._form, b"\n".join(self.lines))
        if found is not None:
            self.lines = []
        return found or ()


def _stated(form: _Form, block: bytes) -> Sequence[Record] | None:
    """Return the settings of a block, None if it is not whole."""
    values = form.read(decoded(block))
    if values is None:
        return None
    return (Settings(flatten_settings(values), form.origin),) if values else ()


def _literal(text: str) -> Any:
    """Return the value of a Python literal, None where it is none."""
    with (
        warnings.catch_warnings(),
        suppress(ValueError, SyntaxError, TypeError, MemoryError, RecursionError),
    ):
        warnings.simplefilter("ignore")  # about escapes in text that others wrote
        return ast.literal_eval(text)
    return None


def _printed_dict(text: str) -> Fields | None:
    """Return a configuration: a nested dict, or one with names of a training."""
    found = _literal(_UNWRITTEN.sub("None", text))
    if not isinstance(found, dict):
        return None
    is_nested = any(isinstance(value, dict) for value in found.values())
    return found if is_nested or is_training(found) else {}


def _assigned(name: re.Pattern[str], text: str) -> Fields:
    """Return the arguments of a training, each behind what its name looks like."""
    _, *parts = name.split(text.rstrip().removesuffix(")"))
    values = dict(zip(parts[::2], map(_value, parts[1::2]), strict=True))
    return values if is_training(values) else {}


def _value(written: str) -> Any:
    """Return an argument as a literal, or as plain text."""
    written = _ENUM.sub(r"\1", written.partition("\n---")[0].strip().removesuffix(","))
    if written in ("None", "null", "") or " at 0x" in written:
        return None
    found = _literal(written)
    return written if found is None else found


def _command(text: str) -> Fields:
    """Return the settings of a command, whose lines all end with a backslash but the last."""
    whole = " ".join(line.rstrip().removesuffix("\\") for line in text.split("\n"))
    try:
        words = shlex.split(whole.strip(" `+"))
    except ValueError:  # a quote that is never closed
        words = whole.split()
    return _of_command(words)


def _overrides(text: str) -> Fields | None:
    words = _literal(text.partition(": ")[2].strip())
    return _of_command(words) if isinstance(words, list) else None


def _of_command(words: Sequence[object]) -> Fields:
    """Return the settings in the words of a command, none if too few for that of a training."""
    values: Fields = {}
    option: str | None = None
    for word in map(str, words):
        if found := _OPTION.fullmatch(word):
            name, value = found.groups()
            values[name] = True if value is None else scalar(value)
            option = name if value is None else None
        elif option is not None and not word.startswith("-m"):
            values[option] = scalar(word)
            option = None
        elif found := _OVERRIDE.fullmatch(word):
            values[found[1]] = scalar(found[2])
    flat = flatten_settings(values)
    return flat if len(flat) >= _LEAST else {}


_READ: dict[str, Callable[[str], Fields | None]] = {
    "dict": _printed_dict,
    "call": partial(_assigned, _ARGUMENT),
    "dots": partial(_assigned, _DOTTED),
    "command": _command,
    "overrides": _overrides,
}
_FORMS = [
    _Form(
        pattern(row["begins"].encode()),
        pattern(row.get("goes_on", "(?!)").encode()),
        pattern(row.get("ends", "").encode()),
        _READ[row["read"]],
        LAUNCH if row.get("launch") else CONSOLE,
    )
    for row in TABLE["settings"]
]

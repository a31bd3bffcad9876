"""Arguments as trainers print them.

`Namespace(…)` and `GRPOConfig(…)` on one line or with a line for each argument; Megatron's list
with dots.
"""

from __future__ import annotations

import ast
import re
import warnings
from typing import TYPE_CHECKING, Any

from verl_tui.patterns import pattern
from verl_tui.records import CONSOLE, Settings
from verl_tui.sources.fields.setting_values import flatten_settings, is_training
from verl_tui.sources.formats.console.printed_config import literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_LONGEST = 2000
"""Lines after which an unfinished block is given up."""
_LONGEST_LINE = 2**16
_START = pattern(
    rb"(?:^|[\s:=])(\w*(?:Namespace|Config|Arguments|Args)\()(.*)$", re.DOTALL
)
_LINE = pattern(r"^\s*(\w+)=(.*)$")
"""One argument a line, written by `str` (`TrainingArguments.__str__` of transformers)."""
_ENUM = pattern(r"<[\w.]+: ('[^']*'|\d+)>")
_OBJECT = pattern(r"<[^<>]*>")
_DOTTED_START = pattern(rb"^-{3,} arguments -{3,}\s*$")
_DOTTED_END = pattern(rb"^-{3,} end of arguments -{3,}\s*$")
_DOTTED = pattern(r"\s{2}(\w+) \.{2,} (.*)$")
"""One argument of Megatron-LM's `_print_args`, which slime and verl's Megatron workers print."""


class ArgumentDump:
    """Collects a dump of arguments over one line or several."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []
        self._prefix = b""
        self._dotted = False

    @property
    def is_open(self) -> bool:
        """True if a dump has begun and not ended."""
        return bool(self._lines)

    def holds(self, prefix: bytes, part: bytes) -> bool:
        """Return True for a line of the dump: same process, an argument or the end."""
        return bool(self._lines) and prefix == self._prefix and self._is_part(part)

    def feed(self, prefix: bytes, part: bytes) -> Sequence[Settings]:
        """Take a line; return the settings with the dump's last one."""
        if self._lines:
            if not self.holds(prefix, part):
                return ()
            return self._go_on(part)
        if _DOTTED_START.match(part):
            self._begin(prefix, part, dotted=True)
        elif (found := _START.search(part)) is not None:
            if found[2].strip():
                return _settings(_one_line(found[1] + found[2]))
            self._begin(prefix, part, dotted=False)
        return ()

    def _begin(self, prefix: bytes, part: bytes, *, dotted: bool) -> None:
        self._lines = [part]
        self._prefix = prefix
        self._dotted = dotted

    def _is_part(self, part: bytes) -> bool:
        text = part[:400].decode("utf-8", "replace")
        return self._is_end(part) or self._argument.match(text) is not None

    @property
    def _argument(self) -> re.Pattern[str]:
        """The form of an argument in this dump."""
        return _DOTTED if self._dotted else _LINE

    def _is_end(self, part: bytes) -> bool:
        if self._dotted:
            return _DOTTED_END.match(part) is not None
        return part.strip() == b")"

    def _go_on(self, part: bytes) -> Sequence[Settings]:
        if not self._is_end(part) and len(self._lines) < _LONGEST:
            self._lines.append(part)
            return ()
        lines = [line.decode("utf-8", "replace") for line in self._lines[1:]]
        self._lines = []
        if not self._dotted:
            lines = [line.rstrip().removesuffix(",") for line in lines]
        found = filter(None, map(self._argument.match, lines))
        return _settings({argument[1]: _value(argument[2]) for argument in found})


def _settings(values: dict[str, Any]) -> tuple[Settings, ...]:
    if not is_training(values):
        return ()
    return (Settings(flatten_settings(values), CONSOLE),)


def _one_line(written: bytes) -> dict[str, Any]:
    """Return the arguments of a dump on one line, {} if it is something else."""
    if len(written) > _LONGEST_LINE or b")" not in written:
        return {}
    text = written.decode("utf-8", "replace")
    text = text[: text.rindex(")") + 1]
    text = _OBJECT.sub("None", _ENUM.sub(r"\1", text))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes in text that others wrote
            call = ast.parse(text, mode="eval").body
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return {}
    if not isinstance(call, ast.Call):
        return {}
    return dict(_arguments(call))


def _arguments(call: ast.Call) -> Iterator[tuple[str, Any]]:
    for argument in call.keywords:
        if argument.arg is not None:
            try:
                yield argument.arg, ast.literal_eval(argument.value)
            except (ValueError, TypeError, MemoryError, RecursionError):
                yield argument.arg, ast.unparse(argument.value)


def _value(written: str) -> Any:
    """Return a value written as a literal or as plain text."""
    plain = written.strip()
    if plain in ("None", "null", ""):
        return None
    found = literal(plain)
    return plain if found is None else found

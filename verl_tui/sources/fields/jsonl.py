"""Reads lines of JSON as real programs write them: several objects on a line, NaN, broken text; and
finds the numbers among their fields, also those that were written as texts. A field may hold a
number that names something. How programs spell what is looked for stands in `spellings.toml`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Container, Iterator, Mapping
from functools import lru_cache
from typing import Any

import orjson

from verl_tui.patterns import NamePattern, pattern
from verl_tui.records import Unreadable
from verl_tui.text import decoded, one_line
from verl_tui.toml_tables import toml_table

_SPELLINGS = toml_table(__file__, "spellings.toml")
"""How programs spell what is looked for in their records."""
_DEEPEST = 40
"""Nesting after which a line is refused: recursion is for logs, not for bombs."""
_DEEPEST_VALUE = 200
"""Brackets from which JSON may be too deep: orjson writes 254 levels, `repr` some 300."""
_TOO_DEEP = "nested too deeply"
_BLANK = " \t\r\n"
_BETWEEN = _BLANK + ","
Fields = dict[str, Any]
"""What a record holds, by name."""
_DECODER = json.JSONDecoder(
    parse_int=lambda digits: float(digits) if len(digits) > 19 else int(digits)
)
"""Reads what Python writes and orjson refuses: NaN, Infinity, lone surrogates, numbers of any size,
infinite where a float is too small.
"""


def loads(text: bytes) -> Any:
    """Return what JSON says.

    Raises:
        ValueError: It is no JSON, or not all of it.
    """
    found = values_of(text)
    if len(found) != 1:
        raise ValueError("not one JSON value")
    return found[0]


def first_value(text: bytes) -> tuple[Any, str]:
    """Return what the JSON value at the beginning of a text says, and what stands after it.

    Raises:
        ValueError: It begins with none.
    """
    begin = decoded(text).lstrip("\ufeff" + _BLANK)
    try:
        value, end = _DECODER.raw_decode(begin)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    return value, begin[end:]


def values_of(text: bytes) -> list[Any]:
    """Return the JSON values of a text, mostly one.

    Raises:
        ValueError: It is no sequence of JSON values; the message says why, for people.
    """
    try:
        found = [orjson.loads(text)]
    except orjson.JSONDecodeError:
        if not text.strip(b"\0 \t\r\n"):
            raise ValueError("only zero bytes: a hole left by a crash") from None
        found = list(values_in(decoded(text)))
    # hardly any has brackets after its beginning
    if text.find(b"{", _DEEPEST_VALUE) >= 0 or text.find(b"[", _DEEPEST_VALUE) >= 0:
        _check_depth(found, text)
    return found


def objects(line: bytes) -> list[Fields]:
    """Return the JSON objects on a line, usually one.

    Raises:
        ValueError: The line is no sequence of JSON objects; the message says why, for people.
    """
    found = values_of(line)
    for value in found:
        if not isinstance(value, dict):
            raise ValueError("JSON, but no object")
    return found


def values_in(text: str) -> Iterator[Any]:
    """Yield JSON values that stand one after the other, with blanks and commas between them.

    Raises:
        ValueError: Something else stands there; the message says why, for people.
    """
    at = 0
    text = text.strip("\ufeff\0" + _BLANK)
    while at < len(text):
        try:
            value, at = _DECODER.raw_decode(text, at)
        except json.JSONDecodeError as error:
            raise ValueError(f"not JSON: {error.msg} at column {error.colno}") from None
        except RecursionError:
            raise ValueError(_TOO_DEEP) from None
        yield value
        while at < len(text) and text[at] in _BETWEEN:
            at += 1


def _check_depth(value: object, text: bytes) -> None:
    """Refuse what is nested more deeply than everything that follows can handle by recursion.

    Raises:
        ValueError: It is.
    """
    if text.count(b"[") + text.count(b"{") > _DEEPEST_VALUE:
        try:
            orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)
        except orjson.JSONEncodeError as error:
            if "recursion" in str(error).lower():
                raise ValueError(_TOO_DEEP) from None


def number(value: object) -> float | None:
    """Return a metric's value: numbers and truth values as float, null as nan, None for anything
    else.

    verl's file logger writes NaN and both infinities as null (orjson does), so null is a value that
    is not finite, not a missing one.
    """
    if isinstance(value, float):
        return value
    if isinstance(value, int):
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    return float("nan") if value is None else None


def written_number(text: str | bytes) -> float | None:
    """Return the number that a text is, None where it is none."""
    try:
        return float(text)
    except ValueError:
        return None


_WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def worded_number(value: object) -> object:
    """Return the number that W&B or trackio wrote as a word that JSON knows, else the value."""
    return _WORDS.get(value, value) if isinstance(value, str) else value


def integer(value: object) -> int | None:
    """Return a step: an integer, or what was written in its place (`120.0`, `"120"`); None for
    anything else.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value if abs(value) < 2**62 else None
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 18:
        return int(value.strip())
    return None


def flatten(data: Mapping[Any, Any], joint: str = "/", depth: int = 0) -> Fields:
    """Return nested objects as one level with a `/`, or another sign, between the names."""
    flat: Fields = {}
    for key, value in data.items():
        if isinstance(value, dict) and depth < _DEEPEST:
            below = flatten(value, joint, depth + 1)
            flat.update({f"{key}{joint}{name}": one for name, one in below.items()})
        else:
            flat[str(key)] = value
    return flat


def unreadable(line: bytes, number: int, reason: str) -> Unreadable:
    """Return the record of a line that could not be read."""
    return Unreadable(number, one_line(reason), one_line(decoded(line[:400])))


def first_object(head: bytes) -> Fields | None:
    """Return the first JSON object at the beginning of a file, None where there is none among the
    first lines.
    """
    for line in head.split(b"\n", 8)[:8]:
        if line.lstrip(b"\xef\xbb\xbf \t\0").startswith(b"{"):
            try:
                return objects(line)[0]
            except ValueError:
                continue
    return None


def names(role: str) -> tuple[str, ...]:
    """Return the names of a role, the surest first."""
    return tuple(_SPELLINGS["names"][role].split())


def words(role: str) -> str:
    """Return an expression of the words of a role."""
    return "|".join(_SPELLINGS["ends"][role].split())


def ending(role: str) -> NamePattern:
    """Return an expression of names whose last part is one of the words of a role."""
    return NamePattern(rf"(?:.*[/_. ])?(?:{words(role)})", re.IGNORECASE)


_NAME = NamePattern(
    r"(?:.*[/.])?(?:(?:.+_)?(?:id|idx|index|pid|ppid|port|seed|uuid)|rank|device|node|host"
    r"|hostname|worker"
    r"|(?:local|global|world|node|group|worker|replica|[dtpsec]p)_rank)",
    re.IGNORECASE,
)
"""Fields whose numbers are names. `effective_rank` and `mean_rank` are measurements."""
_QUOTED = pattern(
    r"[-+]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:e[-+]?\d{1,4})?|nan|[-+]?inf(?:inity)?",
    re.IGNORECASE,
)
_TEXTS = ending("text")
"""Fields whose texts stay texts though they may be digits."""


def numbers_in(fields: Fields, without: Container[str] = ()) -> dict[str, float]:
    """Return the numbers among fields, but for some of these."""
    numbers = {}
    for key, raw in fields.items():
        value = raw if type(raw) is float else number(raw)
        if value is not None and key not in without:
            numbers[key] = value
    return numbers


@lru_cache(10_000)
def is_name(field: str) -> bool:
    """Return True if a field's number is a name and not a measurement."""
    return _NAME.fullmatch(field) is not None


def unquoted(fields: Fields) -> Fields:
    """Return fields with numbers that were written as texts, unless these name something."""
    if str not in map(type, fields.values()):
        return fields
    return {name: _unquoted(name, value) for name, value in fields.items()}


def _unquoted(name: str, value: object) -> object:
    if not isinstance(value, str) or not _QUOTED.fullmatch(value):
        return value
    return value if is_name(name) or _TEXTS.fullmatch(name) else float(value)

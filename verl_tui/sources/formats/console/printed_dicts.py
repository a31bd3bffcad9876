"""Dicts of numbers as Python prints them, and what another process printed right behind one."""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from verl_tui.patterns import pattern
from verl_tui.sources.formats.console.prefixes import ANOTHER
from verl_tui.text import safe

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_STEP_OF_ALL = {"global_step/max_steps", "iteration"}
"""ms-swift's names of `10/438`, that of its Megatron trainers behind."""
_BEHIND = pattern(rf"\s*(?:$|\d{{1,3}}%\|)|{ANOTHER}|[\w(\[{{]")
"""What may stand behind a dict: what was printed right behind it, and the same with a bar's or
another process's beginning behind spaces.
"""
_CALL = pattern(
    r"\b(?:np\.\w+|tensor|array)\(([^(),\[\]]{1,40}|\[[^()]*\])(?:, [^()]*)?\)"
)
_WORD = pattern(r"(?<=[\s\[])(?:None|True|False|nan|-?inf)(?=[,}\]])")
_JSON = {"None": "null", "True": "true", "False": "false"}
_QUOTED = pattern(r'"[^"\n]*"')
_OF_ALL = pattern(r"(\d{1,15})/(\d{1,15})")
_BRACE = pattern(r"[{}]")


class ReadDict(NamedTuple):
    """What a printed dict says."""

    values: Mapping[str, float | None]
    """Its numbers and None values; those of dicts in it under `name/name`."""
    lists: int = 0
    """Values that are lists."""
    behind: bytes = b""
    """What is printed behind it."""

    @property
    def numbers(self) -> dict[str, float]:
        """Its numbers alone."""
        return {key: value for key, value in self.values.items() if value is not None}


def read_dict(written: bytes) -> ReadDict:
    """Read a dict as `repr` writes it; without values if it cannot be parsed."""
    text = written.decode("utf-8", "replace").rstrip()
    end = _end(text)
    if not end or not _BEHIND.match(text, end):
        return ReadDict({})
    flat = list(_flat(_parsed(text[:end]), ""))
    values = {name: value for name, value in flat if not isinstance(value, list)}
    return ReadDict(values, len(flat) - len(values), text[end:].strip().encode())


def _end(text: str) -> int:
    """Return where a dict ends, 0 if it does not."""
    depth = 0
    for brace in _BRACE.finditer(text):
        depth += 1 if brace[0] == "{" else -1
        if not depth:
            return brace.end()
    return 0


def _parsed(text: str) -> dict[str, Any]:
    if "(" in text:
        text = _CALL.sub(r"\1", text)
    if '"' in text:
        text = _QUOTED.sub("''", text)
    as_json = _WORD.sub(lambda found: _JSON.get(found[0], f'"{found[0]}"'), text)
    try:
        found = orjson.loads(as_json.replace("'", '"'))
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _flat(
    values: dict[str, Any], above: str
) -> Iterator[tuple[str, float | list[Any] | None]]:
    for key, value in values.items():
        name = _name(above + key)
        if isinstance(value, dict):
            yield from _flat(value, f"{name}/")
        elif isinstance(value, str):
            yield from _numbers(name, value)
        else:
            yield name, value if isinstance(value, list | None) else float(value)


@lru_cache(10_000)
def _name(written: str) -> str:
    return safe(written, 300)


def _numbers(name: str, text: str) -> Iterator[tuple[str, float]]:
    """Yield the numbers of a text; transformers from 5 on prints all values so."""
    if name in _STEP_OF_ALL and (found := _OF_ALL.fullmatch(text)):
        yield name, float(found[1])
        yield "max_steps", float(found[2])
    with suppress(ValueError):
        yield name, float(text)

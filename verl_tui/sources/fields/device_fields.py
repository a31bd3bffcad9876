"""Fields of a record that name a device, a rank or another thing, and the figures of devices.

Figures of devices get keys like W&B's: `gpu.3.util` for the utilization of device 3.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from verl_tui.patterns import NamePattern, pattern
from verl_tui.sources.fields.jsonl import number
from verl_tui.sources.fields.spellings import ending, names

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_RANKS = names("rank")
_DEVICES = names("device")
_NAMED = frozenset((*_RANKS, *_DEVICES))
_NAME = NamePattern(
    r"(?:.*[/.])?(?:(?:.+_)?(?:id|idx|index|pid|ppid|port|seed|uuid)|rank|device|node|host"
    r"|hostname|worker"
    r"|(?:local|global|world|node|group|worker|replica|[dtpsec]p)_rank)",
    re.IGNORECASE,
)
"""Fields whose numbers are names. `effective_rank` and `mean_rank` are measurements."""
_FIGURE = NamePattern(
    r"(?:.*[/.])?(?:gpu_?(?:util|mem|temp|power|usage|load|busy|percent)|(?:mem|memory)_|util"
    r"|temperature|temp$|power"
    r"|sm_).*",
    re.IGNORECASE,
)
"""Figures of a device, if the record names one."""
_WRITTEN = pattern(r"(?:(?:cuda|gpu|device|rank)[:_ ]?)?(\d{1,4})", re.IGNORECASE)
_QUOTED = pattern(
    r"[-+]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:e[-+]?\d{1,4})?|nan|[-+]?inf(?:inity)?",
    re.IGNORECASE,
)
_WORDS = ending("text")
"""Fields whose texts stay texts though they may be digits."""
_MOST = 4096
"""Numbers from here on are not those of a device or rank."""

RankAndDevice = tuple["int | None", "int | None"]
"""Rank and device of the process that wrote a record, each None where it is not stated."""


@lru_cache(10_000)
def is_name(field: str) -> bool:
    """Return True if a field's number is a name and not a measurement."""
    return _NAME.fullmatch(field) is not None


def unquoted(fields: dict[str, Any]) -> dict[str, Any]:
    """Return fields with numbers that were written as texts, unless these name something."""
    if str not in map(type, fields.values()):
        return fields
    return {name: _unquoted(name, value) for name, value in fields.items()}


def _unquoted(name: str, value: object) -> object:
    if not isinstance(value, str) or not _QUOTED.fullmatch(value):
        return value
    return value if is_name(name) or _WORDS.fullmatch(name) else float(value)


def names_one(fields: Iterable[str]) -> bool:
    """Return True if a record with these fields may name a rank or a device; most do not."""
    return not _NAMED.isdisjoint(fields)


def worker(fields: Mapping[str, Any]) -> RankAndDevice | None:
    """Return the rank and the device that a record names, None if it names neither."""
    rank = _first_index(fields, _RANKS)
    device = _device(fields)
    if rank is None and device is None:
        return None
    return (rank, device)


def device_figures(
    fields: Mapping[str, Any], of: RankAndDevice | None
) -> dict[str, float]:
    """Return the figures of the device that a record is of, by `gpu.N.figure`.

    Args:
        fields: Its fields; nested ones with `/` between the names.
        of: Rank and device of the record, see `worker`.
    """
    if of is None:
        return {}
    index = of[1] if of[1] is not None else _index(fields.get("local_rank"))
    if index is None:
        return {}
    figures = {name: number(fields[name]) for name in fields if _is_figure(name)}
    return {
        f"gpu.{index}.{name}": one for name, one in figures.items() if one is not None
    }


def _is_figure(name: str) -> bool:
    return _FIGURE.fullmatch(name) is not None and not is_name(name)


def _device(fields: Mapping[str, Any]) -> int | None:
    """Return the device that a record names; a field `gpu` may be its utilization instead."""
    for name in _DEVICES:
        index = _index(fields.get(name))
        if index is not None and (name != "gpu" or any(map(_is_figure, fields))):
            return index
    return None


def _first_index(fields: Mapping[str, Any], spelled: Iterable[str]) -> int | None:
    """Return the number in the first of some fields that has one."""
    found = (_index(fields.get(name)) for name in spelled)
    return next((index for index in found if index is not None), None)


def _index(value: object) -> int | None:
    """Return the number of a device or rank as programs write it: `3`, `"3"`, `"cuda:3"`."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        if 0 <= value < _MOST and value == int(value):
            return int(value)
        return None
    if not isinstance(value, str) or len(value) >= 20:
        return None
    written = _WRITTEN.fullmatch(value.strip())
    return int(written[1]) if written else None

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
    # A field `gpu` may be its utilization instead.
    named = [one for one in _DEVICES if one != "gpu" or any(map(_is_figure, fields))]
    rank, device = _first_index(fields, _RANKS), _first_index(fields, named)
    return None if rank is None and device is None else (rank, device)


def device_figures(
    fields: Mapping[str, Any], of: RankAndDevice | None
) -> dict[str, float]:
    """Return the figures of the device that a record is of, by `gpu.N.figure`.

    Args:
        fields: Its fields; nested ones with `/` between the names.
        of: Rank and device of the record, see `worker`.
    """
    index = of[1] if of is not None else None
    if of is not None and index is None:
        index = _first_index(fields, ["local_rank"])
    if index is None:
        return {}
    figures = {name: number(fields[name]) for name in fields if _is_figure(name)}
    return {
        f"gpu.{index}.{name}": one for name, one in figures.items() if one is not None
    }


def _is_figure(name: str) -> bool:
    return _FIGURE.fullmatch(name) is not None and not is_name(name)


def _first_index(fields: Mapping[str, Any], spelled: Iterable[str]) -> int | None:
    """Return the number of a device or rank in the first of some fields that has one, as programs
    write it: `3`, `"3"`, `"cuda:3"`.
    """
    for name in spelled:
        value = fields.get(name)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if type(value) in (int, str) and (
            found := _WRITTEN.fullmatch(str(value).strip())
        ):
            return int(found[1])
    return None

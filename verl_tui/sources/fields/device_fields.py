"""Fields of a record that name a device, a rank or another thing, and the figures of devices.

Figures of devices get keys like W&B's: `gpu.3.util` for the utilization of device 3.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_tui.patterns import NamePattern, pattern
from verl_tui.sources.fields.jsonl import flatten, number
from verl_tui.sources.fields.spellings import ending, names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_RANKS = names("rank")
_DEVICES = names("device")
_NAMED = frozenset((*_RANKS, *_DEVICES))
_INDEX = names("listed_device")
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
_LISTS = NamePattern(
    r"(?:.*[/.])?(?:gpus?|devices?|gpu_(?:stats|metrics|info)|device_(?:stats|metrics|info))"
)
"""Lists of devices."""
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


class DeviceFields(NamedTuple):
    """Figures of devices in a record, by `gpu.N.figure`."""

    own: dict[str, float]
    """Those of the record's own device."""
    listed: dict[str, float]
    """Those of the devices that it lists."""
    consumed: frozenset[str]
    """Fields that are used up by these figures."""


_NONE = DeviceFields({}, {}, frozenset())


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


def devices(fields: Mapping[str, Any], of: RankAndDevice | None) -> DeviceFields:
    """Return the figures of devices in a record.

    Args:
        fields: Its fields; nested ones with `/` between the names.
        of: Rank and device of the record, see `worker`.
    """
    if of is None and list not in map(type, fields.values()):
        return _NONE
    listed: dict[str, float] = {}
    consumed = set()
    for name, value in fields.items():
        if type(value) is list and (figures := dict(_listed(name, value))):
            listed |= figures
            consumed.add(name)
    own = {}
    if of is not None:
        rank_or_device = (
            of[1] if of[1] is not None else _index(fields.get("local_rank"))
        )
        if rank_or_device is not None:
            own = dict(_figures(fields, rank_or_device, _FIGURE))
    return DeviceFields(own, listed, frozenset(consumed))


def _figures(
    fields: Mapping[str, Any], index: int, form: NamePattern | None = None
) -> Iterator[tuple[str, float]]:
    """Yield the figures of one device: all numbers, or those whose names are of a form."""
    for name, raw in fields.items():
        if (form is not None and not form.fullmatch(name)) or name in _INDEX:
            continue
        if not is_name(name) and (known := number(raw)) is not None:
            yield f"gpu.{index}.{name}", known


def _device(fields: Mapping[str, Any]) -> int | None:
    """Return the device that a record names; a field `gpu` may be its utilization instead."""
    for name in _DEVICES:
        index = _index(fields.get(name))
        if index is not None and (name != "gpu" or any(_figures(fields, 0, _FIGURE))):
            return index
    return None


def _listed(name: str, value: list[Any]) -> Iterator[tuple[str, float]]:
    """Yield the figures of a list of devices, or of a list with one figure of each device."""
    field = name.rpartition("/")[2]
    if _LISTS.fullmatch(name) and all(isinstance(one, dict) for one in value[:_MOST]):
        for place, one in enumerate(value[:_MOST]):
            device = flatten(one)
            stated = _first_index(device, _INDEX)
            yield from _figures(device, place if stated is None else stated)
    elif field.startswith("gpu") and _FIGURE.fullmatch(name) and len(value) <= _MOST:
        yield from _one_each(field, value)


def _one_each(field: str, value: list[Any]) -> Iterator[tuple[str, float]]:
    """Yield the figures of a list with one number of each device, none if there is other data."""
    numbers = [known for one in value if (known := number(one)) is not None]
    if len(numbers) == len(value):
        yield from ((f"gpu.{at}.{field}", one) for at, one in enumerate(numbers))


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

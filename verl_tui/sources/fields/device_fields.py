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
    rank = next(
        (index for name in _RANKS if (index := _index(fields.get(name))) is not None),
        None,
    )
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
    lists = [
        (name, value) for name, value in fields.items() if type(value) is list and value
    ]
    listed: dict[str, float] = {}
    consumed = set()
    for name, value in lists:
        if figures := dict(_listed(name, value)):
            listed |= figures
            consumed.add(name)
    index = _own_device(fields, of)
    own = {}
    if index is not None:
        own = {f"gpu.{index}.{key}": value for key, value in _figures(fields)}
    return DeviceFields(own, listed, frozenset(consumed))


def _own_device(fields: Mapping[str, Any], of: RankAndDevice | None) -> int | None:
    """Return the device of a record; that of a rank without one is its local rank."""
    if of is None:
        return None
    if of[1] is not None:
        return of[1]
    return _index(fields.get("local_rank"))


def _figures(fields: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield the figures of a record's own device."""
    for name, value in fields.items():
        if (
            _FIGURE.fullmatch(name)
            and not is_name(name)
            and (known := number(value)) is not None
        ):
            yield name, known


def _device(fields: Mapping[str, Any]) -> int | None:
    """Return the device that a record names; a field `gpu` may be its utilization instead."""
    for name in _DEVICES:
        index = _index(fields.get(name))
        if index is not None and (name != "gpu" or any(_figures(fields))):
            return index
    return None


def _listed(name: str, value: list[Any]) -> Iterator[tuple[str, float]]:
    """Yield the figures of a list of devices, or of a list with one figure of each device."""
    field = name.rpartition("/")[2]
    if _LISTS.fullmatch(name) and all(isinstance(one, dict) for one in value[:_MOST]):
        for place, one in enumerate(value[:_MOST]):
            yield from _device_figures(flatten(one), place)
    elif field.startswith("gpu") and _FIGURE.fullmatch(name) and len(value) <= _MOST:
        yield from _one_each(field, value)


def _one_each(field: str, value: list[Any]) -> Iterator[tuple[str, float]]:
    """Yield the figures of a list with one number of each device, none if there is other data."""
    numbers = [known for one in value if (known := number(one)) is not None]
    if len(numbers) == len(value):
        for at, known in enumerate(numbers):
            yield f"gpu.{at}.{field}", known


def _device_figures(
    fields: Mapping[str, Any], place: int
) -> Iterator[tuple[str, float]]:
    """Yield the figures of one device of a list; its place counts if it states no number."""
    indices = (_index(fields.get(name)) for name in _INDEX)
    index = next((index for index in indices if index is not None), place)
    for name, raw in fields.items():
        if is_name(name) or name in _INDEX:
            continue
        known = number(raw)
        if known is not None:
            yield f"gpu.{index}.{name}", known


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

"""Which fields of a record name a device, a rank or another thing, and what it says of each device.

Figures of devices get keys as W&B's have: `gpu.3.util` for what a record says of device 3.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_tui.sources.fields.jsonl import flatten, number

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_RANKS = (
    "rank",
    "global_rank",
    "world_rank",
    "local_rank",
    "process_index",
    "dp_rank",
    "worker_rank",
    "replica_rank",
)
_DEVICES = (
    "gpu_id",
    "device_id",
    "gpu_index",
    "gpu_idx",
    "device_index",
    "cuda_device",
    "cuda_id",
    "device",
    "gpu",
)
_NAMED = frozenset((*_RANKS, *_DEVICES))
_INDEX = ("index", "id", "idx", *_DEVICES, "ordinal")
_NAME = re.compile(
    r"(?:.*[/.])?(?:(?:.+_)?(?:id|idx|index|pid|ppid|port|seed|uuid)|rank|device|node|host|hostname|worker"
    r"|(?:local|global|world|node|group|worker|replica|[dtpsec]p)_rank)",
    re.IGNORECASE,
)
"""Fields whose numbers name something. `effective_rank` and `mean_rank` measure."""
_FIGURE = re.compile(
    r"(?:.*[/.])?(?:gpu_?(?:util|mem|temp|power|usage|load|busy|percent)|(?:mem|memory)_|util|temperature|temp$|power"
    r"|sm_).*",
    re.IGNORECASE,
)
"""Fields that tell something of a device, if a record names one."""
_WRITTEN = re.compile(r"(?:(?:cuda|gpu|device|rank)[:_ ]?)?(\d{1,4})", re.IGNORECASE)
_LISTS = re.compile(
    r"(?:.*[/.])?(?:gpus?|devices?|gpu_(?:stats|metrics|info)|device_(?:stats|metrics|info))"
)
"""Lists of devices."""
_MOST = 4096
"""Devices or ranks beyond which a number is no number of one."""

Worker = tuple["int | None", "int | None"]
"""The process a record is of: its rank and its device, each None where it is not named."""


@lru_cache(10_000)
def is_name(field: str) -> bool:
    """Tell whether a field of a record names something, so that its number measures nothing."""
    return _NAME.fullmatch(field) is not None


class DeviceFields(NamedTuple):
    """What a record says of devices, by `gpu.N.figure`."""

    own: dict[str, float]
    """Of the one that it is about."""
    listed: dict[str, float]
    """Of those that it lists."""
    whole: frozenset[str]
    """Fields that are told by that in whole."""


_NONE = DeviceFields({}, {}, frozenset())


def names_one(fields: Iterable[str]) -> bool:
    """Tell whether a record of such fields may name a rank or a device: most do not."""
    return not _NAMED.isdisjoint(fields)


def worker(fields: Mapping[str, Any]) -> Worker | None:
    """Return the rank and the device that a record is of, None where it names neither."""
    rank = next((index for name in _RANKS if (index := _index(fields.get(name))) is not None), None)
    device = _device(fields)
    return None if rank is None and device is None else (rank, device)


def devices(fields: Mapping[str, Any], of: Worker | None) -> DeviceFields:
    """Return what a record says of devices.

    Args:
        fields: Its fields; nested ones with `/` between the names.
        of: The rank and the device that it is of.
    """
    if of is None and list not in map(type, fields.values()):
        return _NONE
    lists = [(name, value) for name, value in fields.items() if type(value) is list and value]
    told = {name: dict(_listed(name, value)) for name, value in lists}
    listed = {key: figure for figures in told.values() for key, figure in figures.items()}
    index = None if of is None else of[1] if of[1] is not None else _index(fields.get("local_rank"))
    own = (
        {} if index is None else {f"gpu.{index}.{name}": value for name, value in _figures(fields)}
    )
    return DeviceFields(own, listed, frozenset(name for name, figures in told.items() if figures))


def _figures(fields: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield the figures of the device that a record is about."""
    for name, value in fields.items():
        if _FIGURE.fullmatch(name) and not is_name(name) and (known := number(value)) is not None:
            yield name, known


def _device(fields: Mapping[str, Any]) -> int | None:
    """Return the device that a record names; `gpu` alone may be what it does."""
    for name in _DEVICES:
        index = _index(fields.get(name))
        if index is not None and (name != "gpu" or any(_figures(fields))):
            return index
    return None


def _listed(name: str, value: list[Any]) -> Iterator[tuple[str, float]]:
    """Yield the figures of a list of devices, or of a list with one figure of each device."""
    if _LISTS.fullmatch(name) and all(isinstance(one, dict) for one in value[:_MOST]):
        for place, one in enumerate(value[:_MOST]):
            flat = flatten(one)
            stated = next(
                (index for field in _INDEX if (index := _index(flat.get(field))) is not None), place
            )
            for field, raw in flat.items():
                if (
                    not is_name(field)
                    and field not in _INDEX
                    and (known := number(raw)) is not None
                ):
                    yield f"gpu.{stated}.{field}", known
    elif (
        name.rpartition("/")[2].startswith("gpu")
        and _FIGURE.fullmatch(name)
        and len(value) <= _MOST
    ):
        numbers = [number(one) for one in value]
        if None not in numbers:
            field = name.rpartition("/")[2]
            yield from (
                (f"gpu.{at}.{field}", one) for at, one in enumerate(numbers) if one is not None
            )


def _index(value: object) -> int | None:
    """Return a number of a device or a rank as programs write it: `3`, `"3"`, `"cuda:3"`."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return int(value) if 0 <= value < _MOST and value == int(value) else None
    written = (
        _WRITTEN.fullmatch(value.strip()) if isinstance(value, str) and len(value) < 20 else None
    )
    return int(written[1]) if written else None

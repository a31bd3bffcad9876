"""Recognise metrics that are figures of a device, by W&B's names and by those of other programs."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from verl_tui.patterns import NamePattern

_WANDB = NamePattern(
    r"(?:system|cluster)/gpu\.(\d+)\.(gpu|memoryAllocated|memoryAllocatedBytes|temp|powerWatts"
    r"|enforcedPowerLimitWatts)"
    r"(?:/l:(.+))?"
)
"""W&B's figures of a device (docs.wandb.ai/models/ref/python/experiments/system-metrics); `/l:`
names the node.

Keys under `cluster/` are the same for all machines of a cluster, some of which the run may use.
"""
_OF_DEVICE = NamePattern(
    r"(?:.*[/_.])?(?:gpus?|devices?|cuda)[/_.:]?(\d{1,4})[/_.](?:gpu[/_.])?([^/]+)",
    re.IGNORECASE,
)
"""`gpus/0/util`, `system/gpu.0.gpu_util`, `gpu_3_temperature`."""
_UNIT = r"(?:_?(bytes|[mg]i?b))?"
_FIGURES = tuple(
    (NamePattern(form, re.IGNORECASE), field)
    for form, field in (
        (
            r"(?:(?:sm_)?util|utili[sz]ation|usage|load|busy)(?:_?(?:gpu|percent|pct|rate))?"
            r"|percent",
            "gpu",
        ),
        (
            rf"(?:mem|memory)_?(?:used|allocated|usage)?{_UNIT}"
            rf"|(?:used|allocated)_?(?:mem|memory){_UNIT}",
            "memoryUsed",
        ),
        (rf"(?:mem|memory)_?total{_UNIT}|total_?(?:mem|memory){_UNIT}", "memoryTotal"),
        (r"temp(?:erature)?(?:_?(?:c|celsius|gpu))?", "temp"),
        (r"power_?(?:draw|usage)?_?(?:w|watts?)?", "powerWatts"),
        (
            r"(?:power_?limit|enforced_power_limit)_?(?:w|watts?)?",
            "enforcedPowerLimitWatts",
        ),
    )
)
_FACTORS = {"bytes": 1, "mb": 2**20, "mib": 2**20, "gb": 2**30, "gib": 2**30}
"""NVML and PyTorch count in powers of 1024, whatever the unit is called."""
_BARE_MEMORY = {"mem", "memory"}
"""Without a unit these are as often a share as an amount."""


class DeviceKey(NamedTuple):
    """The device and the figure that a metric is of."""

    device: int
    field: str
    """By W&B's names; `memoryUsed` and `memoryTotal` are amounts."""
    factor: int | None = 1
    """Multiplies its values; None where the unit of an amount is not stated."""
    node: str = ""
    """Name of the device's host where there are several."""


@lru_cache(10_000)
def device_key(key: str) -> DeviceKey | None:
    """Return the device and the figure that a metric describes, None if it describes no device."""
    matched = _WANDB.fullmatch(key)
    if matched:
        return DeviceKey(int(matched[1]), matched[2], 1, matched[3] or "")
    matched = _OF_DEVICE.fullmatch(key) if len(key) < 200 else None
    if matched is None or (
        key.startswith("system/gpu.") and matched[2] in ("gpu", "memory")
    ):
        return None
    return _own_figure(int(matched[1]), matched[2])


def _own_figure(device: int, name: str) -> DeviceKey | None:
    """Return the figure behind a name that is not W&B's, None for an unknown name."""
    matches = ((form.fullmatch(name), field) for form, field in _FIGURES)
    found, field = next(
        ((match, field) for match, field in matches if match), (None, "")
    )
    if found is None or not field.startswith("memory"):
        if found is None:
            return None
        return DeviceKey(device, field)
    unit = next(filter(None, found.groups()), "").lower()
    if not unit and name.lower() in _BARE_MEMORY:
        return None
    return DeviceKey(device, field, _FACTORS.get(unit))


def memory_bytes(value: float, factor: int | None, total: float | None) -> int:
    """Return an amount of memory in bytes.

    Where no unit is stated it is guessed from the size of the whole (a heuristic).

    Args:
        value: As logged.
        factor: Of its unit, None where that is not stated.
        total: The device's whole memory in the same unit, where that is known.
    """
    if factor is None:
        factor = _usual_factor(total if total is not None else value)
    return int(value * factor)


def _usual_factor(whole: float) -> int:
    """Return the bytes of the unit in which so much is a device's whole memory: bytes, MiB or
    GiB.
    """
    if whole >= 2**30:
        return 1
    return 2**20 if whole >= 1024 else 2**30

"""Remarks on devices that stand out: lost, idle while others work, lagging behind, throttled, hot,
full.

All but the first are heuristics on recent averages, since every device idles briefly between two
kernels.
"""

from __future__ import annotations

import math
from operator import itemgetter
from statistics import median
from typing import TYPE_CHECKING

from rich.cells import cell_len

from verl_tui.records import POWER_CAP
from verl_tui.rendering.text.printable import wrapped
from verl_tui.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from verl_tui.records import Gpu
    from verl_tui.runs.views.devices import Device

IDLE = 10.0
"""Utilisation in percent below which a device is idle while another one works."""
WORKS = 40.0
"""Utilisation in percent from which on a device works."""
UNEVEN = 30.0
"""Difference between the most and the least busy device that is remarked, in percentage points."""
HOT_CELSIUS = 85.0
"""Temperature that is marked: data centre boards slow down from a few degrees above it."""
FULL_SHARE = 0.98
"""Share of used memory that is marked: the next allocation may fail."""
_NAMED = 4
"""Most devices listed by name; the others are counted."""


def finite(value: float | None) -> float | None:
    """Return a finite value, None for others."""
    return value if value is not None and math.isfinite(value) else None


def name(device: Device) -> str:
    """Return the name of a device: `3`, or `node2:3` among several nodes."""
    return f"{device.node}:{device.gpu.index}" if device.node else device.gpu.index


def busy(device: Device) -> float | None:
    """Return a device's utilisation from 0 to 100, None where it is unknown."""
    percent = finite(device.gpu.utilization)
    return None if percent is None else min(max(percent, 0.0), 100.0)


def idle(devices: Sequence[Device]) -> list[Device]:
    """Return the devices that are idle while others work, and have not always been."""
    known = _lately(devices)
    if max((percent for percent, _ in known), default=0.0) < WORKS:
        return []
    return [device for percent, device in known if percent < IDLE and device.worked]


def _lately(devices: Iterable[Device]) -> list[tuple[float, Device]]:
    """Return how busy the devices have been lately that are still there."""
    return [
        (device.lately, device)
        for device in devices
        if device.lately is not None and not device.gpu.fault
    ]


def throttled(gpu: Gpu) -> str | None:
    """Return by what a device is throttled, None where it is not, or by its power limit only."""
    found = (f" {word}" for word in gpu.throttle or () if word != POWER_CAP)
    return next(found, None)


def hot(gpu: Gpu) -> str | None:
    """Return the temperature of a device that is about to slow down from heat, None of others."""
    celsius = finite(gpu.temperature) or 0.0
    return f" {celsius:.0f}°C" if celsius >= HOT_CELSIUS else None


def full(gpu: Gpu) -> str | None:
    """Return an empty text where nearly all memory of a device is in use, else None."""
    used, total = gpu.memory_used, gpu.memory_total
    return "" if used is not None and total and used >= FULL_SHARE * total else None


TRAITS = {"throttled": throttled, "hot": hot, "memory full": full}
"""What a device is marked for by itself."""


def device_summary(devices: Sequence[Device], *, short: bool = False) -> list[str]:
    """Return number, utilisation, idle ones and power of devices, `short` in fewer letters."""
    nodes = len({device.node for device in devices})
    parts = [counted(len(devices), "GPU") + f" on {nodes} nodes" * (nodes > 1)]
    if known := [percent for percent in map(busy, devices) if percent is not None]:
        form = "{:.0f}/{:.0f}/{:.0f}%" if short else "min {:.0f} med {:.0f} max {:.0f}%"
        parts.append(form.format(min(known), median(known), max(known)))
    if idlers := idle(devices):
        parts.append(f"{len(idlers)} idle: {_listed(_named(idlers))}")
    watts = sum(finite(device.gpu.power) or 0.0 for device in devices)
    power = f"{watts / 1000:.1f} kW" if watts >= 1000 else f"{watts:.0f} W"
    return [*parts, *[power] * (watts > 0)]


def callouts(devices: Sequence[Device], *, with_idle: bool = True) -> Iterator[str]:
    """Yield a few words for each remark; idle devices may be left to the summary."""
    idlers = idle(devices)
    never = [device for device in devices if not device.worked]
    unused = never * (len(never) < len(devices))
    about = [
        *((fault, _named(lost)) for fault, lost in _by_fault(devices).items()),
        ("idle", _named(idlers * with_idle)),
        ("never at work, maybe not this run's", _named(unused)),
        *((trait, _marked(trait, devices)) for trait in TRAITS),
    ]
    yield from (f"{what}: GPU {_listed(found)}" for what, found in about if found)
    yield from _uneven([one for one in devices if one not in (*idlers, *never)])


def _by_fault(devices: Sequence[Device]) -> dict[str, list[Device]]:
    found: dict[str, list[Device]] = {}
    for device in devices:
        if device.gpu.fault:
            found.setdefault(device.gpu.fault, []).append(device)
    return found


def _uneven(devices: Sequence[Device]) -> Iterator[str]:
    """Yield a remark if devices that all work are unevenly busy."""
    known = sorted(_lately(devices), key=itemgetter(0))
    if known and known[-1][0] - known[0][0] >= UNEVEN:
        (lowest, least), (highest, most) = known[0], known[-1]
        yield f"uneven lately: GPU {name(least)} {lowest:.0f}%, GPU {name(most)} {highest:.0f}%"


def _marked(trait: str, devices: Sequence[Device]) -> dict[str, str]:
    """Return the names of the devices that are marked for a trait, and what is said of each."""
    said = {name(device): TRAITS[trait](device.gpu) for device in devices}
    return {device: text for device, text in said.items() if text is not None}


def _named(devices: Iterable[Device]) -> dict[str, str]:
    return dict.fromkeys(map(name, devices), "")


def _listed(found: Mapping[str, str]) -> str:
    """List devices by their names, each with what is said of it."""
    named = [key + text for key, text in found.items()]
    more = f" +{len(named) - _NAMED} more" if len(named) > _NAMED else ""
    return ", ".join(named[:_NAMED]) + more


def side_by_side(parts: Iterable[str], width: int) -> list[str]:
    """Return parts side by side in lines; only parts longer than a line are broken."""
    lines: list[str] = []
    for part in parts:
        if lines and cell_len(lines[-1]) + 2 + cell_len(part) <= width:
            lines[-1] += f"  {part}"
        else:
            lines += wrapped(part, width)
    return lines

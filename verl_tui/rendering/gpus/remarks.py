"""Remarks on devices that stand out: lost, idle while others work, lagging behind, throttled, hot,
full.

All but the first are heuristics on recent averages, since every device idles briefly between two
kernels.
"""

from __future__ import annotations

from itertools import islice
from operator import itemgetter
from statistics import median
from typing import TYPE_CHECKING

from rich.cells import cell_len

from verl_tui.records import POWER_CAP
from verl_tui.rendering.gpus.device_rows import HOT_CELSIUS, finite, is_full
from verl_tui.rendering.text.printable import wrapped
from verl_tui.words import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from verl_tui.runs.views.devices import Device

IDLE = 10.0
"""Utilisation in percent below which a device is idle while another one works."""
WORKS = 40.0
"""Utilisation in percent from which on a device works."""
UNEVEN = 30.0
"""Difference between the most and the least busy device that is remarked, in percentage points."""
_NAMED = 4
"""Most devices listed by name; the others are counted."""


def name(device: Device) -> str:
    """Return the name of a device: `3`, or `node2:3` among several nodes."""
    return f"{device.node}:{device.gpu.index}" if device.node else device.gpu.index


def busy(device: Device) -> float | None:
    """Return a device's utilisation from 0 to 100, None where it is unknown."""
    percent = finite(device.gpu.utilization)
    if percent is None:
        return None
    return min(max(percent, 0.0), 100.0)


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


def throttled(device: Device) -> bool:
    """True if a device is throttled by more than its power limit."""
    return any(word != POWER_CAP for word in device.gpu.throttle or ())


def hot(device: Device) -> bool:
    """True if a device is about to slow down from heat."""
    celsius = finite(device.gpu.temperature)
    return celsius is not None and celsius >= HOT_CELSIUS


def full(device: Device) -> bool:
    """True if nearly all memory of a device is in use."""
    return is_full(device.gpu)


def device_summary(devices: Sequence[Device], *, short: bool = False) -> list[str]:
    """Return number, utilisation, idle ones and power of devices, `short` in fewer letters."""
    nodes = len({device.node for device in devices})
    parts = [counted(len(devices), "GPU") + (f" on {nodes} nodes" if nodes > 1 else "")]
    known = [percent for percent in map(busy, devices) if percent is not None]
    if known:
        template = (
            "{:.0f}/{:.0f}/{:.0f}%" if short else "min {:.0f} med {:.0f} max {:.0f}%"
        )
        parts.append(template.format(min(known), median(known), max(known)))
    idlers = idle(devices)
    if idlers:
        parts.append(f"{len(idlers)} idle: {_listed(idlers)}")
    return parts + _power(devices)


def _power(devices: Sequence[Device]) -> list[str]:
    """Return the power of all devices, nothing if it is unknown."""
    stated = [finite(device.gpu.power) for device in devices]
    known = [watts for watts in stated if watts is not None]
    if not known:
        return []
    total = sum(known)
    return [f"{total / 1000:.1f} kW" if total >= 1000 else f"{total:.0f} W"]


def _by_fault(devices: Sequence[Device]) -> Mapping[str, Sequence[Device]]:
    found: dict[str, list[Device]] = {}
    for device in devices:
        if device.gpu.fault:
            found.setdefault(device.gpu.fault, []).append(device)
    return found


def callouts(devices: Sequence[Device], *, with_idle: bool = True) -> Iterator[str]:
    """Yield a few words for each remark; idle devices may be left to the summary."""
    for fault, faulty in _by_fault(devices).items():
        yield from _about(fault, faulty)
    idlers = idle(devices)
    if with_idle:
        yield from _about("idle", idlers)
    never = [device for device in devices if not device.worked]
    if len(never) < len(devices):
        yield from _about("never at work, maybe not this run's", never)
    yield from _about("throttled", filter(throttled, devices), _reason)
    yield from _about("hot", filter(hot, devices), _celsius)
    yield from _about("memory full", filter(full, devices))
    yield from _uneven([one for one in devices if one not in (*idlers, *never)])


def _uneven(devices: Sequence[Device]) -> Iterator[str]:
    """Yield a remark if devices that all work are unevenly busy."""
    known = sorted(_lately(devices), key=itemgetter(0))
    if known and known[-1][0] - known[0][0] >= UNEVEN:
        lowest, least = known[0]
        highest, most = known[-1]
        yield f"uneven lately: GPU {name(least)} {lowest:.0f}%, GPU {name(most)} {highest:.0f}%"


def _about(
    what: str, found: Iterable[Device], more: Callable[[Device], str] = lambda _: ""
) -> Iterator[str]:
    devices = list(found)
    if devices:
        yield f"{what}: GPU {_listed(devices, more)}"


def _celsius(device: Device) -> str:
    return f" {device.gpu.temperature:.0f}°C"


def _reason(device: Device) -> str:
    return " " + next(word for word in device.gpu.throttle or () if word != POWER_CAP)


def side_by_side(parts: Iterable[str], width: int) -> list[str]:
    """Return parts side by side in lines; only parts longer than a line are broken."""
    lines: list[str] = []
    for words in parts:
        part = words
        if lines and cell_len(lines[-1]) + 2 + cell_len(part) <= width:
            lines[-1] += f"  {part}"
        else:
            lines += wrapped(part, width)
    return lines


def _listed(
    devices: Sequence[Device], more: Callable[[Device], str] = lambda _: ""
) -> str:
    named = ", ".join(name(device) + more(device) for device in islice(devices, _NAMED))
    rest = len(devices) - _NAMED
    return named + (f" +{rest} more" if rest > 0 else "")

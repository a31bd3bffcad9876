"""What stands out among devices, in words: who is idle while others work, who lags behind, who is
held down.

Judged by what a device did lately: for a moment every device is idle between two kernels.
Heuristics, all of them.
"""

from __future__ import annotations

from itertools import islice
from statistics import median
from typing import TYPE_CHECKING

from rich.cells import cell_len

from verl_tui.records import POWER_CAP
from verl_tui.rendering.gpus.device_rows import FULL_SHARE, HOT_CELSIUS, finite
from verl_tui.rendering.text.printable import wrapped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from verl_tui.runs.views.devices import Device

IDLE = 10.0
"""Percent of utilisation below which a device idles, while another one works."""
WORKS = 40.0
"""Percent from which on a device works."""
UNEVEN = 30.0
"""Percentage points between the busiest rank and the least busy one that are called uneven."""
_NAMED = 4
"""Devices called by their names; the others are counted."""


def name(device: Device) -> str:
    """Return what a device is called: `3`, or `node2:3` where there are several nodes."""
    return f"{device.node}:{device.gpu.index}" if device.node else device.gpu.index


def busy(device: Device) -> float | None:
    """Return a device's utilisation from 0 to 100, None where it is unknown."""
    percent = finite(device.gpu.utilization)
    return None if percent is None else min(max(percent, 0.0), 100.0)


def idle(devices: Sequence[Device]) -> list[Device]:
    """Return the devices that idle while others work; where nobody works nobody is to blame."""
    known = [device.lately for device in devices if device.lately is not None]
    if max(known, default=0.0) < WORKS:
        return []
    return [device for device in devices if device.lately is not None and device.lately < IDLE]


def throttled(device: Device) -> bool:
    """Tell whether a device is held down by more than its power limit."""
    return any(word != POWER_CAP for word in device.gpu.throttle or ())


def hot(device: Device) -> bool:
    """Tell whether a device is about to slow down."""
    celsius = finite(device.gpu.temperature)
    return celsius is not None and celsius >= HOT_CELSIUS


def full(device: Device) -> bool:
    """Tell whether nearly all memory of a device is taken."""
    used, total = device.gpu.memory_used, device.gpu.memory_total
    return used is not None and bool(total) and total is not None and used >= FULL_SHARE * total


def summary(devices: Sequence[Device], *, short: bool = False) -> list[str]:
    """Return how many devices there are and what they do, part by part; `short` says it in fewer
    letters.
    """
    nodes = len({device.node for device in devices})
    parts = [
        f"{len(devices)} GPU{'s' * (len(devices) != 1)}"
        + (f" on {nodes} nodes" if nodes > 1 else "")
    ]
    known = [percent for device in devices if (percent := busy(device)) is not None]
    if known:
        form = "{:.0f}/{:.0f}/{:.0f}%" if short else "min {:.0f} med {:.0f} max {:.0f}%"
        parts.append(form.format(min(known), median(known), max(known)))
    if idlers := idle(devices):
        parts.append(f"{len(idlers)} idle: {_listed(idlers)}")
    watts = [power for gpu, *_ in devices if (power := finite(gpu.power)) is not None]
    if watts:
        parts.append(f"{sum(watts) / 1000:.1f} kW" if sum(watts) >= 1000 else f"{sum(watts):.0f} W")
    return parts


def callouts(devices: Sequence[Device], *, idlers_said: bool = False) -> Iterator[str]:
    """Yield a few words for each thing that stands out; who is idle may have been said."""
    idlers = idle(devices)
    if idlers and not idlers_said:
        yield f"idle: GPU {_listed(idlers)}"
    yield from _about("throttled", filter(throttled, devices), _reason)
    yield from _about(
        "hot", filter(hot, devices), lambda device: f" {device.gpu.temperature:.0f}°C"
    )
    yield from _about("memory full", filter(full, devices))
    working = [d for d in devices if d.lately is not None and d not in idlers]
    spread = sorted(working, key=lambda device: device.lately or 0.0)
    if spread and (spread[-1].lately or 0.0) - (spread[0].lately or 0.0) >= UNEVEN:
        least, most = spread[0], spread[-1]
        yield (
            f"uneven lately: GPU {name(least)} {least.lately:.0f}%, GPU {name(most)} "
            f"{most.lately:.0f}%"
        )


def _about(
    what: str, found: Iterable[Device], more: Callable[[Device], str] = lambda _: ""
) -> Iterator[str]:
    if devices := list(found):
        yield f"{what}: GPU {_listed(devices, more)}"


def _reason(device: Device) -> str:
    return " " + next(word for word in device.gpu.throttle or () if word != POWER_CAP)


def packed(parts: Iterable[str], width: int, *, ascii_only: bool = False) -> list[str]:
    """Return parts side by side, in as many lines as they need; a part is broken only where it fits
    no line.
    """
    lines: list[str] = []
    for words in parts:
        part = words.replace("°", "") if ascii_only else words
        if lines and cell_len(lines[-1]) + 2 + cell_len(part) <= width:
            lines[-1] += f"  {part}"
        else:
            lines += wrapped(part, width, ascii_only=ascii_only)
    return lines


def _listed(devices: Sequence[Device], more: Callable[[Device], str] = lambda _: "") -> str:
    named = ", ".join(name(device) + more(device) for device in islice(devices, _NAMED))
    rest = len(devices) - _NAMED
    return named + (f" +{rest} more" if rest > 0 else "")

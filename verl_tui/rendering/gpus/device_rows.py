"""Devices as one row each, in columns that align between them. Widths are terminal cells."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Literal, NamedTuple

from rich.cells import cell_len

from verl_tui.means import clamp
from verl_tui.patterns import pattern
from verl_tui.records import POWER_CAP
from verl_tui.rendering.text.block_levels import strip
from verl_tui.rendering.text.wrap import ELLIPSIS, fit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from verl_tui.records import Gpu

Role = Literal["name", "bar", "value", "warn", "dim", "spark"]
"""Role of a segment, which the theme colours."""
Segment = tuple[str, Role]

HOT_CELSIUS = 85.0
"""Temperature that is marked: data centre boards slow down from a few degrees above it."""
FULL_SHARE = 0.98
"""Share of used memory that is marked: the next allocation may fail."""

_GIB = 1 << 30
_LONGEST_NAME = 16
_LONGEST_BAR = 24
_LEAST_HISTORY = 8
_MOST_HISTORY = 40
_LEAST_BAR = 6
"""Shortest bar beside a history, in cells."""
_WORDS = len("power brake")
"""Cells for a throttle reason, kept free so that nothing moves when one comes and goes."""
_NOTHING = "–"
_EIGHTHS = " ▏▎▍▌▋▊▉█"

# Words that all boards of a host share, or that are less informative than the model.
_NOISE = pattern(
    r"-?\b(?:NVIDIA|GeForce|Tesla|Quadro|Generation|Blackwell|Server|Workstation|Edition|GPU"
    r"|SXM\d*|PCIe|HBM\w*|\d+ ?GB)\b",
    re.IGNORECASE,
)
_INSTANCE = pattern(r"\bMIG\b.*")

_FRAME = ("▕", "▏")
_BARS = frozenset({"bar", "frame"})
# Fields from left to right and the shortest bar worth drawing, from the richest layout to the
# poorest.
_LAYOUTS: tuple[tuple[tuple[str, ...], int], ...] = (
    (("index", "name", "frame", "utilization", "memory", "temperature", "power"), 6),
    (("index", "name", "bar", "utilization", "used/total", "temperature", "watts"), 4),
    (("index", "bar", "utilization", "used/total", "temperature", "watts"), 4),
    (("index", "bar", "utilization", "used/total", "temperature"), 4),
    (("index", "bar", "utilization", "used"), 3),
    (("index", "utilization", "used"), 0),
    (("index", "utilization"), 0),
    # the only field that is cut: half a number would be a wrong number
    (("index",), 0),
)


class _Field(NamedTuple):
    """One value of one device, as text."""

    text: str
    role: Role = "value"
    reserve: int = 0
    """Smallest width, so that columns stay in place while values change."""
    label: str = ""
    """Dimmed text before the value."""
    left: bool = False
    """True if aligned to the left, as numbers are not."""

    @property
    def width(self) -> int:
        """Cells of the text with its label."""
        return cell_len(self.label) + cell_len(self.text)


def gpu_model(name: str) -> str:
    """Return the model: `H100` of `NVIDIA H100 80GB HBM3`, `MIG 1g.10gb` of an instance."""
    instance = _INSTANCE.search(name)
    if instance is not None:
        return instance.group()
    return " ".join(_NOISE.sub(" ", name).split()) or name


def device_rows(
    gpus: Sequence[Gpu], width: int, *, past: Sequence[Sequence[float]] = ()
) -> list[list[Segment]]:
    """Lay out devices as one row each, e.g. `0 H100 ▕███████▏ 87% mem 62.1/79.6 GiB 71°C 512/700W`.

    All rows share the richest layout that fits the widest of them. Unknown values show as `–`. If
    there is room, the history follows the bar, and the throttle reason ends the row.

    Args:
        gpus: The devices, in the order to show.
        width: Most cells a row may take; rows may stay shorter.
        past: Utilisation of each device until now, oldest first; empty to show none.

    Returns:
        One list of segments for each device; empty lists where `width` is not positive.
    """
    if width <= 0:
        return [[] for _ in gpus]
    if not gpus:
        return []
    fields = [_fields(gpu) for gpu in gpus]
    widths = _widths(fields)
    layout, spare = _layout(widths, width)
    with_reasons, bar, spark = _divided(spare, with_history=bool(past))
    framed = "frame" in layout
    histories = past or [()] * len(gpus)
    rows = []
    for gpu, texts, history in zip(gpus, fields, histories, strict=True):
        picture = _bar(gpu.utilization, bar, framed=framed)
        if spark:
            blocks = strip(history, spark).rjust(spark)
            picture += [(" ", "dim"), (blocks, "spark")]
        row = _row(texts, layout, widths, picture, width, ELLIPSIS)
        if with_reasons:
            row += _throttle_reason(gpu)
        rows.append(row)
    return rows


def _widths(rows: Sequence[Mapping[str, _Field]]) -> dict[str, int]:
    """Return the width of each column in cells."""
    widths = dict.fromkeys(rows[0], 0)
    for row in rows:
        for key, field in row.items():
            widths[key] = max(widths[key], field.width, field.reserve)
    return widths


def _layout(widths: Mapping[str, int], width: int) -> tuple[tuple[str, ...], int]:
    """Return the richest layout that fits, and the cells left for its bar."""
    for layout, shortest in _LAYOUTS:
        shown = [key for key in layout if key in _BARS or widths[key]]
        gaps = len(shown) - 1
        frame = 2 if "frame" in layout else 0
        texts = sum(widths[key] for key in shown if key not in _BARS)
        spare = width - gaps - frame - texts
        if spare >= shortest:
            return tuple(shown), spare if _BARS & set(layout) else 0
    return _LAYOUTS[-1][0], 0


def _divided(spare: int, *, with_history: bool) -> tuple[bool, int, int]:
    """Return whether there is room for throttle reasons, and the cells of bar and history."""
    history = _LEAST_HISTORY + 1 if with_history else 0
    with_reasons = spare > _LONGEST_BAR + _WORDS + history
    if with_reasons:
        spare -= _WORDS + 1
    return with_reasons, *_bar_and_history(spare, wanted=with_history)


def _bar_and_history(spare: int, *, wanted: bool) -> tuple[int, int]:
    """Divide cells between the bar and the history."""
    if not wanted or spare < _LEAST_BAR + 1 + _LEAST_HISTORY:
        return min(spare, _LONGEST_BAR), 0
    bar = clamp((spare - 1) // 3, _LEAST_BAR, _LONGEST_BAR)
    return bar, min(spare - 1 - bar, _MOST_HISTORY)


def _throttle_reason(gpu: Gpu) -> list[Segment]:
    """Return the worst reason for throttled clocks."""
    if not gpu.throttle:
        return []
    reason = gpu.throttle[0]
    return [(" ", "dim"), (reason[:_WORDS], "dim" if reason == POWER_CAP else "warn")]


def _row(
    fields: Mapping[str, _Field],
    layout: Sequence[str],
    widths: Mapping[str, int],
    bar: list[Segment],
    width: int,
    mark: str,
) -> list[Segment]:
    row: list[Segment] = []
    for key in layout:
        if row:
            row.append((" ", "dim"))
        if key in _BARS:
            row += bar
            continue
        field = fields[key]
        padding: Segment = (" " * (widths[key] - field.width), "dim")
        value: Segment = (field.text, field.role)
        row.append((field.label, "dim"))
        row += (value, padding) if field.left else (padding, value)
    if layout == _LAYOUTS[-1][0]:
        row = [(fit(text, width, mark), role) for text, role in row if text.strip()]
    return [segment for segment in row if segment[0]]


def _bar(utilization: float | None, cells: int, *, framed: bool) -> list[Segment]:
    """Return a bar of `cells` cells, and two more for its frame."""
    share = clamp((finite(utilization) or 0.0) / 100, 0.0, 1.0)
    full, eighths = divmod(round(share * cells * 8), 8)
    filled = "█" * full
    if eighths:
        filled += _EIGHTHS[eighths]
    left = right = ""
    if framed:
        left, right = _FRAME
    return [
        (left, "dim"),
        (filled, "bar"),
        (" " * (cells - len(filled)), "dim"),
        (right, "dim"),
    ]


def _fields(gpu: Gpu) -> dict[str, _Field]:
    """Return every field that a layout may show."""
    used = _gib(gpu.memory_used)
    total = _gib(gpu.memory_total)
    power = finite(gpu.power)
    limit = finite(gpu.power_limit)
    full = used is not None and total is not None and used >= FULL_SHARE * total
    temperature = finite(gpu.temperature)
    hot = temperature is not None and temperature >= HOT_CELSIUS
    name = fit(gpu_model(gpu.name), _LONGEST_NAME)
    most_used = 0 if total is None else len(f"{total:.0f}G")
    return {
        "index": _Field(gpu.index, "name", left=True),
        "name": _Field(name, "name", left=True),
        "utilization": _number(finite(gpu.utilization), "%", reserve=4),
        "temperature": _number(temperature, "°C", reserve=4, warn=hot),
        "memory": _pair(used, total, " GiB", digits=1, warn=full, label="mem "),
        "used/total": _pair(used, total, "G", warn=full),
        "used": _number(used, "G", reserve=most_used, warn=full),
        "power": _pair(power, limit, "W"),
        "watts": _number(power, "W", reserve=4),
    }


def _number(
    value: float | None, unit: str, *, reserve: int, warn: bool = False
) -> _Field:
    if value is None:
        return _Field(_NOTHING, "dim", reserve)
    return _Field(f"{value:.0f}{unit}", "warn" if warn else "value", reserve)


def _pair(
    value: float | None,
    limit: float | None,
    unit: str,
    *,
    digits: int = 0,
    warn: bool = False,
    label: str = "",
) -> _Field:
    """Return a value with its limit, `512/700W`."""
    if value is None and limit is None:
        return _Field(_NOTHING, "dim", label=label)
    first = _NOTHING if value is None else f"{value:.{digits}f}"
    if limit is None:
        return _Field(f"{first}{unit}", label=label)
    last = f"{limit:.{digits}f}{unit}"
    reserve = len(label) + 2 * len(last) - len(unit) + 1
    return _Field(f"{first}/{last}", "warn" if warn else "value", reserve, label)


def finite(value: float | None) -> float | None:
    """Return a finite value, None for others."""
    if value is not None and math.isfinite(value):
        return value
    return None


def _gib(size: int | None) -> float | None:
    return None if size is None else size / _GIB

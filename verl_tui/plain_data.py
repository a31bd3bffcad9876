"""Our own data, ready for JSON."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, TypeAlias

Data: TypeAlias = "Mapping[str, Any]"
"""An object of JSON, or what becomes one: texts, numbers, lists and the like, by name."""
_PLAIN = (bool, int, str, type(None))


def plain(value: Any) -> Any:
    """Return data for JSON, which knows neither NaN nor infinity nor objects: a named tuple becomes
    a mapping of its fields, a member of an enumeration its value.
    """
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple | map):
        return [plain(one) for one in value]
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, _PLAIN) else str(value)


def mapped(value: Any, change: Callable[[str], Any]) -> Any:
    """Return data with each of its texts changed, but not their names."""
    if isinstance(value, dict):
        return {key: mapped(one, change) for key, one in value.items()}
    if isinstance(value, list):
        return [mapped(one, change) for one in value]
    return change(value) if isinstance(value, str) else value


def value_fields(value: float, factor: float = 1) -> dict[str, Any]:
    """Return a value for JSON, which knows neither NaN nor infinity."""
    if not math.isfinite(value):
        return {"value": None, "finite": False}
    return {"value": value if factor == 1 else value * factor}

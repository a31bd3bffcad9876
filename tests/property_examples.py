"""How many examples a property is tried with: `conftest.py` says it in one place."""

from __future__ import annotations

from hypothesis import settings


def examples(part: float) -> int:
    """Return a part of the usual number, at least 1, for properties whose examples take long."""
    return max(1, round(settings.default.max_examples * part))

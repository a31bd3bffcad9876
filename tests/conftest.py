"""Settings of all tests."""

from __future__ import annotations

import gc
import os
from typing import TYPE_CHECKING

from hypothesis import settings

if TYPE_CHECKING:
    import pytest

# How long an example takes says how busy the machine is, not whether the code is right. And a build
# must not fail by chance: there the same examples are tried each time, and not too many; elsewhere
# new ones.
settings.register_profile("here", deadline=None, max_examples=50)
settings.register_profile("ci", deadline=None, derandomize=True, max_examples=25)
settings.load_profile("ci" if os.environ.get("CI") else "here")


_LONG = ("pictures", "browser", "prometheus")
"""Marks of tests that may take half a minute, and would leave the other workers idle at the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the long tests begin first."""
    items.sort(key=lambda item: not any(item.get_closest_marker(mark) for mark in _LONG))


def pytest_collection_finish() -> None:
    """Look for garbage only among what tests make, not among all the modules and tests again and
    again.
    """
    gc.collect()
    gc.freeze()

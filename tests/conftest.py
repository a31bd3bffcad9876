"""Settings of all tests."""

from __future__ import annotations

import os

from hypothesis import settings

# A build must not fail by chance: there the same examples are tried each time, and not too many; elsewhere new ones.
settings.register_profile("ci", derandomize=True, max_examples=40)
if os.environ.get("CI"):
    settings.load_profile("ci")

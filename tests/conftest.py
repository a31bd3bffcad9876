"""Settings of all tests."""

from __future__ import annotations

import os

from hypothesis import settings

# A build must not fail by chance: there the same examples are tried each time, elsewhere new ones.
settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")

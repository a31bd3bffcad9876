"""A reward for ms-swift: the share of the letter `a`; it fails or hangs where `RAISE_AT` or
`HANG_AT` says so.
"""

from __future__ import annotations

import os
import time

from swift.rewards import ORM, orms


class ShareOfA(ORM):
    """Rewards the letter a."""

    calls = 0

    def __call__(self, completions: list[str], **_: object) -> list[float]:
        """Return the share of the letter a in each completion."""
        ShareOfA.calls += 1
        if str(ShareOfA.calls) == os.environ.get("RAISE_AT"):
            raise RuntimeError("reward endpoint answered 503")
        if str(ShareOfA.calls) == os.environ.get("HANG_AT"):
            time.sleep(100_000.0)
        return [text.count("a") / max(1, len(text)) for text in completions]


orms["share_of_a"] = ShareOfA

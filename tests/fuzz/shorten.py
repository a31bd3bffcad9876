"""The shortest walk known that breaks the app the same way."""

from __future__ import annotations

import traceback
from time import monotonic
from typing import TYPE_CHECKING

from fuzz.player import played

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def shortened(
    folder: Path, seed: int, steps: Sequence[str], error: Exception, seconds: float
) -> Sequence[str]:
    """Leave out as many steps as possible while the same error comes, for so many seconds.

    Args:
        folder: Where worlds may be made.
        seed: Of the world.
        steps: A walk that ends with the error.
        error: The error.
        seconds: How long walks may be tried.
    """
    until = monotonic() + seconds
    wanted = _place(error)
    least = list(steps)
    tries = 0

    def breaks(some: Sequence[str]) -> bool:
        nonlocal tries
        tries += 1
        found = played(folder / f"shorter-{tries}", seed, some)[1]
        return found is not None and _place(found) == wanted

    for last in (5, 20, 100):  # most errors need no more than the last few steps
        if last < len(least) and breaks(least[-last:]):
            least = least[-last:]
            break
    size = max(1, len(least) // 2)
    while monotonic() < until:
        at, before = 0, len(least)
        while at < len(least) and monotonic() < until:
            some = least[:at] + least[at + size :]
            if some and breaks(some):
                least = some
            else:
                at += size
        if size == 1 and len(least) == before:
            break
        size = max(1, size // 2)
    return least


def _place(error: BaseException) -> tuple[str, str, int]:
    """Return what kind of error it is, and where it comes from."""
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-1] if frames else None
    return (
        type(error).__name__,
        last.filename if last else "",
        last.lineno or 0 if last else 0,
    )

"""Text of a report without secrets and home directories, since others will read it."""

from __future__ import annotations

from functools import cache

from verl_tui.secrets import Mask


def masked(text: str) -> str:
    """Return a text without secrets and homes; names stay, as runs are often named after people."""
    return _mask().text(text)


@cache
def _mask() -> Mask:
    return Mask(keep_names=True)

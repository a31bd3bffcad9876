"""Texts of reports without secrets."""

from __future__ import annotations

from functools import cache

from verl_tui.secrets import Mask


@cache
def _mask() -> Mask:
    return Mask(keep_names=True)


def masked(text: str) -> str:
    """Return a text without secrets and homes; names stay, as runs are often named after people."""
    return _mask().text(text)

"""What is copied of a sample to the clipboard of the terminal, and what is said about it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from verl_tui.records import Sample

_MOST = 74_000
"""Bytes copied at most: terminals refuse longer sequences, and this becomes 100 kB."""


class Clipping(NamedTuple):
    """A text for the clipboard."""

    text: str
    says: str
    """What the user is told."""


def clipping(sample: Sample, *, response_only: bool) -> Clipping:
    """Return as much of a sample as a terminal takes."""
    text = sample.response if response_only else "\n\n".join((sample.prompt, sample.response))
    data = text.encode("utf-8", "replace")
    copied = data[:_MOST].decode("utf-8", "ignore")
    whole = "" if len(data) <= _MOST else f" of {len(text):,}, terminals take no more"
    tmux = "; tmux needs set-clipboard on" if os.environ.get("TMUX") else ""
    return Clipping(copied, f"copied {len(copied):,} characters{whole}{tmux}")

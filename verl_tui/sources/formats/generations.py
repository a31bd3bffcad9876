"""EasyR1's `generations.log`: the samples of its validations as it prints them, without their steps
(verl/utils/logger/gen_logger.py:52-57).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.sources.formats.console.decoder import ConsoleDecoder
from verl_tui.sources.formats.lines import LineReader

if TYPE_CHECKING:
    from pathlib import Path

name = "EasyR1 generations"
rank = 7  # as other files of samples
anchor = False


def matches(path: Path, head: bytes) -> bool:
    """Return whether a file begins with a sample."""
    return head.startswith(b"[prompt] ") and b"\n[output] " in head


def reader(path: Path) -> LineReader:
    """Return a reader for one file."""
    return LineReader(Generations())


class Generations(ConsoleDecoder):
    """Reads the samples as those on a console."""

    @property
    def note(self) -> str | None:
        """Return what is not known of them."""
        return "samples of validations: they state no step"

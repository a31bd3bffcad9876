"""The end of a log at an earlier moment, since a replay shows nothing that was written later."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.means import clamp
from verl_tui.patterns import pattern
from verl_tui.sources.files.tail import CHUNK

if TYPE_CHECKING:
    from verl_tui.on_demand.log.log_blocks import LogFile

_STEP = pattern(rb'(?<![\w:])step:(\d{1,15}) - |"(?:global_)?step": ?(\d{1,15})\b')
"""Steps in consoles and in records of JSONL files."""


class ReplayCutoff(NamedTuple):
    """The end of a log at an earlier moment."""

    size: int
    """Approximate size in bytes, known to the number of records in what is read at once."""
    step: int | None
    """Step reached at that moment."""

    def end(self, file: LogFile) -> int:
        """Return the end of the file: after the line of the step reached, before the next's. Where
        a file goes on after a crash, the same steps come once more: the nearest are meant.
        """
        if self.size >= file.size:
            return file.size
        begin = max(0, self.size - CHUNK)
        data = file.read(begin, self.size - begin + CHUNK)
        stop = begin + len(data)
        lines: list[tuple[int, int, int | None]] = [(begin, begin, None)]
        for found in _STEP.finditer(data):
            start = data.rfind(b"\n", 0, found.start()) + 1 + begin
            after = data.find(b"\n", found.end()) + 1 + begin
            if after > begin and start >= lines[-1][1]:
                lines.append((start, after, int(found[1] or found[2])))
        step = -1 if self.step is None else self.step

        def fit(gap: tuple[tuple[int, int, int | None], ...]) -> tuple[int, int]:
            """Return what sorts the parts between two lines that name steps."""
            (_, low, before), (high, _, after) = gap
            if before == step != after:
                worse = 0
            else:
                around = (before or -1) <= step and (after is None or after > step)
                worse = 1 if around else 2
            return worse, max(low - self.size, self.size - high)

        (_, low, _), (high, *_) = min(pairwise([*lines, (stop, stop, None)]), key=fit)
        at = clamp(self.size, low, high)
        start = data.rfind(b"\n", 0, at - begin) + 1 + begin
        return max(start, low) if start > begin else max(0, file.line_start(at))

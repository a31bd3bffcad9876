"""The end of a log at an earlier moment, since a replay shows nothing that was written later."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.patterns import pattern
from verl_tui.sources.files.tail import CHUNK

if TYPE_CHECKING:
    from verl_tui.on_demand.log.log_blocks import LogFile

_STEP = pattern(rb'(?<![\w:])step:(\d{1,15}) - |"(?:global_)?step": ?(\d{1,15})\b')
"""Steps in consoles and in records of JSONL files."""


class _Gap(NamedTuple):
    """The part between two lines that name steps."""

    begin: int
    end: int
    before: int | None
    """Step of the line above, None if none is in sight."""
    after: int | None

    def encloses(self, step: int) -> bool:
        """True if a step is not before the line above and before the one below."""
        return (self.before or -1) <= step and (self.after is None or self.after > step)


class ReplayCutoff(NamedTuple):
    """The end of a log at an earlier moment."""

    size: int
    """Approximate size in bytes, known to the number of records in what is read at once."""
    step: int | None
    """Step reached at that moment."""

    def end(self, file: LogFile) -> int:
        """Return the end of the file: after the line of the step reached, before the next's."""
        if self.size >= file.size:
            return file.size
        begin = max(0, self.size - CHUNK)
        data = file.read(begin, self.size - begin + CHUNK)
        gaps = _gaps(data, begin)
        # Where a file goes on after a crash, the same steps come once more: the nearest are meant.
        gap = min(
            self._own(gaps),
            key=lambda one: max(one.begin - self.size, self.size - one.end),
        )
        at = min(max(self.size, gap.begin), gap.end)
        start = data.rfind(b"\n", 0, at - begin) + 1 + begin
        if start > begin:
            return max(start, gap.begin)
        return max(0, file.line_start(at))

    def _own(self, gaps: list[_Gap]) -> list[_Gap]:
        """Return the gaps in which the file may have ended, all if no step is known."""
        step = -1 if self.step is None else self.step
        behind = [gap for gap in gaps if gap.before == step != gap.after]
        return behind or [gap for gap in gaps if gap.encloses(step)] or gaps


def _gaps(data: bytes, begin: int) -> list[_Gap]:
    """Return the parts before, between and after the lines that name steps."""
    lines: list[tuple[int, int, int | None]] = [(begin, begin, None)]
    for found in _STEP.finditer(data):
        start = data.rfind(b"\n", 0, found.start()) + 1 + begin
        end = data.find(b"\n", found.end()) + 1 + begin
        if end > begin and start >= lines[-1][1]:
            lines.append((start, end, int(found[1] or found[2])))
    lines.append((begin + len(data), begin + len(data), None))
    return [
        _Gap(before[1], after[0], before[2], after[2])
        for before, after in pairwise(lines)
    ]

"""A format that somebody adds: a diary with a line a step, `day 3: mood=0.5 sleep=7`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from verl_tui.sources.fields.jsonl import unreadable
from verl_tui.sources.fields.row_batcher import MetricRow
from verl_tui.sources.formats.lines import Decoder, LineReader

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from verl_tui.records import Record

name = "diary"
rank = 2
anchor = True


def matches(path: Path, head: bytes) -> bool:
    """Return whether a text begins with a day."""
    return re.match(rb"day \d+: ", head) is not None


def reader(path: Path) -> LineReader:
    """Return a reader for one file."""
    return LineReader(DiaryDecoder())


class DiaryDecoder(Decoder):
    """Decodes a day's line."""

    parted = True

    def decode(self, line: bytes, number: int) -> Sequence[MetricRow | Record]:
        """Return the row of one day."""
        found = re.fullmatch(r"day (\d+): (.*)", line.decode())
        if found is None:
            return (unreadable(line, number, "no day"),)
        pairs = (word.split("=") for word in found[2].split())
        return (MetricRow.of(int(found[1]), {key: float(at) for key, at in pairs}),)

"""Rollout and validation dumps: `{step}.jsonl`, one sample a line (verl `trainer.rollout_data_dir`)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from verl_tui.records import Restart
from verl_tui.sources.jsonl import JsonDecoder, first_object
from verl_tui.sources.lines import LineReader
from verl_tui.sources.sample import is_padding, read_sample

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from verl_tui.records import Record
    from verl_tui.sources.gather import Row

name = "rollout dump"
rank = 4
anchor = False
SAMPLES_A_STEP = 512
"""Samples kept of one dump; a batch of 1024 prompts by 8 responses is more than anybody reads."""
_STEM = re.compile(r"^\d+$")
_VALIDATION = re.compile(r"val|eval|test", re.IGNORECASE)


def is_dump(path: Path) -> bool:
    """Tell from its name whether a file is a dump of one step."""
    return path.suffix == ".jsonl" and _STEM.match(path.stem) is not None


def matches(path: Path, head: bytes) -> bool:
    """Tell whether a file is named by its step and holds samples."""
    if not is_dump(path):
        return False
    first = first_object(head)
    return first is None or read_sample(first) is not None


def reader(path: Path) -> LineReader:
    """Return a reader for one file."""
    return LineReader(RolloutDecoder(int(path.stem), validation=_VALIDATION.search(path.parent.name) is not None))


class RolloutDecoder(JsonDecoder):
    """Decodes the samples of one step."""

    def __init__(self, step: int, *, validation: bool) -> None:
        self.step = step
        self.validation = validation
        self._kept = 0

    def restart(self) -> Sequence[Row | Record]:
        """The dump is written again: its samples replace the earlier ones."""
        self._kept = 0
        return (Restart("dump written again", self.step, self.validation),)

    def read(self, record: dict[str, Any]) -> Iterable[Row | Record]:
        """Return the sample of one object; rows that only pad the batch are left out."""
        if self._kept >= SAMPLES_A_STEP or is_padding(record):
            return ()
        sample = read_sample(record, self.step, validation=self.validation)
        if sample is None:
            raise ValueError("no prompt and response")
        self._kept += 1
        return (sample,)

"""Rollout and validation dumps: `{step}.jsonl`, one sample a line (verl
`trainer.rollout_data_dir`).

Directories of them are read by `verl_tui.sources.folders.dumps`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from verl_tui.patterns import pattern
from verl_tui.records import Restart
from verl_tui.sources.fields.jsonl import JsonDecoder, first_object
from verl_tui.sources.fields.sample import is_padding, is_validation, read_sample
from verl_tui.sources.formats.lines import LineReader

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from verl_tui.records import Record
    from verl_tui.sources.fields.row_batcher import MetricRow

name = "rollout dump"
rank = 7  # the figures of all samples go before those of the few that trainers show
anchor = False
_NAME = pattern(r"([0-9]{1,15})\.jsonl")


def dump_step(name: str) -> int | None:
    """Return the step of a dump's file name, None if it is none."""
    found = _NAME.fullmatch(name)
    if not found:
        return None
    return int(found.group(1))


def is_dump(path: Path) -> bool:
    """Tell from its name whether a file is a dump of one step."""
    return dump_step(path.name) is not None


def matches(path: Path, head: bytes) -> bool:
    """Return whether a file is named by its step and holds samples."""
    if not is_dump(path):
        return False
    first = first_object(head)
    return first is None or read_sample(first) is not None


def reader(path: Path) -> LineReader:
    """Return a reader for a dump that is read from end to end, as only compressed ones are: see
    `DumpSource`.
    """
    return LineReader(
        RolloutDecoder(int(path.stem), validation=is_validation(path.parent.name))
    )


class RolloutDecoder(JsonDecoder):
    """Decodes the samples of one step."""

    def __init__(self, step: int, *, validation: bool) -> None:
        self.step = step
        self.validation = validation

    def restart(self) -> Sequence[MetricRow | Record]:
        """The dump is written again: its samples replace the earlier ones."""
        return (Restart("dump written again", self.step, self.validation),)

    def read(self, record: dict[str, Any]) -> Iterable[MetricRow | Record]:
        """Return the sample of one object; rows that only pad the batch are left out."""
        if is_padding(record):
            return ()
        sample = read_sample(record, self.step, validation=self.validation)
        if sample is None:
            raise ValueError("no prompt and response")
        return (sample,)

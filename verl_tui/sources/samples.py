"""Sample records in a file of their own: evaluation results, conversations, prompts with responses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from verl_tui.sources.jsonl import JsonDecoder, first_object
from verl_tui.sources.lines import LineReader
from verl_tui.sources.sample import read_sample

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from verl_tui.records import Record
    from verl_tui.sources.gather import Row

name = "samples"
rank = 4
anchor = False


def matches(path: Path, head: bytes) -> bool:
    """Tell whether the first object is a sample."""
    first = first_object(head)
    return first is not None and "scope" not in first and read_sample(first) is not None


def reader(path: Path) -> LineReader:
    """Return a reader for one file."""
    return LineReader(SampleDecoder())


class SampleDecoder(JsonDecoder):
    """Decodes one sample a line."""

    def read(self, record: dict[str, Any]) -> Iterable[Row | Record]:
        """Return the sample of one object."""
        sample = read_sample(record)
        if sample is None:
            raise ValueError("no prompt and response")
        return (sample,)

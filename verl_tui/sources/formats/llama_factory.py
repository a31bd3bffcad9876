"""LLaMA-Factory's `trainer_log.jsonl`: one record a logged step or evaluation, written as the
training goes on.

It states `current_steps` of `total_steps` and calls two metrics otherwise than the Hugging Face
trainer below it, whose names they get back here (llamafactory/train/callbacks.py,
`LogCallback.on_log`).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from verl_tui.sources.fields.jsonl import Flaw, first_object
from verl_tui.sources.formats.lines import LineParts, LineReader
from verl_tui.sources.formats.tutorial import TutorialDecoder

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from verl_tui.records import Record
    from verl_tui.sources.fields.row_batcher import MetricRow

name = "LLaMA-Factory log"
rank = 4
anchor = True

_TRAINERS = {"lr": "learning_rate", "accuracy": "rewards/accuracies"}
_DROPPED = "percentage"
"""The share of the steps that are done."""


def matches(path: Path, head: bytes) -> bool:
    """Return whether the first object states its step as LLaMA-Factory does."""
    first = first_object(head)
    return first is not None and {"current_steps", "total_steps"} <= first.keys()


def reader(path: Path) -> LineReader:
    """Return a reader for one file."""
    return LineReader(LlamaFactoryDecoder())


class LlamaFactoryDecoder(TutorialDecoder):
    """Decodes the records of a training."""

    def read(self, record: dict[str, Any]) -> Iterable[MetricRow | Record | Flaw]:
        """Return the row of one object."""
        return super().read(
            {
                _TRAINERS.get(key, key): value
                for key, value in record.items()
                if key != _DROPPED
            }
        )


parts = LineParts(partial(LlamaFactoryDecoder, skipped=True))

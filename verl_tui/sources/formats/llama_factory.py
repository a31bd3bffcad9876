"""LLaMA-Factory's `trainer_log.jsonl`: one record a logged step or evaluation, written as the
training goes on.

It states `current_steps` of `total_steps` and calls two metrics otherwise than the Hugging Face
trainer below it, whose names they get back here (llamafactory/train/callbacks.py,
`LogCallback.on_log`).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from verl_tui.sources.fields.jsonl import first_object
from verl_tui.sources.formats.format import Parts
from verl_tui.sources.formats.lines import LineReader, line_begin
from verl_tui.sources.formats.tutorial import TutorialDecoder

if TYPE_CHECKING:
    from pathlib import Path

name = "LLaMA-Factory log"
rank = 4
anchor = True

_SPELLED = {
    "lr": "learning_rate",
    "accuracy": "rewards/accuracies",
    "percentage": "",  # the share of the steps that are done
}
_decoder = partial(TutorialDecoder, spelled=_SPELLED)


def matches(path: Path, head: bytes) -> bool:
    """Return whether the first object states its step as LLaMA-Factory does."""
    first = first_object(head)
    return first is not None and {"current_steps", "total_steps"} <= first.keys()


def reader(path: Path) -> LineReader:
    """Return a reader for one file."""
    return LineReader(_decoder())


parts = Parts(line_begin, lambda *_: LineReader(_decoder(skipped=True)))

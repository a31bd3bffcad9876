"""How many steps a run is to take, and when that is not known."""

from __future__ import annotations

import pytest

from verl_tui.records import Batch, SourceStatus
from verl_tui.runs.run import Run
from verl_tui.sources.formats.console import reader as console

CONFIG = (
    "{'data': {'train_batch_size': 8},",
    " 'trainer': {'total_epochs': 3, 'total_training_steps': None}}",
)


def read(*lines: str) -> Run:
    run = Run("r")
    records = console.reader(None).feed(("\n".join(lines) + "\n").encode())
    run.apply(Batch("r", SourceStatus("train.log", console.name), tuple(records)), 0.0)
    return run


SIZE, SAID = "Size of train dataloader: 58", "Total training steps: 30"
PROMPTS = (
    "{'data': {'train_batch_size': 8, 'train_dataset_size': 470},",
    " 'trainer': {'total_epochs': 3}}",
)


@pytest.mark.parametrize(
    ("lines", "step", "total"),
    [
        ([*CONFIG, f"{SIZE}, Size of val dataloader: 1"], 1, 3 * 58),
        (PROMPTS, 1, 3 * 58),
        ([*CONFIG, SIZE, SAID], 1, 30),  # what the trainer says goes first
        ([SAID], 31, None),  # no run is beyond its total
        ([*CONFIG, SIZE, SAID], 31, 3 * 58),
        ([*CONFIG, SIZE], 175, None),
    ],
)
def test_how_many_steps_there_are(lines, step, total):
    assert read(*lines, f"step:{step} - a:1").total_steps == total

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


def test_epochs_times_the_length_of_the_dataloader():
    run = read(
        *CONFIG,
        "Size of train dataloader: 58, Size of val dataloader: 1",
        "step:1 - a:1",
    )
    assert run.total_steps == 3 * 58


def test_epochs_times_the_prompts_there_are():
    config = (
        "{'data': {'train_batch_size': 8, 'train_dataset_size': 470},",
        " 'trainer': {'total_epochs': 3}}",
    )
    assert read(*config, "step:1 - a:1").total_steps == 3 * 58


def test_what_the_trainer_says_goes_before_what_is_worked_out():
    run = read(
        *CONFIG,
        "Size of train dataloader: 58",
        "Total training steps: 30",
        "step:1 - a:1",
    )
    assert run.total_steps == 30


def test_transformers_say_it_with_commas():
    assert (
        read("  Total optimization steps = 1,250", "step:1 - a:1").total_steps == 1250
    )


@pytest.mark.parametrize("bar", ["Epoch 2/20", "Episode [2/20]"])
def test_a_bar_of_one_epoch_counts_for_all_of_them(bar):
    run = read(f"{bar}:  50%|#####     | 29/58 [01:00<01:00,  2.07s/it]")
    assert (run.step, run.total_steps) == (58 + 29, 20 * 58)


def test_no_run_is_beyond_its_total():
    assert read("Total training steps: 30", "step:31 - a:1").total_steps is None
    assert (
        read(
            *CONFIG,
            "Size of train dataloader: 58",
            "Total training steps: 30",
            "step:31 - a:1",
        ).total_steps
        == 174
    )
    assert (
        read(*CONFIG, "Size of train dataloader: 58", "step:175 - a:1").total_steps
        is None
    )


def test_no_epochs_no_total():
    assert read("Size of train dataloader: 58", "step:1 - a:1").total_steps is None

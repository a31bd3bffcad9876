"""How many steps a run is to take, and when that is not known."""

from __future__ import annotations

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

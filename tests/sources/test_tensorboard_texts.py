"""Texts in event files: samples however people write them, settings, and no sample that is none."""

from __future__ import annotations

import json

import pytest

from verl_tui.records import Sample, Settings
from verl_tui.sources.formats.tensorboard import read_texts


def read(
    text: str, tag: str = "rollout/sample_0/text_summary"
) -> list[Sample | Settings]:
    return list(read_texts(tag, 7, [text]))


@pytest.mark.parametrize(
    "text",
    [
        "Prompt: What is 1 + 1?\nResponse: It is 2.\nReward: 0.5",
        "**Prompt:** What is 1 + 1?\n\n**Response:** It is 2.\n\n**Reward:** 0.5",
        "**Prompt**: What is 1 + 1?  \n**Response**: It is 2.  \n**Score**: 0.5  \n",
    ],
)
def test_a_sample_however_it_is_written(text):
    (sample,) = read(text)
    assert sample == Sample(7, "What is 1 + 1?", "It is 2.", 0.5)


@pytest.mark.parametrize("tag", ["eval/samples", "test/text", "values/text", "latest"])
def test_of_what_samples_are(tag):
    (sample,) = read("Prompt: a\nResponse: b", tag)
    assert sample.validation is tag.startswith(("eval", "test"))


def test_samples_of_a_validation_of_verl():
    text = "**Generation Results - Step 7**\n\n" + "".join(
        f"### Sample {at}\n**Input:** a?\n\n**Output:** {at}\n\nb\n\n**Score:** {at}.5\n\n---\n\n"
        for at in (1, 2)
    )
    assert read(text, "val/generations") == [
        Sample(7, "a?", f"{at}\n\nb", at + 0.5, validation=True) for at in (1, 2)
    ]
    (other,) = read("nothing of a sample", "rollout/text")
    assert (other.prompt, other.response) == ("", "nothing of a sample")


def test_what_says_how_a_run_was_started_is_no_sample():
    (args,) = read(
        json.dumps({"learning_rate": 0.5, "fsdp": {"a": 1}}, indent=2),
        "args/text_summary",
    )
    assert args == Settings({"learning_rate": 0.5, "fsdp.a": 1})
    (model,) = read(json.dumps({"hidden_size": 64}), "model_config/text_summary")
    assert model == Settings({"model_config.hidden_size": 64})
    (table,) = read(
        "|param|value|\n|-|-|\n|seed|1|\n|lr|0.1|", "hyperparameters/text_summary"
    )
    assert table == Settings({"hyperparameters.seed": "1", "hyperparameters.lr": "0.1"})
    (words,) = read("python train.py --lr 1", "command")
    assert words == Settings({"command": "python train.py --lr 1"})

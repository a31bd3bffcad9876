"""Speakers are named once: beside their text, not in it too."""

from __future__ import annotations

import pytest

from verl_tui.records import Sample
from verl_tui.rendering.samples.body import body_rows

QWEN = "system\nBe kind.\nuser\n2+2?\nassistant\n3\nuser\nNo.\nassistant\n"
CHATML = (
    "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\n2+2?<|im_end|>\n"
    "<|im_start|>assistant\n3<|im_end|>\n<|im_start|>user\nNo.<|im_end|>\n<|im_start|>assistant\n"
)
WORDS = "system: Be kind.\nuser: 2+2?\nassistant: 3\nuser: No.\nassistant: "


def panel(prompt: str, height: int = 30) -> list[str]:
    rows = body_rows(Sample(step=1, prompt=prompt, response="4"), 80, height)
    return ["".join(text for text, _ in row).rstrip() for row in rows]


@pytest.mark.parametrize("prompt", [QWEN, CHATML, WORDS])
def test_the_panel_names_each_speaker_once(prompt: str) -> None:
    rows = panel(prompt)
    assert sum(row.count("user") for row in rows) == 2
    assert sum(row.count("assistant") for row in rows) == 1, (
        "the last one has said nothing yet"
    )
    (row,) = (row for row in rows if "2+2?" in row)
    assert row.startswith("user      2+2?")

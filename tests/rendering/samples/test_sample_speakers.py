"""Speakers are named once: beside their text, not in it too."""

from __future__ import annotations

import pytest

from verl_tui.records import Sample
from verl_tui.rendering.samples.body import body_rows
from verl_tui.rendering.samples.document import Document
from verl_tui.rendering.text.search import Search

QWEN = "system\nBe kind.\nuser\n2+2?\nassistant\n3\nuser\nNo.\nassistant\n"
CHATML = (
    "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\n2+2?<|im_end|>\n"
    "<|im_start|>assistant\n3<|im_end|>\n<|im_start|>user\nNo.<|im_end|>\n<|im_start|>assistant\n"
)
WORDS = "system: Be kind.\nuser: 2+2?\nassistant: 3\nuser: No.\nassistant: "


def panel(prompt: str, height: int = 30) -> list[str]:
    rows = body_rows(Sample(step=1, prompt=prompt, response="4"), 80, height)
    return ["".join(text for text, _ in row).rstrip() for row in rows]


def full(prompt: str, **more: object) -> list[str]:
    sample = Sample(step=1, prompt=prompt, response="4")
    document = Document(sample, 80, 30, **more)
    document.grow(100)
    return [
        "".join(text for text, _ in document.row(at)) for at in range(len(document))
    ]


@pytest.mark.parametrize("prompt", [QWEN, CHATML, WORDS])
def test_the_panel_names_each_speaker_once(prompt: str) -> None:
    rows = panel(prompt)
    assert sum(row.count("user") for row in rows) == 2
    assert sum(row.count("assistant") for row in rows) == 1, (
        "the last one has said nothing yet"
    )
    (row,) = (row for row in rows if "2+2?" in row)
    assert row.startswith("user      2+2?")


@pytest.mark.parametrize("prompt", [QWEN, CHATML, WORDS])
def test_the_screen_names_each_speaker_once(prompt: str) -> None:
    rows = full(prompt)
    assert sum(row.count("user") for row in rows) == 2
    assert sum(row.count("system") for row in rows) == 1
    assert any("user │ 2+2?" in row for row in rows)


def test_what_was_searched_for_stays() -> None:
    assert sum(row.count("user") for row in full(QWEN, searches=[Search("user")])) == 4


def test_the_raw_text_has_its_own_words_only() -> None:
    assert [row for row in full(QWEN, raw=True) if row in QWEN.split("\n")][:4] == [
        "system",
        "Be kind.",
        "user",
        "2+2?",
    ]


@pytest.mark.parametrize("height", range(1, 12))
def test_a_folded_prompt_counts_the_rows_that_it_hides(height: int) -> None:
    prompt = "system\n" + "Be kind.\n" * 9 + "user\n" + "2+2?\n" * 9 + "assistant\n"
    rows = panel(prompt, height)
    counted = [
        int(row.split(" lines above")[0].split()[-1]) for row in rows if "above" in row
    ]
    shown = [row for row in rows if row.endswith(("Be kind.", "2+2?", "system"))]
    assert len(shown) + sum(counted) == 19 or not counted
    assert len(rows) <= height + 2

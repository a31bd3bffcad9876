"""A few words of each listed response."""

from __future__ import annotations

import pytest

from verl_tui.rendering.samples.excerpts import Excerpt, excerpt


@pytest.mark.parametrize(
    ("response", "words", "answer"),
    [
        (r"<think>hm</think> It is $\boxed{72}$.<|im_end|>", "72", True),
        ("So it goes.\n\n#### 18", "18", True),
        (
            "thought </think>\nThe end\nof it.<|im_end|>",
            "thought The end of it.",
            False,
        ),
        ("x" * 5000 + r" \boxed{1}", "1", True),
        ("", "", False),
    ],
)
def test_excerpts(response: str, words: str, answer: bool) -> None:
    assert excerpt(response) == Excerpt(words, answer)

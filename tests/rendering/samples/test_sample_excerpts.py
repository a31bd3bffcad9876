"""A few words of each listed response."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from verl_tui.on_demand.samples import SampleBrowser
from verl_tui.records import Sample
from verl_tui.rendering.samples.excerpts import Excerpt, Excerpts, excerpt
from verl_tui.runs.samples import Place, Samples
from verl_tui.text import safe


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


def test_pieces() -> None:
    assert Excerpt("seventy-two", answer=True).piece(5) == ("seve…", "answer")
    assert Excerpt("seventy-two", answer=False).piece(5) == ("…-two", "dim")
    assert Excerpt("", answer=False).piece(9) == ("(empty)", "dim")


@given(st.text(max_size=100).map(safe), st.integers(1, 40), st.booleans())
def test_fits(response: str, width: int, ascii_only: bool) -> None:
    text, _ = excerpt(response).piece(width, ascii_only=ascii_only)
    assert cell_len(text) <= width
    assert "\n" not in text


def test_samples_are_looked_at_once_read() -> None:
    kept, place = Samples(), Place(1, validation=False)
    kept.add(Sample(1, "p", "first"), 1)
    page = SampleBrowser(lambda: None).page(kept, place)
    excerpts = Excerpts()
    excerpts.update(page)
    revision = excerpts.revision
    assert excerpts.of(page, 0) == Excerpt("first", answer=False)
    assert excerpts.of(page, 1) is None
    excerpts.update(page)
    assert excerpts.revision == revision
    kept.add(Sample(1, "p", "second"), 1)
    page.show(kept.kept(place))  # type: ignore[attr-defined]
    excerpts.update(page)
    assert excerpts.revision == revision + 1
    assert excerpts.of(page, 1) == Excerpt("second", answer=False)

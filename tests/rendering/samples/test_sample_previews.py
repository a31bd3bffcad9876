"""A few words of each listed response."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from verl_tui.on_demand.samples import SampleBrowser
from verl_tui.records import Sample
from verl_tui.rendering.samples.previews import Preview, Previews, preview
from verl_tui.runs.samples import Place, Samples
from verl_tui.text import safe


@pytest.mark.parametrize(
    ("response", "words", "answer"),
    [
        (r"<think>hm</think> It is $\boxed{72}$.<|im_end|>", "72", True),
        ("So it goes.\n\n#### 18", "18", True),
        ("thought </think>\nThe end\nof it.<|im_end|>", "thought The end of it.", False),
        ("x" * 5000 + r" \boxed{1}", "1", True),
        ("", "", False),
    ],
)
def test_previews(response: str, words: str, answer: bool) -> None:
    assert preview(response) == Preview(words, answer)


def test_pieces() -> None:
    assert Preview("seventy-two", answer=True).piece(5) == ("seve…", "answer")
    assert Preview("seventy-two", answer=False).piece(5) == ("…-two", "dim")
    assert Preview("", answer=False).piece(9) == ("(empty)", "dim")


@given(st.text(max_size=100).map(safe), st.integers(1, 40), st.booleans())
def test_fits(response: str, width: int, ascii_only: bool) -> None:
    text, _ = preview(response).piece(width, ascii_only=ascii_only)
    assert cell_len(text) <= width
    assert "\n" not in text


def test_samples_are_looked_at_once_read() -> None:
    kept, place = Samples(), Place(1, validation=False)
    kept.add(Sample(1, "p", "first"), 1)
    page = SampleBrowser(lambda: None).page(kept, place)
    previews = Previews()
    previews.update(page)
    revision = previews.revision
    assert previews.of(page, 0) == Preview("first", answer=False)
    assert previews.of(page, 1) is None
    previews.update(page)
    assert previews.revision == revision
    kept.add(Sample(1, "p", "second"), 1)
    page.show(kept.kept(place))  # type: ignore[attr-defined]
    previews.update(page)
    assert previews.revision == revision + 1
    assert previews.of(page, 1) == Preview("second", answer=False)

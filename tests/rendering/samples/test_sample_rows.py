"""A sample as rows of text: the header's facts and glyphs, the folded prompt, and that everything
fits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.cells import cell_len

from verl_tui.on_demand.samples import SampleBrowser
from verl_tui.records import Sample
from verl_tui.rendering.samples.body import body_rows
from verl_tui.rendering.samples.listing import SampleListing
from verl_tui.rendering.samples.panel_rows import (
    header_rows,
)
from verl_tui.rendering.samples.query import SampleQuery
from verl_tui.rendering.samples.sample_order import SampleOrder
from verl_tui.runs.samples import Place, Samples

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.rendering.text.piece import Pieces


def sample(step: int, index: int, score: float | None = None, **more: Any) -> Sample:
    more = {
        "prompt": f"prompt {step}-{index}",
        "response": f"response {step}-{index}",
        **more,
    }
    return Sample(step=step, score=float(index % 2) if score is None else score, **more)


def texts(rows: Sequence[Pieces]) -> list[str]:
    return ["".join(text for text, _ in row) for row in rows]


def listed(samples: Sequence[Sample]) -> tuple[Place, SampleListing]:
    """Return what is known of samples of one step, as if they lay in memory."""
    kept = Samples()
    place = Place(samples[0].step or 0, samples[0].validation)
    for one in samples:
        kept.add(one._replace(validation=place.validation), place.step)
    listing = SampleListing()
    listing.update(
        SampleBrowser(lambda: None).page(kept, place), SampleQuery(), SampleOrder()
    )
    return place, listing


def header(
    samples: Sequence[Sample], index: int, width: int, rows: int, **more: Any
) -> list[Pieces]:
    place, listing = listed(samples)
    return header_rows(place, index, listing, width, rows, **more)


def test_header() -> None:
    group = [
        sample(120, i, group="a" if i < 4 else "b", validation=True) for i in range(8)
    ]
    (row,) = texts(header(group, 1, 120, 1))
    assert row.startswith(
        "step 120 · sample 2/8 · ✓ score 1 · 2/4 in its group · 2 of 4 right · validation · "
        "step mean 0.5 "
    )
    assert row.endswith(" ✗[✓]✗✓ ✗✓✗✓")
    assert cell_len(row) == 120
    assert texts(header(group, 1, 60, 2)) == [
        "step 120 · 2/8 · ✓ 1 · group 2/4 · 2 of 4 right · val",
        "✗[✓]✗✓ ✗✓✗✓",
    ]
    assert texts(header(group, 1, 19, 1)) == ["120 · 2/8 · ✓ 1"]
    assert texts(header(group, 9, 60, 1, count=1000)) == [
        "step 120 · sample 10/1000 · validation · step mean 0.5"
    ]


def test_body() -> None:
    shown = sample(
        1,
        1,
        prompt="one\ntwo",
        ground_truth="42",
        extras={"acc": 1.0, "format": 0.5, "pred": "41", "no": None},
    )
    assert texts(body_rows(shown, 80, 10)) == [
        "prompt    one",
        "          two",
        "response  response 1-1",
        "truth     42 · pred 41 differs",
        "extras    acc 1 · format 0.5",
        "          pred: 41",
    ]
    assert texts(body_rows(shown, 30, 10))[:3] == [
        "prompt one",
        "two",
        "response response 1-1",
    ]
    # where there is room, the parts stand apart
    assert texts(body_rows(shown, 80, 40))[2] == ""


def test_a_long_response_keeps_its_beginning_and_its_answer_in_sight() -> None:
    response = "\n".join((*(f"line {n}" for n in range(19)), r"So \boxed{4}."))
    shown = sample(1, 1, prompt="2+2?", response=response, ground_truth="4")
    assert texts(body_rows(shown, 80, 8)) == [
        "prompt    2+2?",
        "response  line 0",
        "          … 15 lines, u unfolds",
        "          line 16",
        "          line 17",
        "          line 18",
        "answer    So \\boxed{4}.",
        "truth     4 · the answer agrees",
    ]
    assert texts(body_rows(shown, 80, 4)) == [
        "prompt    2+2?",
        "response  … line 18",
        "answer    So \\boxed{4}.",
        "truth     4 · the answer agrees",
    ]
    assert texts(body_rows(shown, 30, 3))[1] == "response … So \\boxed{4}."
    assert len(body_rows(shown, 80, 8, unfolded=True)) == 22

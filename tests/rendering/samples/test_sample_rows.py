"""A sample as rows of text: the header's facts and glyphs, the folded prompt, and that everything
fits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from verl_tui.on_demand.samples import SampleBrowser
from verl_tui.records import Batch, Event, EventKind, Sample, SourceStatus
from verl_tui.rendering.samples.body import body_rows
from verl_tui.rendering.samples.listing import SampleListing
from verl_tui.rendering.samples.panel_rows import (
    caption,
    header_height,
    header_rows,
    no_samples,
)
from verl_tui.rendering.samples.query import SampleQuery
from verl_tui.rendering.samples.sample_order import SampleOrder
from verl_tui.rendering.samples.short_row import short_row
from verl_tui.rendering.session.hint_keys import HINT_KEYS
from verl_tui.runs.run import Run
from verl_tui.runs.samples import Place, Samples
from verl_tui.text import safe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.rendering.text.piece import Pieces

HOSTILE = (
    "[red]no[/INST] [/",
    "\x1b[31mred\x1b[0m\x9b2J\x00\rb\tc",
    "\u202ex\u2066",
    "👨\u200d👩\u200d👧 👍🏽 🇩🇪 e\u0301字",
    "汉" * 400,
)


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
    in_ascii = texts(header(group, 1, 81, 1, ascii_only=True))[0]
    assert in_ascii == (
        "step 120 | sample 2/8 | + score 1 | 2/4 in its group | 2 of 4 right | validation"
    )
    assert texts(header(group, 9, 60, 1, count=1000)) == [
        "step 120 · sample 10/1000 · validation · step mean 0.5"
    ]


def test_samples_of_one_prompt_are_a_group_even_if_the_log_names_none() -> None:
    group = [sample(1, i, prompt="agrees") for i in range(3)] + [
        sample(1, 3, prompt="other")
    ]
    assert "3/3 in its group" in texts(header(group, 2, 80, 2))[0]
    assert "group" not in texts(header(group, 3, 80, 2))[0]


def test_many_glyphs_are_cut_around_the_shown_one() -> None:
    many = [sample(1, i, prompt=f"{i // 4}") for i in range(512)]
    for index in (0, 255, 511):
        _, glyphs = header(many, index, 40, 2)
        assert len("".join(texts([glyphs]))) <= 40
        assert sum(role.startswith("here-") for _, role in glyphs) == 1


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


def test_kinds_are_named_in_the_column_of_labels() -> None:
    response = "hm\n</think>\n\nI add.\n\n```\n1+1\n```\nSo \\boxed{2}."
    shown = sample(1, 1, response=response, ground_truth="2.0")
    rows = body_rows(shown, 80, 12)
    assert texts(rows)[1:] == [
        "response  hm",
        "          </think>",
        "          ",
        "assistant I add.",
        "          ",
        "code      ```",
        "          1+1",
        "          ```",
        "answer    So \\boxed{2}.",
        "truth     2.0 · the answer 2 agrees as a number (heuristic)",
    ]
    assert rows[1][1] == ("hm", "thought")
    assert ("\\boxed{2}", "answer") in rows[9]
    assert texts(body_rows(shown, 40, 12))[1] == "response hm"


def test_a_long_prompt_is_folded_to_its_end() -> None:
    shown = sample(1, 1, prompt="\n".join(f"line {n}" for n in range(17)))
    assert texts(body_rows(shown, 80, 10))[:3] == [
        "prompt    … 9 lines above, u unfolds",
        "          line 9",
        "          line 10",
    ]
    shown = shown._replace(response="a\n" * 9)
    assert texts(body_rows(shown, 80, 10))[:4] == [
        "prompt    … 14 lines above, u unfolds",
        "          line 14",
        "          line 15",
        "          line 16",
    ]
    assert texts(body_rows(shown, 38, 6))[:2] == [
        "prompt … 16 lines above, u unfolds",
        "line 16",
    ]
    assert texts(body_rows(shown, 38, 4))[:2] == [
        "prompt … line 16",
        "response … 7 lines, u unfolds",
    ]
    assert texts(body_rows(shown, 80, 10, unfolded=True))[0] == "prompt    line 0"
    assert len(body_rows(shown, 80, 10, unfolded=True)) == 26


def test_a_single_line_is_not_hidden_behind_another() -> None:
    shown = sample(1, 1, prompt="a\nb\nc\nd")
    assert texts(body_rows(shown, 80, 10))[0] == "prompt    a"


@pytest.mark.parametrize(
    "opening",
    [
        "assistant",
        "<|im_start|>assistant",
        "Assistant: <think>",
        "assistant\n<think>\n",
    ],
)
def test_what_opens_the_models_turn_takes_no_room_in_the_folded_prompt(
    opening: str,
) -> None:
    shown = sample(
        1, 1, prompt="\n".join(f"line {n}" for n in range(9)) + f"\n{opening}\n"
    )
    assert texts(body_rows(shown, 80, 6))[4] == "          line 8"


def test_empty_texts_say_so() -> None:
    rows = texts(body_rows(Sample(1, "", " \n"), 80, 10))
    assert rows == ["prompt    (empty)", "response  (empty)"]


def test_endless_texts_end() -> None:
    endless = Sample(1, "p", "a\n" * 20_000)
    rows = texts(body_rows(endless, 80, 10, unfolded=True))
    assert len(rows) < 6000
    assert rows[-1].strip() == "the rest is not shown"
    rows = texts(body_rows(endless, 80, 10))
    assert rows[2].strip() == "… more than 5,000 lines, u unfolds"
    assert len(rows) == 10


def test_an_answer_that_repeats_itself_is_named_once() -> None:
    shown = sample(1, 1, response="So it is\n#### 18\n#### 18\n#### 18\nand\n#### 19")
    rows = body_rows(shown, 80, 12)
    assert texts(rows)[1:] == [
        "response  So it is",
        "answer    #### 18",
        "          #### 18",
        "          #### 18",
        "          and",
        "answer    #### 19",
    ]
    assert ("#### 18", "answer") in rows[4]


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


def test_the_folded_prompt_is_typed() -> None:
    prompt = "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\n" + "2+2?\n" * 9
    rows = body_rows(sample(1, 1, prompt=prompt), 80, 6)
    assert rows[1][0] == ("user      ", "user")
    unfolded = body_rows(sample(1, 1, prompt=prompt), 80, 6, unfolded=True)
    assert [row[1:] for row in rows[1:5]] == [row[1:] for row in unfolded[7:11]]


@given(st.integers(0, 40), st.integers(0, 40), st.integers(4, 40), st.integers(20, 90))
def test_a_folded_sample_fills_its_panel_and_ends_with_its_response(
    asked: int, said: int, height: int, width: int
) -> None:
    prompt, response = (
        "\n".join(f"{at}" for at in range(count + 1)) for count in (asked, said)
    )
    rows = texts(body_rows(Sample(1, prompt, response), width, height))
    assert len(rows) <= height
    assert rows[-1].split()[-1] == str(said)
    if (
        len(texts(body_rows(Sample(1, prompt, response), width, height, unfolded=True)))
        >= height
    ):
        assert len(rows) >= height - 2


TEXTS = st.one_of(st.text(max_size=80), st.sampled_from(HOSTILE)).map(safe)
SAMPLES = st.builds(
    Sample,
    step=st.just(1),
    prompt=TEXTS,
    response=TEXTS,
    score=st.none() | st.floats(),
    ground_truth=st.none() | TEXTS,
    group=st.none() | st.sampled_from("ab"),
    extras=st.dictionaries(
        TEXTS,
        st.none() | st.booleans() | st.floats() | st.integers() | TEXTS,
        max_size=3,
    ),
    validation=st.booleans(),
)


@given(
    st.lists(SAMPLES, min_size=1, max_size=6),
    st.integers(1, 200),
    st.integers(0, 50),
    st.booleans(),
    st.booleans(),
)
def test_everything_fits(
    samples: list[Sample], width: int, height: int, unfolded: bool, ascii_only: bool
) -> None:
    wanted = header_height(width, height)
    head = header(samples, len(samples) - 1, width, wanted, ascii_only=ascii_only)
    assert len(head) <= wanted
    body = body_rows(
        samples[0], width, height, unfolded=unfolded, ascii_only=ascii_only
    )
    for row in texts([*head, *body]):
        assert cell_len(row) <= width
        assert "\n" not in row


def in_short(one: Sample, width: int, **more: Any) -> str:
    place, listing = listed([one, sample(120, 1, score=0.0, group="a")])
    (row,) = texts([short_row(place, 0, listing, one, width, **more)])
    return row


def test_in_one_row_a_sample_is_its_score_and_its_answer() -> None:
    right = sample(120, 0, score=1.0, group="a", response="so it is\n#### 18")
    assert (
        in_short(right, 100)
        == "sample of step 120 ✓ score 1 · 1 of 2 right · answer 18"
    )
    assert in_short(right, 38) == "sample ✓ 1 · answer 18"
    assert in_short(right, 38, ascii_only=True) == "sample + 1 | answer 18"
    held_out = sample(120, 0, score=1.0, validation=True, response="so it is")
    assert "· validation  so it is" in in_short(held_out, 100)


def test_in_one_row_a_response_without_an_answer_is_its_end() -> None:
    loops = sample(120, 0, score=0.5, response="ab " * 300 + "the end")
    row = in_short(loops, 38)
    assert row.startswith("sample ▲ 0.5  …")
    assert row.endswith(" the end")
    assert cell_len(row) == 38


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("width", [1, 4, 11, 38, 120])
def test_one_row_is_never_too_wide(text: str, width: int) -> None:
    shown = safe(text)
    row = in_short(sample(120, 0, response=shown, ground_truth=shown), width)
    assert cell_len(row) <= width
    assert "\x1b" not in row


@pytest.mark.parametrize(
    ("width", "said"),
    [
        (15, "Samples: none"),
        (40, "Samples: none"),
        (60, "(f6: how to have them written)"),
    ],
)
def test_that_there_are_no_samples_is_never_cut(width: int, said: str) -> None:
    (row,) = texts(no_samples(ended(), width, opens="f6"))
    assert row.endswith(said)
    assert cell_len(row) <= width


def test_a_run_that_has_made_no_step_has_no_samples_yet() -> None:
    assert texts(no_samples(Run("r"), 30, opens="f6")) == ["Samples: none yet"]
    assert texts(no_samples(ended(), 30, opens="f6")) == ["Samples: none"]


def ended() -> Run:
    run = Run("r")
    end = Event(EventKind.FATAL, "ValueError: no GPU", line=1)
    run.apply(Batch("r", SourceStatus("train.log", "verl console"), (end,)), 0.0)
    return run


def test_the_caption_says_the_step_and_the_way_to_others() -> None:
    samples = Samples()
    for step in (1, 2, 3, 10):
        samples.add(Sample(step=step, prompt="", response="yes"), step, "jsonl", 0)
    first, *_, last = samples.places
    assert caption(last, samples, HINT_KEYS, following=True) == "following · o opens"
    assert caption(first, samples, HINT_KEYS, following=False) == (
        "step 1 · 1 of 4 with samples · f follows · o opens"
    )

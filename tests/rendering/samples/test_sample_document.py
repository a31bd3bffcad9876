"""A sample as rows: its parts, folds, hits, and that no more is wrapped than is seen."""

from __future__ import annotations

import time
from math import inf, nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from verl_tui.records import Sample
from verl_tui.rendering.samples.document import PARTS, Document
from verl_tui.rendering.text.search import Search
from verl_tui.rendering.text.wrap import spans, wrap
from verl_tui.text import safe
from verl_tui.tui.widgets.side_by_side import SideBySide


def sample(**more: Any) -> Sample:
    return Sample(1, **{"prompt": "asked", "response": "answered", **more})


def shown(document: Document) -> list[str]:
    document.grow(1 << 30)
    return [
        "".join(text for text, _ in document.row(at)) for at in range(len(document))
    ]


def test_parts_and_their_headings() -> None:
    one = sample(
        score=1.0,
        ground_truth="42",
        group="g",
        extras={"acc": 1.0, "pred": "41", "ok": True},
    )
    assert shown(Document(one, 60, 30)) == [
        *("▾ 1 prompt  5 characters", "asked", ""),
        *("▾ 2 response  8 characters", "answered", ""),
        *("▾ 3 ground truth", "42 · pred 41 differs", ""),
        *("▾ 4 fields", "acc  1", "pred  41", "ok  True", "group  g"),
    ]
    assert shown(Document(sample(), 60, 10, ascii_only=True)) == [
        *(
            "v 1 prompt  5 characters",
            "asked",
            "v 2 response  8 characters",
            "answered",
        ),
    ]


def test_empty_texts_say_so() -> None:
    assert shown(Document(sample(prompt="", response=" \n"), 60, 10)) == [
        *(
            "▾ 1 prompt  0 characters",
            "(empty)",
            "▾ 2 response  1 character",
            "(empty)",
        ),
    ]


def test_folded() -> None:
    prompt = (
        "\n".join(f"line {n}" for n in range(9)) + "\n<|im_start|>assistant\n<think>\n"
    )
    one = sample(prompt=prompt, response="\n".join(f"row {n}" for n in range(9)))
    rows = shown(Document(one, 60, 30, folded=("prompt", "response")))
    # Of a prompt the end is seen, but not what opens the model's turn.
    assert rows[0].startswith("▸ 1 prompt")
    assert rows[1:5] == ["… 42 characters above", "line 6", "line 7", "line 8"]
    assert rows[7:10] == ["think │ row 0", "      │ row 1", "      │ row 2"]
    assert rows[10] == "… 36 characters more"
    assert shown(Document(one, 60, 6, folded=("prompt",)))[1:3] == [
        "… 56 characters above",
        "line 8",
    ]
    assert shown(Document(sample(), 60, 30, folded=PARTS))[1] == "asked"


TOOLS = (
    "<think>hm</think>\n<tool_call>{}</tool_call>\n"
    "<|im_start|>tool\n4\n<|im_start|>assistant\nSo \\boxed{4}."
)


def test_kinds_stand_in_the_margin_and_turns_above() -> None:
    one = sample(response=TOOLS, ground_truth="4.0", extras={"turn_scores": "[0.5,1]"})
    rows = shown(Document(one, 60, 10))[2:]
    assert rows[:7] == [
        "▾ 2 response  98 characters",
        "── turn 1 of 2, score 0.5 " + "─" * 34,
        "    think │ <think>hm</think>",
        "     call │ <tool_call>{}</tool_call>",
        "   result │ <|im_start|>tool",
        "          │ 4",
        "── turn 2 of 2, score 1 " + "─" * 36,
    ]
    assert rows[7] == "   answer │ So \\boxed{4}."
    narrow = shown(Document(one, 40, 10, ascii_only=True))
    assert "| <think>hm</think>" in narrow
    assert "<think>hm</think>" in shown(Document(one, 20, 10))
    raw = shown(Document(one, 60, 10, raw=True))
    assert "<think>hm</think>" in raw
    assert not any("turn 1" in row or "differs" in row for row in raw[:8])


def test_the_answer_stands_beside_the_truth_or_below_it() -> None:
    one = sample(response="So \\boxed{1,000}.", ground_truth="1000")
    rows = shown(Document(one, 80, 10))
    assert rows[-1] == "1000 · the answer 1,000 agrees as a number (heuristic)"
    other = Document(sample(response="So \\boxed{1001}.", ground_truth="1000"), 80, 10)
    assert shown(other)[-1] == "1000 · the answer 1001 differs"
    assert other.row(len(other) - 1)[:2] == [("100", "truth"), ("0", "differs")]
    narrow = Document(other.sample, 25, 10)
    assert shown(narrow)[-2:] == ["1000", "the answer 1001 differs"]


def test_hits_are_marked_counted_and_found() -> None:
    one = sample(prompt="find it", response="it is\nit")
    document = Document(one, 60, 10, searches=[Search("it")])
    rows = shown(document)
    assert "1 hit" in rows[0]
    assert "2 hits" in rows[2]
    assert [document.row_of(hit) for hit in document.hits] == [1, 3, 4]
    assert [document.name_of(hit) for hit in document.hits] == [
        "prompt",
        "response",
        "response",
    ]
    assert document.row(3) == [("it", "hit"), (" is", "response")]
    document.here = document.hits[1]
    assert document.row(3) == [("it", "here"), (" is", "response")]
    assert document.row(4) == [("it", "hit")]
    assert [document.part_at(row) for row in range(6)] == ["prompt"] * 2 + [
        "response"
    ] * 4


def test_loops_are_reported_in_the_heading() -> None:
    rows = shown(Document(sample(response="so it goes on " * 30), 60, 10))
    assert "96% repeats itself" in rows[2]


def test_no_more_is_wrapped_than_is_asked_for() -> None:
    document = Document(sample(response="word " * 40_000), 20, 10)
    document.grow(10)
    assert 10 <= len(document) < 1000
    assert not document.complete
    known = len(document)
    document.grow(5)
    assert len(document) == known
    document.grow(1 << 30)
    assert document.complete
    assert len(document) > 9000


def test_a_hit_far_down_is_wrapped_up_to() -> None:
    document = Document(
        sample(response="word " * 30_000 + "needle"),
        20,
        10,
        searches=[Search("needle")],
    )
    row = document.row_of(document.hits[0])
    assert ("needle", "hit") in document.row(row)


@pytest.mark.parametrize(
    "text",
    ["汉" * 200_000, "ab " * 66_000, "\n" * 200_000, "x" * 200_000],
    ids=range(4),
)
def test_the_first_rows_of_a_long_text_are_there_at_once(text: str) -> None:
    start = time.process_time()
    document = Document(
        sample(prompt=text, response=text),
        80,
        40,
        folded=("prompt",),
        searches=[Search("y")],
    )
    document.grow(120)
    for at in range(min(40, len(document))):
        document.row(at)
    # below 1 s where it is linear, above 10 s where not
    assert time.process_time() - start < 5.0


TEXTS = st.one_of(
    st.text(max_size=80),
    st.sampled_from(
        [
            "[red]no[/INST] [/",
            "\x1b[31mred\x9b2J\x00\rb\tc",
            "👨\u200d👩 👍🏽 🇩🇪 e\u0301字",
            "汉" * 300,
            "the the " * 40,
        ]
    ),
).map(safe)
SAMPLES = st.builds(
    Sample,
    step=st.just(1),
    prompt=TEXTS,
    response=TEXTS,
    ground_truth=st.none() | TEXTS,
    group=st.none() | TEXTS,
    extras=st.dictionaries(
        TEXTS,
        st.none() | st.booleans() | st.sampled_from([nan, inf, 1, 0.5]) | TEXTS,
        max_size=3,
    ),
)


@given(
    SAMPLES,
    st.integers(1, 120),
    st.integers(0, 40),
    st.sets(st.sampled_from(PARTS)),
    st.booleans(),
)
def test_everything_fits(
    one: Sample, width: int, height: int, folded: set[str], ascii_only: bool
) -> None:
    document = Document(
        one,
        width,
        height,
        folded=folded,
        searches=[Search("the|e")],
        ascii_only=ascii_only,
    )
    for row in shown(document):
        # a wide character in a single column is cut by the widget
        assert cell_len(row) <= max(width, 2)
        assert "\n" not in row
    for at in range(len(document)):
        assert {role for _, role in document.row(at)} <= {*SideBySide.LOOKS, ""}
    for hit in document.hits:
        assert 0 <= document.row_of(hit) < len(document)


@given(TEXTS, st.integers(1, 60))
def test_spans_are_what_is_wrapped(text: str, width: int) -> None:
    rows = [text[start:end] for start, end in spans(text, width)]
    assert len(rows) == len(list(wrap(text, width)))
    if width > 1:
        assert rows == list(wrap(text, width))

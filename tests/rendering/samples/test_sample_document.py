"""A sample as rows: its parts, folds, hits, and that no more is wrapped than is seen."""

from __future__ import annotations

from typing import Any

from rich.cells import cell_len

from verl_tui.records import Sample
from verl_tui.rendering.samples.document import PARTS, Document
from verl_tui.rendering.text.piece import text_of
from verl_tui.rendering.text.search import Search


def sample(**more: Any) -> Sample:
    return Sample(1, **{"prompt": "asked", "response": "answered", **more})


def shown(document: Document) -> list[str]:
    document.grow(1 << 30)
    return [text_of(document.row(at)) for at in range(len(document))]


def test_folded():
    prompt = (
        "\n".join(f"line {n}" for n in range(9)) + "\n<|im_start|>assistant\n<think>\n"
    )
    one = sample(prompt=prompt, response="\n".join(f"row {n}" for n in range(9)))
    rows = shown(Document(one, 60, 30, folded=("prompt", "response")))
    # Of a prompt the end is seen, but not what opens the model's turn.
    assert rows[0].startswith("▸ 1 prompt")
    said = [row.partition("│ ")[2] for row in rows]
    assert said[1:5] == ["… 42 characters", "line 6", "line 7", "line 8"]
    assert said[7:11] == ["… 36 characters", "row 6", "row 7", "row 8"]
    assert shown(Document(one, 60, 6, folded=("prompt",)))[2].endswith("│ line 8")
    assert shown(Document(sample(), 60, 30, folded=PARTS))[1] == "asked"


TOOLS = (
    "<think>hm</think>\n<tool_call>{}</tool_call>\n"
    "<|im_start|>tool\n4\n<|im_start|>assistant\nSo \\boxed{4}."
)


def test_kinds_stand_in_the_margin_and_turns_above():
    one = sample(
        response=f"\n{TOOLS}\n", ground_truth="4.0", extras={"turn_scores": "[0.5,1]"}
    )
    rows = shown(Document(one, 60, 10))[2:]
    assert rows[:7] == [
        "▾ 2 response  100 characters",
        "          │ ── turn 1 of 2, score 0.5 ──",
        "    think │ <think>hm</think>",
        "     call │ <tool_call>{}</tool_call>",
        "   result │ <|im_start|>tool",
        "          │ 4",
        "          │ ── turn 2 of 2, score 1 ──",
    ]
    assert rows[7] == "   answer │ So \\boxed{4}."
    narrow = shown(Document(one, 40, 10))
    assert "│ <think>hm</think>" in narrow
    assert "<think>hm</think>" in shown(Document(one, 20, 10))
    raw = shown(Document(one, 60, 10, raw=True))
    assert "<think>hm</think>" in raw
    assert not any("turn 1" in row or "differs" in row for row in raw[:8])


def panel(one: Sample, width: int, height: int, **more: Any) -> list[str]:
    more = {"folded": ("prompt", "response"), **more}
    return shown(Document(one, width, height, unfolds="u", **more))


def test_the_panel_writes_names_beside_the_parts():
    one = sample(
        prompt="one\ntwo", ground_truth="42", extras={"acc": 1.0, "pred": "41"}
    )
    assert panel(one, 80, 10) == [
        "  prompt │ one",
        "         │ two",
        "response │ answered",
        "   truth │ 42 · pred 41 differs",
        "  fields │ acc 1",
        "         │ pred: 41",
    ]
    assert panel(one, 30, 10)[:3] == ["p│ one", " │ two", "r│ answered"]
    assert panel(one, 80, 40)[2] == "", "where there is room, the parts stand apart"
    assert panel(sample(response=" "), 80, 10)[1] == "response │ (empty)"


def test_a_long_response_keeps_its_answer_in_sight():
    response = "\n".join((*(f"line {n}" for n in range(19)), r"So \boxed{4}."))
    one = sample(response=response, ground_truth="4")
    assert panel(one, 80, 8) == [
        "   prompt │ asked",
        " response │ … 110 characters, u unfolds",
        "          │ line 15",
        "          │ line 16",
        "          │ line 17",
        "          │ line 18",
        "   answer │ So \\boxed{4}.",
        "    truth │ 4 · the answer agrees",
    ]
    assert panel(one, 80, 4)[1:3] == [
        " response │ … 142 characters, u unfolds",
        "   answer │ So \\boxed{4}.",
    ]
    assert panel(one, 30, 3)[1] == "r│ … So \\boxed{4}."
    assert len(panel(one, 80, 8, folded=())) == 22
    assert Document(one, 80, 8, folded=("response",), unfolds="u").hides
    assert not Document(one, 80, 8, unfolds="u").hides


def test_rows_are_as_wide_as_asked():
    one = sample(
        prompt="汉字 " * 90, response=TOOLS * 9, ground_truth="4" * 99, group="g" * 99
    )
    for width in (1, 2, 5, 20, 24, 30, 59, 60, 80):
        for more in ({}, {"unfolds": "u"}, {"folded": PARTS}):
            rows = shown(Document(one, width, 12, **more))
            assert max(map(cell_len, rows)) <= max(width, 14), (width, more)


def test_hits_are_marked_counted_and_found():
    one = sample(prompt="find it", response="it is\nit")
    document = Document(one, 60, 10, searches=[Search("it")])
    rows = shown(document)
    assert "1 hit" in rows[0]
    assert "2 hits" in rows[2]
    assert [document.row_of(hit) for hit in document.hits] == [1, 3, 4]
    assert [document.part_of(hit) for hit in document.hits] == [
        "prompt",
        "response",
        "response",
    ]
    assert document.row(3) == [("it", "hit"), (" is", "response")]
    there = Document(one, 60, 10, searches=[Search("it")], here=1)
    shown(there)
    assert there.row(3) == [("it", "here"), (" is", "response")]
    assert there.row(4) == [("it", "hit")]
    assert [document.part_at(row) for row in range(6)] == ["prompt"] * 2 + [
        "response"
    ] * 4


def test_a_hit_far_down_is_wrapped_up_to():
    document = Document(
        sample(response="word " * 30_000 + "needle"),
        20,
        10,
        searches=[Search("needle")],
    )
    row = document.row_of(document.hits[0])
    assert ("needle", "hit") in document.row(row)

"""A sample as rows: its parts, folds, hits, and that no more is wrapped than is seen."""

from __future__ import annotations

from typing import Any

from verl_tui.records import Sample
from verl_tui.rendering.samples.document import PARTS, Document
from verl_tui.rendering.text.search import Search


def sample(**more: Any) -> Sample:
    return Sample(1, **{"prompt": "asked", "response": "answered", **more})


def shown(document: Document) -> list[str]:
    document.grow(1 << 30)
    return [
        "".join(text for text, _ in document.row(at)) for at in range(len(document))
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
    narrow = shown(Document(one, 40, 10))
    assert "│ <think>hm</think>" in narrow
    assert "<think>hm</think>" in shown(Document(one, 20, 10))
    raw = shown(Document(one, 60, 10, raw=True))
    assert "<think>hm</think>" in raw
    assert not any("turn 1" in row or "differs" in row for row in raw[:8])


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


def test_a_hit_far_down_is_wrapped_up_to() -> None:
    document = Document(
        sample(response="word " * 30_000 + "needle"),
        20,
        10,
        searches=[Search("needle")],
    )
    row = document.row_of(document.hits[0])
    assert ("needle", "hit") in document.row(row)

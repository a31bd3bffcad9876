"""The result that is remembered for one subject."""

from __future__ import annotations

from verl_tui.rendering.last_result import LastResult


def test_a_result_is_computed_again_only_for_another_subject() -> None:
    asked: list[str] = []
    known: LastResult[int] = LastResult()

    def length(word: str) -> int:
        return known.of((word,), lambda: asked.append(word) or len(word))  # type: ignore[func-returns-value]

    assert [length(word) for word in ("one", "one", "three", "one")] == [3, 3, 5, 3]
    assert asked == ["one", "three", "one"]


def test_nothing_may_be_a_subject_and_a_result() -> None:
    known: LastResult[None] = LastResult()
    asked: list[int] = []
    for _ in range(2):
        assert known.of(None, lambda: asked.append(1)) is None
    assert asked == [1]

"""The margin beside a text in stretches: a rule on each row, and a label where another begins."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.rendering.samples import marks
from verl_tui.rendering.samples.answers import find_answers
from verl_tui.rendering.samples.template import (
    ANSWER,
    ASSISTANT,
    CALL,
    CODE,
    RESULT,
    SYSTEM,
    TEXT,
    THOUGHT,
    TOOL,
    USER,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.rendering.samples.answers import Answer
    from verl_tui.rendering.samples.stretches import Stretch
    from verl_tui.rendering.text.piece import Piece, Pieces

ROLES = (SYSTEM, USER, ASSISTANT, TOOL, THOUGHT, CALL, RESULT, CODE, ANSWER)
"""Roles of the pieces of text: the speaker of plain text, else its kind."""

_LABELLED, _RULED = 60, 24
"""Widths from which on the margin has labels, and a rule, in cells."""
_LABELS = {THOUGHT: "think"}


class Typed(NamedTuple):
    """A text of which stretches are known."""

    stretches: Sequence[Stretch]
    marks: list[marks.MarkedSpan]
    """Roles of all that is not plain."""
    answers: list[int]
    """Where final answers begin."""
    labels: int
    """Cells of a label, 0 without labels."""
    width: int
    """Cells of the margin, 0 without one."""

    def margin(self, start: int, end: int, before: int | None, *, ascii_only: bool) -> Pieces:
        """Return the margin of a row.

        Args:
            start: Where the row begins in the text.
            end: Where it ends.
            before: Where the row above begins, None without one.
            ascii_only: Draw in ASCII.
        """
        if not self.width:
            return []
        label, role = self.label(start, end, before)
        rule = ("|" if ascii_only else "│") + " "
        if not self.labels:
            return [(rule, role)]
        return [(f"{label:>{self.labels}} ", role), (rule, role)]

    def label(self, start: int, end: int, before: int | None) -> Piece:
        """Return the label of a row, empty where the row above has the same, and its role."""
        role = _role(self._at(start))
        above = None if before is None else _role(self._at(before))
        label = _LABELS.get(role, role) if role != above and start < end else ""
        at = bisect_right(self.answers, start - 1)
        if at < len(self.answers) and self.answers[at] < end:
            label = role = ANSWER
        return label, role

    def turn(self, start: int) -> int:
        """Return the number of the turn that a row belongs to."""
        return self._at(start).turn

    def _at(self, start: int) -> Stretch:
        return self.stretches[bisect_right(self.stretches, start, key=lambda one: one.start) - 1]


def typed(text: str, stretches: Sequence[Stretch], width: int) -> Typed:
    """Return a text with its margin; a text of one kind has none."""
    answers = find_answers(text, stretches)
    said = [one for one in stretches if not one.token and text[one.start : one.end].strip()]
    plain = all(one.kind == TEXT and one.speaker == said[0].speaker for one in said)
    found: list[marks.MarkedSpan] = []
    for one in stretches:
        if one.token:
            tag = one.kind != TEXT and not text.startswith(("<|", "<｜"), one.start)
            found.append((one.start, one.end, marks.TAG if tag else marks.TOKEN_ROLE))
        elif one.kind != TEXT or not plain:
            found.append((one.start, one.end, _role(one)))
    inline = [(answer.start, answer.end, ANSWER) for answer in _outermost(answers)]
    labels = {_role(one) for one in said} | ({ANSWER} if answers else set())
    widest = max((len(_LABELS.get(label, label)) for label in labels), default=0)
    shown = bool(stretches) and not (plain and not answers)
    labelled = shown and width >= _LABELLED
    return Typed(
        stretches,
        marks.over(found, inline),
        [answer.start for answer in answers],
        widest if labelled else 0,
        widest + 3 if labelled else 2 if shown and width >= _RULED else 0,
    )


def _role(one: Stretch) -> str:
    return one.speaker if one.kind == TEXT else one.kind


def _outermost(answers: Sequence[Answer]) -> list[Answer]:
    """Return answers that lie in no other."""
    result: list[Answer] = []
    for answer in answers:
        if not result or answer.start >= result[-1].end:
            result.append(answer)
    return result

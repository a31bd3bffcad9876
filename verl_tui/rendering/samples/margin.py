"""The margin beside a text in stretches: a rule on each row, and a label where another begins."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.rendering.samples import marks
from verl_tui.rendering.samples.answers import find_answers
from verl_tui.rendering.samples.template import (
    ANSWER,
    TEXT,
    THOUGHT,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from verl_tui.rendering.samples.answers import Answer
    from verl_tui.rendering.samples.speaker_stretches import Stretch
    from verl_tui.rendering.text.piece import Piece, Pieces


_LABELLED, _RULED = 60, 24
"""Widths from which on the margin has labels, and a rule, in cells."""
_LABELS = {THOUGHT: "think"}


class Typed(NamedTuple):
    """A text with known stretches."""

    stretches: Sequence[Stretch]
    marks: list[marks.MarkedSpan]
    """Roles of all that is not plain."""
    answers: list[int]
    """Where final answers begin."""
    labels: int
    """Cells of a label, 0 without labels."""
    width: int
    """Cells of the margin, 0 without one."""
    headers: Mapping[int, int]
    """Where tokens that name the speaker as the labels do begin and end; none without labels."""

    def worded(self, text: str, start: int, end: int) -> int:
        """Return where the words of a row begin, behind the name of the speaker that its label
        repeats; the row's end if there are none.
        """
        header = self.headers.get(start, end + 1)
        if header > end:
            return start
        return end - len(text[header:end].lstrip())

    def margin(self, start: int, end: int, before: int | None) -> Pieces:
        """Return the margin of a row.

        Args:
            start: Where the row begins in the text.
            end: Where it ends.
            before: Where the row above begins, None without one.
        """
        if not self.width:
            return []
        label, role = self.label(start, end, before)
        rule = "│" + " "
        if not self.labels:
            return [(rule, role)]
        return [(f"{label:>{self.labels}} ", role), (rule, role)]

    def label(self, start: int, end: int, before: int | None) -> Piece:
        """Return the label of a row, empty where the row above has the same, and its role."""
        role = _role(self._at(start))
        above = None if before is None else _role(self._at(before))
        label = _LABELS.get(role, role) if role != above and start < end else ""
        if self._begins_answer(start, end):
            role = ANSWER
            label = (
                ""
                if before is not None and self._begins_answer(before, start)
                else ANSWER
            )
        return label, role

    def _begins_answer(self, start: int, end: int) -> bool:
        at = bisect_right(self.answers, start - 1)
        return at < len(self.answers) and self.answers[at] < end

    def turn(self, start: int) -> int:
        """Return the number of the turn that a row belongs to."""
        return self._at(start).turn

    def _at(self, start: int) -> Stretch:
        behind = bisect_right(self.stretches, start, key=lambda one: one.start)
        return self.stretches[behind - 1]


def typed(text: str, stretches: Sequence[Stretch], width: int) -> Typed:
    """Return a text with its margin; a text of one kind has none."""
    answers = find_answers(text, stretches)
    words = _words(text, stretches)
    plain = _is_plain(words)
    found = _marks(text, stretches, plain=plain)
    inline = [(answer.start, answer.end, ANSWER) for answer in _outermost(answers)]
    starts = [answer.start for answer in answers]
    labels = 0
    margin = 0
    if answers or not plain:
        roles = set(map(_role, words))
        if answers:
            roles.add(ANSWER)
        labels, margin = _widths(roles, width)
    headers = _headers(text, stretches) if labels else {}
    return Typed(stretches, marks.over(found, inline), starts, labels, margin, headers)


def _is_plain(words: Sequence[Stretch]) -> bool:
    """Return whether all is text of one speaker."""
    speakers = {stretch.speaker for stretch in words}
    return len(speakers) < 2 and all(stretch.kind == TEXT for stretch in words)


def _headers(text: str, stretches: Sequence[Stretch]) -> dict[int, int]:
    """Return starts and ends of the tokens that say what a label says."""
    return {
        stretch.start: stretch.end
        for stretch in stretches
        if _names_speaker(text, stretch)
    }


def _names_speaker(text: str, stretch: Stretch) -> bool:
    """Return whether a token has the very word that the label beside its turn has."""
    words = text[stretch.start : stretch.end].lower()
    return stretch.token and stretch.kind == TEXT and stretch.speaker in words


def _words(text: str, stretches: Sequence[Stretch]) -> list[Stretch]:
    """Return the stretches that are neither tokens nor blank."""
    return [
        stretch
        for stretch in stretches
        if not stretch.token and text[stretch.start : stretch.end].strip()
    ]


def _marks(
    text: str, stretches: Sequence[Stretch], *, plain: bool
) -> list[marks.MarkedSpan]:
    """Return the roles of tokens, and of the words between them unless those are plain text."""
    found: list[marks.MarkedSpan] = []
    for stretch in stretches:
        if stretch.token:
            found.append((stretch.start, stretch.end, _token_role(text, stretch)))
        elif stretch.kind != TEXT or not plain:
            found.append((stretch.start, stretch.end, _role(stretch)))
    return found


def _token_role(text: str, one: Stretch) -> str:
    """Return the role of a tag that opens or closes a block, or of a token of the template."""
    if one.kind == TEXT or text.startswith(("<|", "<｜"), one.start):
        return marks.TOKEN_ROLE
    return marks.TAG


def _widths(roles: Iterable[str], width: int) -> tuple[int, int]:
    """Return the cells of a label and of the whole margin beside a text in rows of `width`."""
    if width >= _LABELLED:
        widest = max(len(_LABELS.get(role, role)) for role in roles)
        return widest, widest + 3
    return 0, 2 if width >= _RULED else 0


def _role(one: Stretch) -> str:
    if one.kind == TEXT:
        return one.speaker
    return one.kind


def _outermost(answers: Sequence[Answer]) -> list[Answer]:
    """Return answers that lie in no other."""
    result: list[Answer] = []
    for answer in answers:
        if not result or answer.start >= result[-1].end:
            result.append(answer)
    return result

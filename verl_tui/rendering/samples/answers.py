r"""Final answers in a response, and how one compares with the ground truth.

The forms are those that graders look for: `\boxed{}` (MATH), `####` (GSM8K), `<answer>` (R1),
`Answer:` (DAPO). They are a heuristic beside the score, which alone is the grader's verdict.
"""

from __future__ import annotations

import json
import re
from difflib import SequenceMatcher
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.patterns import pattern
from verl_tui.rendering.samples.marks import pieces
from verl_tui.rendering.samples.template import ANSWER, ASSISTANT, CODE, THOUGHT
from verl_tui.rendering.text.piece import cells_of
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from verl_tui.records import Sample
    from verl_tui.rendering.samples.marks import MarkedSpan
    from verl_tui.rendering.samples.speaker_stretches import Stretch
    from verl_tui.rendering.text.piece import Pieces

DIFFERS = "differs"
"""Role of what differs from the ground truth."""

_BRACES = pattern(r"(?P<boxed>\\(?:boxed|fbox)\s{0,3}\{)|\\.|[{}]", re.DOTALL)
_HASHES = pattern(r"####[^\S\n]*(?P<answer>\$?-?\d[\d.,]*|[^\s#][^\n#]{0,80}\s*\Z)")
_LINE = pattern(
    r"^[*_ ]{0,4}(?:final )?answer[*_ ]{0,4}[:：][*_ ]{0,4}(?P<answer>\S[^\n]{0,200})$",
    re.MULTILINE | re.IGNORECASE,
)
_EXTRACTED = ("pred", "prediction", "extracted_answer", "extracted", "model_answer")
"""Fields in which reward functions write the answer that they found; verl's math_dapo: `pred`."""
_LONGEST = 200
"""Characters of an answer that is compared."""
_MOST_TRUTHS = 50
_ALIKE = 0.6
"""Share of characters in common from which on single ones are marked; heuristic."""
_WORD = pattern(r"\w+")
_TRUTH_KEYS = ("target", "answer", "answers", "ground_truth", "solution", "value")
_WRITING = pattern(
    r"\\(?:left|right|displaystyle|[,!;: ()])|\\(?:text|mathrm|mathbf|textbf)(?=\{)|[\s*]|\{,\}"
)
_FRACTION = pattern(
    r"(-?)\\[dt]?frac\{?(\d{1,30})\}?\{?(\d{1,30})\}?|(-?)(\d{1,30})/(\d{1,30})"
)
_NUMBER = pattern(
    r"-?(?:\d{1,3}(?:,\d{3}){1,10}|\d{1,30})?(?:\.\d{0,30})?(?:[eE][+-]?\d{1,2})?"
)


class Answer(NamedTuple):
    """An answer in a text; `text[first:last]` is its content, without what marks it."""

    start: int
    end: int
    first: int
    last: int

    def of(self, text: str) -> str:
        """Return the content, without white space around it."""
        return text[self.first : self.last].strip()


class AnswerCheck(NamedTuple):
    """A response's answer beside the ground truth."""

    answer: str
    truth: str
    """The ground truth, of several accepted ones the one that fits."""
    words: str
    same: bool
    name: str = ANSWER
    """The field that it comes from, if the reward function has extracted it."""


def find_answers(text: str, stretches: Sequence[Stretch]) -> list[Answer]:
    """Return the answers of the model in the order of the text."""
    spoken: list[Stretch] = []
    found: list[Answer] = []
    for stretch in stretches:
        if stretch.speaker != ASSISTANT or stretch.kind == CODE:
            continue
        spoken.append(stretch)
        if stretch.kind == ANSWER and not stretch.token:
            content = (stretch.start, stretch.end)
            found.append(Answer(*content, *content))
    marked = [*_boxed(text), *_matched(_HASHES, text), *_matched(_LINE, text)]
    found += _beginning_in(spoken, sorted(marked))
    return sorted(found)


def _beginning_in(
    stretches: Sequence[Stretch], answers: Iterable[Answer]
) -> Iterator[Answer]:
    """Yield the answers whose content begins in one of the stretches; both are ascending."""
    at = 0
    for answer in answers:
        while at < len(stretches) and stretches[at].end <= answer.first:
            at += 1
        if at < len(stretches) and stretches[at].start <= answer.first:
            yield answer


def final_answer(text: str, stretches: Sequence[Stretch]) -> str | None:
    """Return the last answer of a response, None without one.

    Those in thoughts count only where there are no others.
    """
    answers = find_answers(text, stretches)
    thoughts = [stretch for stretch in stretches if stretch.kind == THOUGHT]
    last_thought = thoughts[-1].end if thoughts else 0
    said = [answer for answer in answers if answer.start >= last_thought] or answers
    if not said:
        return None
    return said[-1].of(text)


def judged(sample: Sample, stretches: Sequence[Stretch]) -> AnswerCheck | None:
    """Compare the answer that the reward function extracted, else that of the response."""
    name, answer = _extracted(sample)
    if not answer:
        name = ANSWER
        answer = final_answer(sample.response.strip("\n"), stretches)
    found = compare_answers(answer, sample.ground_truth)
    if found is None:
        return None
    return found._replace(name=name)


def _extracted(sample: Sample) -> tuple[str, str | None]:
    """Return the answer that the reward function wrote, and the name of its field."""
    for name in _EXTRACTED:
        value = sample.extras.get(name)
        if isinstance(value, str):
            return name, value
    return ANSWER, None


def compared_words(compared: AnswerCheck, beside: str) -> Pieces:
    """Say how a response's answer compares with the ground truth, its differences marked.

    Args:
        compared: The answer and the ground truth.
        beside: The ground truth as it stands beside these words: an equal answer is not repeated.
    """
    answer = one_line(compared.answer)
    name = "the answer" if compared.name == ANSWER else compared.name
    words: Pieces = [(f"{name} ", "dim")]
    spans: list[MarkedSpan] = []
    if not compared.same:
        changed = differing_spans(answer, one_line(compared.truth))
        spans = [(start, end, DIFFERS) for start, end in changed]
    if not compared.same or answer.strip() != one_line(beside).strip():
        words += pieces(answer, 0, len(answer), spans, ANSWER)
        words.append((" ", ""))
    return [*words, (compared.words, "dim")]


def truth_row(truth: str, compared: AnswerCheck, width: int) -> Pieces | None:
    """Return the ground truth and how the answer compares with it as one row, None where they take
    more.
    """
    if "\n" in truth:
        return None
    marked = pieces(truth, 0, len(truth), truth_marks(truth, compared), "truth")
    row = [*marked, (" · ", "dim"), *compared_words(compared, truth)]
    return row if cells_of(row) <= width else None


def truth_marks(text: str, compared: AnswerCheck) -> list[MarkedSpan]:
    """Return marks of the part of the ground truth that the answer does not have."""
    at = text.find(compared.truth)
    if compared.same or at < 0:
        return []
    changed = differing_spans(compared.truth, compared.answer)
    return [(at + start, at + end, DIFFERS) for start, end in changed]


def compare_answers(answer: str | None, truth: str | None) -> AnswerCheck | None:
    """Compare an answer with the ground truth; None where one of them is no short answer."""
    if answer is None or truth is None or not 0 < len(answer) <= _LONGEST:
        return None
    truths = [text for text in _truths(truth) if 0 < len(text) <= _LONGEST]
    for accepted in truths:
        words = _alike(answer, accepted)
        if words:
            return AnswerCheck(answer, accepted, words, same=True)
    if not truths:
        return None
    return AnswerCheck(answer, truths[0], "differs", same=False)


def differing_spans(first: str, second: str) -> list[tuple[int, int]]:
    """Return the spans of the first short text that are not in the second.

    They are characters of texts that are much alike, else whole words.
    """
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    if matcher.ratio() >= _ALIKE:
        return [
            (a, b)
            for kind, a, b, _, _ in matcher.get_opcodes()
            if kind != "equal" and b > a
        ]
    words = set(_WORD.findall(second))
    return [found.span() for found in _WORD.finditer(first) if found[0] not in words]


def _boxed(text: str) -> Iterator[Answer]:
    r"""Yield each `\boxed{…}` whose braces close."""
    if "boxed" not in text and "fbox" not in text:
        return
    opened: list[tuple[int, int] | None] = []
    for found in _BRACES.finditer(text):
        if found["boxed"] is not None:
            opened.append(found.span())
        elif found[0] == "{":
            opened.append(None)
        elif found[0] == "}" and opened:
            box = opened.pop()
            if box is not None:
                yield Answer(box[0], found.end(), box[1], found.start())


def _matched(form: re.Pattern[str], text: str) -> Iterator[Answer]:
    for found in form.finditer(text):
        yield Answer(*found.span(), *found.span("answer"))


def _truths(truth: str) -> list[str]:
    """Return the accepted answers: those of a JSON document, the final one of a solution, or the
    text itself.
    """
    found = _document(truth)
    if isinstance(found, dict):
        found = next((found[key] for key in _TRUTH_KEYS if key in found), truth)
    several = found[:_MOST_TRUTHS] if isinstance(found, list) else [found]
    texts: list[str] = []
    for accepted in several:
        if isinstance(accepted, (str, int, float)):
            text = str(accepted).strip()
            texts.append(_last_marked(text) or text)
    return texts


def _document(truth: str) -> object:
    """Return the JSON object or list that a ground truth is, else its text."""
    if truth.lstrip()[:1] not in ("{", "["):
        return truth
    try:
        return json.loads(truth)
    except (ValueError, RecursionError):
        return truth


def _last_marked(text: str) -> str:
    marked = [*_boxed(text), *_matched(_HASHES, text)]
    if not marked:
        return ""
    return max(marked).of(text)


def _alike(answer: str, truth: str) -> str:
    """Return in which way two answers are alike, empty if they are not."""
    if answer.strip() == truth.strip():
        return "agrees"
    plain = _plain(answer)
    expected = _plain(truth)
    if plain and plain.casefold() == expected.casefold():
        return "agrees but for the writing (heuristic)"
    number = _number(plain)
    if number is not None and number == _number(expected):
        return "agrees as a number (heuristic)"
    return ""


def _plain(text: str) -> str:
    """Return an answer without layout, dollar signs and a full stop at its end."""
    plain = _WRITING.sub("", text).strip("$").removesuffix(".").removeprefix("\\$")
    if "frac" not in plain:
        return plain.replace("{", "").replace("}", "")
    return plain


def _number(plain: str) -> Fraction | None:
    plain = plain.strip("$£€")
    found = _FRACTION.fullmatch(plain)
    if found is not None:
        parts = found.groups()
        sign, top, bottom = parts[:3] if found[2] else parts[3:]
        if not int(bottom):
            return None
        return Fraction(int(f"{sign}{top}"), int(bottom))
    if _NUMBER.fullmatch(plain) and any(sign.isdigit() for sign in plain[:40]):
        try:
            return Fraction(plain.replace(",", ""))
        except ValueError:
            return None
    return None

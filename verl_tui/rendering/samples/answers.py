r"""Final answers in a response, how one compares with the ground truth, and the words in which two
texts differ.

The forms are those that graders look for: `\boxed{}` (MATH), `####` (GSM8K), `<answer>` (R1),
`Answer:` (DAPO). They are a heuristic beside the score, which alone is the grader's verdict.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import Counter
from contextlib import suppress
from difflib import SequenceMatcher
from fractions import Fraction
from itertools import islice, zip_longest
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.patterns import pattern
from verl_tui.rendering.samples.speakers import TextChunk, over, special
from verl_tui.rendering.text.piece import (
    MarkedSpan,
    Pieces,
    TextRows,
    cut,
    pieces,
    spans,
)
from verl_tui.rendering.text.table import sized
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.records import Sample


DIFFERS = "differs"
"""Role of a word that the other text does not have there."""
_WORD = pattern(r"\w+|[^\w\s]")
_MOST_PAIRS = 400_000
"""Equal words of two texts, pair by pair, that are compared in order: some 0.2 s at worst."""
_SIDE_BY_SIDE = 60
"""Width from which the texts stand side by side, in cells; below that one after the other."""
_MOST_ROWS = 2000


def changed_words(
    first: str, second: str
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return the spans of the words in each text that the other does not have there.

    Texts with too many equal words, as loops have, are compared without regard to order.
    """
    left = list(_WORD.finditer(first))
    right = list(_WORD.finditer(second))
    a = [word[0] for word in left]
    b = [word[0] for word in right]
    counts = Counter(b)
    if sum(counts[word] for word in a) > _MOST_PAIRS:
        return _absent(left, set(b)), _absent(right, set(a))
    gone: list[tuple[int, int]] = []
    come: list[tuple[int, int]] = []
    codes = SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
    for kind, start, end, first_come, last_come in codes:
        if kind != "equal":
            gone += _span(left[start:end])
            come += _span(right[first_come:last_come])
    return gone, come


def _absent(words: Sequence[re.Match[str]], others: set[str]) -> list[tuple[int, int]]:
    return [word.span() for word in words if word[0] not in others]


def _span(words: Sequence[re.Match[str]]) -> list[tuple[int, int]]:
    return [(words[0].start(), words[-1].end())] if words else []


def change_rows(
    titles: Sequence[Sequence[Pieces]], texts: tuple[str, str], width: int
) -> TextRows:
    """Return two responses with the rows above each, words that differ marked, and a sign before
    the rows that have some.

    Args:
        titles: What is said of the earlier response, and of the later one.
        texts: The responses.
        width: Cells of a row.
    """
    wide = width >= _SIDE_BY_SIDE
    room = (width - 3) // 2 if wide else width
    texts = texts[0].strip("\n"), texts[1].strip("\n")
    left, right = (
        _column(title, text, changed, room, sign)
        for title, text, changed, sign in zip(
            titles, texts, changed_words(*texts), "-+", strict=True
        )
    )
    if not wide:
        return [*left, [], *right]
    return [
        [*sized(before, room), (" │ ", "dim"), *after]
        for before, after in zip_longest(left, right, fillvalue=list[tuple[str, str]]())
    ]


def _column(
    titles: Sequence[Pieces],
    text: str,
    changed: Sequence[tuple[int, int]],
    width: int,
    sign: str,
) -> TextRows:
    """Return one response as rows of at most `width` cells."""
    found = over(special(text), [(start, end, DIFFERS) for start, end in changed])
    rows = [cut(title, width) for title in titles]
    for start, end in islice(spans(text, max(1, width - 2)), _MOST_ROWS):
        row = pieces(text, start, end, found, "response")
        differs = any(role == DIFFERS for _, role in row)
        rows.append(
            [(f"{sign} " if differs else "  ", DIFFERS if differs else ""), *row]
        )
    return rows


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
    """An answer in a text, and its content without what marks it."""

    start: int
    end: int
    text: str


def find_answers(text: str, chunks: Sequence[TextChunk]) -> list[Answer]:
    """Return the answers of the model in the order of the text."""
    spoken = [
        one for one in chunks if one.speaker == "assistant" and one.kind != "code"
    ]
    found = [
        Answer(one.start, one.end, text[one.start : one.end].strip())
        for one in spoken
        if one.kind == "answer" and not one.token
    ]
    for answer in (*_marked(text), *_matched(_LINE, text)):
        behind = bisect_right(spoken, answer.end - 1, key=lambda one: one.start)
        if behind and answer.end <= spoken[behind - 1].end:
            found.append(answer)
    return sorted(found)


def final_answer(text: str, chunks: Sequence[TextChunk]) -> str:
    """Return the last answer of a response, empty without one.

    Those in thoughts count only where there are no others.
    """
    answers = find_answers(text, chunks)
    thought = max((one.end for one in chunks if one.kind == "thought"), default=0)
    said = [answer for answer in answers if answer.start >= thought] or answers
    return said[-1].text if said else ""


def truth_text(
    sample: Sample, chunks: Sequence[TextChunk]
) -> tuple[str, list[MarkedSpan]]:
    """Return the ground truth and behind it how the answer compares with it, with marks.

    The answer is the one that the reward function extracted, else that of the response.
    """
    truth = (sample.ground_truth or "").strip("\n")
    name, answer = _extracted(sample)
    answer = answer or final_answer(sample.response.strip("\n"), chunks)
    accepted, words = compare_answers(answer, truth)
    if not words:
        return truth, []
    between = "\n" if "\n" in truth else " · "
    text = f"{truth}{between}{name} "
    spans: list[MarkedSpan] = [(len(truth), len(text), "dim")]
    said = one_line(answer)
    if words == "differs":
        lacking, wrong = changed_words(accepted, said)
        at = truth.find(accepted)
        marks = [(at + start, at + end, DIFFERS) for start, end in lacking if at >= 0]
        spans = [*marks, *spans]
        spans += [(len(text) + start, len(text) + end, DIFFERS) for start, end in wrong]
    if said.strip() != truth.strip():
        text += f"{said} "
    return text + words, [*spans, (len(text), len(text + words), "dim")]


def _extracted(sample: Sample) -> tuple[str, str]:
    """Return the answer that the reward function wrote, and before it the name of its field."""
    fields = ((key, sample.extras.get(key)) for key in _EXTRACTED)
    found = ((key, one) for key, one in fields if isinstance(one, str) and one)
    return next(found, ("the answer", ""))


def compare_answers(answer: str, truth: str) -> tuple[str, str]:
    """Return the accepted answer that another is compared with, and how they are alike; no words
    where one of them is no short answer.
    """
    truths = [text for text in _truths(truth) if 0 < len(text) <= _LONGEST]
    if not truths or not 0 < len(answer) <= _LONGEST:
        return "", ""
    alike = ((accepted, _alike(answer, accepted)) for accepted in truths)
    return next((one for one in alike if one[1]), (truths[0], "differs"))


def _marked(text: str) -> Iterator[Answer]:
    r"""Yield each answer behind `####`, and each `\boxed{…}` whose braces close."""
    yield from _matched(_HASHES, text)
    if "boxed" not in text and "fbox" not in text:
        return
    opened: list[tuple[int, int] | None] = []
    for found in _BRACES.finditer(text):
        if found["boxed"] is not None:
            opened.append(found.span())
        elif found[0] == "{":
            opened.append(None)
        elif found[0] == "}" and opened and (box := opened.pop()):
            yield Answer(box[0], found.end(), text[box[1] : found.start()].strip())


def _matched(form: re.Pattern[str], text: str) -> Iterator[Answer]:
    for found in form.finditer(text):
        yield Answer(*found.span(), found["answer"].strip())


def _truths(truth: str) -> Iterator[str]:
    """Yield the accepted answers: those of a JSON document, the final one of a solution, or the
    text itself.
    """
    found: object = truth
    if truth.lstrip()[:1] in ("{", "["):
        with suppress(ValueError, RecursionError):
            found = json.loads(truth)
    if isinstance(found, dict):
        found = next((found[key] for key in _TRUTH_KEYS if key in found), truth)
    for accepted in found[:_MOST_TRUTHS] if isinstance(found, list) else [found]:
        if isinstance(accepted, (str, int, float)):
            text = str(accepted).strip()
            yield max(_marked(text), default=Answer(0, 0, "")).text or text


def _alike(answer: str, truth: str) -> str:
    """Return how two answers are alike, empty if they are not."""
    if answer.strip() == truth.strip():
        return "agrees"
    plain, expected = _plain(answer), _plain(truth)
    if plain and plain.casefold() == expected.casefold():
        return "agrees but for the writing (heuristic)"
    number = _number(plain)
    same = number is not None and number == _number(expected)
    return "agrees as a number (heuristic)" if same else ""


def _plain(text: str) -> str:
    """Return an answer without layout, dollar signs and a full stop at its end."""
    plain = _WRITING.sub("", text).strip("$").removesuffix(".").removeprefix("\\$")
    return plain if "frac" in plain else plain.replace("{", "").replace("}", "")


def _number(plain: str) -> Fraction | None:
    plain = plain.strip("$£€")
    found = _FRACTION.fullmatch(plain)
    with suppress(ValueError, ZeroDivisionError):
        if found:
            sign, top, bottom = (one for one in found.groups() if one is not None)
            return Fraction(int(f"{sign}{top}"), int(bottom))
        if _NUMBER.fullmatch(plain):
            return Fraction(plain.replace(",", ""))
    return None

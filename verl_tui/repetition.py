"""How much a text repeats itself: words that come again, characters and syllables in a row.

The share of repeated n-grams is `rep-n` of Welleck et al. 2019 (arXiv:1908.04319). It speaks of
words; scripts that write none are taken by character.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from verl_tui.patterns import pattern

Spans: TypeAlias = "list[tuple[int, int]]"
"""Where they begin and end."""
_FEW, _SOME = 32, 128
"""Up to so many tokens repetition is that of pairs, of triples; beyond, of four in a row: in a
longer text short n-grams come again by themselves.
"""
_LEAST_TOKENS = 8
"""Fewer tokens have no entropy to speak of."""

# Scripts that put no spaces between words: Thai to Lao, Myanmar, Khmer, kana, Han.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
    "\u3005\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
TOKEN = pattern(rf"[{_UNSPACED}]|[^\W\d_{_UNSPACED}]+|\d+")
_ASCII_TOKEN = pattern(r"[a-z]+|[0-9]+")
"""The same for text that has nothing else, in half the time."""
_SAME = pattern(r"([^ ])\1{3,}")
"""The same character again and again; blanks are layout."""
_DRAWN = "=-_*#~.─━│|+"
"""Signs that people draw lines and tables with."""
_LETTERS, _SIGNS, _DIGITS, _LINE = 4, 12, 24, 120
"""So often in a row is too often: a letter for a word, a sign for a shout, a digit for a number, a
drawn sign for a line; heuristic.
"""
_BEAT = pattern(rf"([^\s{_UNSPACED}]{{2,12}}?)\1{{3,}}|([^\w\s]\s{{1,2}})\2{{7,}}")
"""A syllable again and again without a blank (`saysaysay`, `abab`), or a sign with one (`! !
!`).
"""
_ONLY_DRAWN = pattern(rf"[\s{re.escape(_DRAWN)}]+")
_LEAST_BEAT = 24
"""Characters that make it one: heuristic, longer than words and decimals that repeat."""
_STRETCH, _FEW_DIFFERENT = 32, 8
"""A stretch with so few different characters may be one; prose has twice as many."""


def tokens(text: str) -> list[str]:
    """Return the words of a text, in lower case; of scripts without spaces the characters."""
    text = text.lower()
    return (_ASCII_TOKEN if text.isascii() else TOKEN).findall(text)


def repetition(
    text: str, words: Sequence[str], pairs: Mapping[tuple[str, str], int]
) -> float:
    """Return how much of a text repeats itself, 0..1.

    The larger of two: the share of n-grams that came before in the text, and the share of
    characters that stand in runs of the same one (`aaaaa bbbbb`, `!!!!!!!!!!!!`) or of a syllable
    without a blank (`saysaysay`).

    Args:
        text: The text.
        words: Its tokens.
        pairs: How often each comes with its next one.
    """
    # Where no pair comes twice, nothing longer does.
    repeated = 0.0 if len(pairs) == len(words) - 1 else _repeated(words)
    in_runs = sum(end - start for start, end in runs(text))
    return max(repeated, in_runs / max(1, len(text)))


def entropy(pairs: Mapping[tuple[str, str], int], total: int) -> float | None:
    """Return the entropy of so many pairs of words, as a share of what it would be were all
    different; None of few.
    """
    if total < _LEAST_TOKENS:
        return None
    # A pair that comes once adds 1 · log 1 = 0, and most do.
    again = sum(count * math.log(count) for count in pairs.values() if count > 1)
    return 1.0 - again / (total * math.log(total))


def _repeated(words: Sequence[str]) -> float:
    n = 2 + (len(words) >= _FEW) + (len(words) >= _SOME)
    total = len(words) - n + 1
    if total < 2:
        return 0.0
    different = set(zip(*[words[i:] for i in range(n)], strict=False))
    return 1.0 - len(different) / total


def runs(text: str) -> Spans:
    """Return where the same character comes again and again, or a syllable does without a blank, in
    order.
    """
    found = [
        same.span()
        for same in _SAME.finditer(text)
        if len(same[0]) >= _too_often(same[1])
    ]
    found += _beats(text)
    return disjoint(found)


def disjoint(spans: Iterable[tuple[int, int]]) -> Spans:
    """Return spans in order, those that overlap put together."""
    joined: Spans = []
    for start, end in sorted(spans):
        if joined and start < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def _too_often(character: str) -> int:
    """Return how often in a row a character is a run."""
    if character.isalpha():
        return _LETTERS
    if character in _DRAWN:
        return _LINE
    return _DIGITS if character.isdigit() else _SIGNS


def _beats(text: str) -> Spans:
    """Look for syllables only where there are few different characters: the search itself costs
    much.
    """
    places = disjoint(
        (max(0, start - _STRETCH), start + 2 * _STRETCH)
        for start in range(0, len(text) - _STRETCH + 1, _STRETCH)
        if len(set(text[start : start + _STRETCH])) <= _FEW_DIFFERENT
    )
    found: Spans = []
    for start, end in places:
        for beat in _BEAT.finditer(text, start, end):
            is_long = len(beat[0]) >= _LEAST_BEAT
            if is_long and not _ONLY_DRAWN.fullmatch(beat[1] or beat[2]):
                found.append(beat.span())
    return found

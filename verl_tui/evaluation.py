"""Figures that the samples of one step give: how good, how varied, how repetitive they are.

Definitions follow common usage: distinct-n is Li et al. 2016 (arXiv:1510.03055), the share of repeated n-grams is
`rep-n` of Welleck et al. 2019 (arXiv:1908.04319). Both speak of words; scripts that write none are taken by character.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from verl_tui.records import Sample

PREFIX = "samples/"
"""Of figures from training samples; those from validation begin with `val_samples/`."""
LOOKED_AT = 16
"""Responses of a step whose text is looked at: enough for a share, few enough to cost little beside reading them."""
_LENGTH = 400
"""Characters looked at of each, the last ones: a loop goes on to the end."""
_MOST_COMPONENTS = 32
_FEW, _SOME = 32, 128
"""Up to so many tokens repetition is that of pairs, of triples; beyond, of four in a row: in a longer text short
n-grams come again by themselves."""
_LEAST_TOKENS = 8
"""Fewer tokens have no entropy to speak of."""

# Scripts that put no spaces between words: Thai to Lao, Myanmar, Khmer, kana, Han.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
    "\u3005\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_TOKEN = re.compile(rf"[{_UNSPACED}]|[^\W\d_{_UNSPACED}]+|\d+")
_RUN = re.compile(r"([^\W\d_])\1{3,}")
"""The same letter four times and more: no word has that; lines of dashes and zeros are no letters."""
_NO_COMPONENT = re.compile(
    r"(?:.*_)?(?:id|ids|uid|idx|index|seed|step|steps|epoch|rank|timestamp|time|version|turn|length|len|tokens?)",
    re.IGNORECASE,
)
"""Numbers beside a sample that measure nothing of it."""


def tokens(text: str) -> list[str]:
    """Return the words of a text, in lower case; of scripts without spaces the characters."""
    return _TOKEN.findall(text.lower())


def repetition(text: str) -> float:
    """Return how much of a text repeats itself, 0..1.

    The larger of two: the share of n-grams that came before in the text, and the share of letters that stand in runs
    of the same letter (`aaaaa bbbbb`).
    """
    return max(_repeated(tokens(text)), _in_runs(text))


def ngram_entropy(words: Sequence[str]) -> float | None:
    """Return the entropy of a text's word pairs, as a share of what it would be were all different; None if short."""
    total = len(words) - 1
    if total < _LEAST_TOKENS:
        return None
    counts = Counter(pairwise(words))
    entropy = math.log(total) - sum(count * math.log(count) for count in counts.values()) / total
    return entropy / math.log(total)


@lru_cache(maxsize=1024)
def _is_component(name: str) -> bool:
    return _NO_COMPONENT.fullmatch(name) is None


def _repeated(words: Sequence[str]) -> float:
    n = 2 if len(words) < _FEW else 3 if len(words) < _SOME else 4
    total = len(words) - n + 1
    if total < 2:
        return 0.0
    return 1.0 - len(set(zip(*(words[i:] for i in range(n)), strict=False))) / total


def _in_runs(text: str) -> float:
    runs = sum(len(found.group()) for found in _RUN.finditer(text))
    return runs / max(runs, sum(map(str.isalpha, text))) if runs else 0.0


class Evaluation:
    """The samples of one step and kind (training or validation), one after the other."""

    def __init__(self) -> None:
        self._count = 0
        self._scored, self._total, self._squares = 0, 0.0, 0.0
        """How many samples have a score, their sum, and the sum of their squares."""
        self._extras: dict[str, list[float]] = {}
        self._groups: dict[int, tuple[float, float, int]] = {}
        """Prompt -> lowest and highest score, and how many."""
        self._texts = _Texts()

    def add(self, sample: Sample) -> None:
        """Take in a sample."""
        self._count += 1
        if self._count <= LOOKED_AT:
            self._texts.add(sample.response)
        if sample.score is not None and math.isfinite(sample.score):
            self._add_score(sample.score, hash(sample.group or sample.prompt))
        for name, value in sample.extras.items():
            if isinstance(value, int | float) and math.isfinite(value) and _is_component(name):
                self._add_extra(name, float(value))

    def _add_score(self, score: float, group: int) -> None:
        self._scored += 1
        self._total += score
        self._squares += score * score
        low, high, many = self._groups.get(group, (score, score, 0))
        self._groups[group] = (score if score < low else low, score if score > high else high, many + 1)

    def _add_extra(self, name: str, value: float) -> None:
        if name in self._extras or len(self._extras) < _MOST_COMPONENTS:
            known = self._extras.setdefault(name, [0, 0.0])
            known[0] += 1
            known[1] += value

    def figures(self) -> dict[str, float]:
        """Return what is known so far, by name; what cannot be known is left out."""
        found: dict[str, float] = {"count": float(self._count), **self._texts.figures(), **self._spread()}
        for name, (count, total) in self._extras.items():
            found[f"extra_{name}" if name in found or name in RESERVED else name] = total / count
        return found

    def _spread(self) -> Mapping[str, float]:
        if not self._scored:
            return {}
        mean = self._total / self._scored
        found = {"score": mean, "score_std": math.sqrt(max(0.0, self._squares / self._scored - mean * mean))}
        groups = [group for group in self._groups.values() if group[2] > 1]
        if groups:
            same = [low for low, high, _ in groups if low == high]
            found["dead_groups"] = len(same) / len(groups)
            found["groups_all_wrong"] = sum(score <= 0 for score in same) / len(groups)
            found["groups_all_right"] = sum(score > 0 for score in same) / len(groups)
        return found


class _Texts:
    """The responses that are looked at; forgets them when it has seen enough."""

    def __init__(self) -> None:
        self._count = 0
        self._repetition = 0.0
        self._entropies: list[float] = []
        self._pairs: set[tuple[str, str]] = set()
        self._total_pairs = 0
        self._different: set[int] = set()
        self._done: dict[str, float] | None = None

    def add(self, response: str) -> None:
        text = response[-_LENGTH:]
        words = tokens(text)
        self._count += 1
        self._repetition += max(_repeated(words), _in_runs(text))
        if (entropy := ngram_entropy(words)) is not None:
            self._entropies.append(entropy)
        self._pairs.update(pairwise(words))
        self._total_pairs += max(0, len(words) - 1)
        self._different.add(hash(" ".join(response.split())))
        if self._count == LOOKED_AT:
            self._done = self.figures()
            # A run has thousands of steps: what is known need not be remembered word by word.
            self._pairs, self._different, self._entropies = set(), set(), []

    def figures(self) -> dict[str, float]:
        if self._done is not None:
            return self._done
        if not self._count:
            return {}
        found = {"repetition": self._repetition / self._count}
        if self._entropies:
            found["ngram_entropy"] = math.fsum(self._entropies) / len(self._entropies)
        if self._total_pairs:
            found["distinct_2"] = len(self._pairs) / self._total_pairs
        if self._count > 1:
            found["unique_share"] = len(self._different) / self._count
        return found


RESERVED = frozenset(
    {"count", "repetition", "ngram_entropy", "distinct_2", "unique_share", "score", "score_std"}
    | {"dead_groups", "groups_all_wrong", "groups_all_right"}
)
"""Names of figures; an extra of the same name is called `extra_…`."""

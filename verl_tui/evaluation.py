"""Figures that the samples of one step give: how good, how varied, how repetitive they are.

Distinct-n is that of Li et al. 2016 (arXiv:1510.03055).
"""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from verl_tui.distributions import MOST_VALUES, QUANTILES, of_values
from verl_tui.patterns import NamePattern
from verl_tui.repetition import entropy, repetition, tokens

if TYPE_CHECKING:
    from collections.abc import Mapping

    from verl_tui.distributions import Distribution
    from verl_tui.records import Sample, SampleFacts

PREFIX = "samples/"
"""Of figures from training samples; those from validation begin with `val_samples/`."""
LOOKED_AT = 16
"""Responses of a step whose text is looked at: enough for a share, few enough to cost little beside
reading them.
"""
_LENGTH = 400
"""Characters looked at of each, the last ones: a loop goes on to the end."""
_MOST_COMPONENTS = 32
LENGTH = "response_chars"
"""Mean length of the responses, in characters."""
READ_SHARE = "read_share"
"""Share of a dump that its figures cover, if not all of it."""
_WHOLE_GROUPS = 0.1
"""Share of the groups seen that must be as large as the largest, for that to be the size of a whole
group: where the rows of a group are scattered over the dump, a part of it holds hardly any whole
one.
"""
_LARGEST = 1e100
"""A number beyond this measures nothing, and the sum of a few squares of such would not be
finite.
"""
_NUMBER = (int, float)
_ROUNDING = 1e-6
"""Share of its size by which a score may differ from the same one summed in another order, in
single precision.
"""
_LEAST_SCORED = 8
"""Fewer scores have no quantiles to speak of."""
_NO_COMPONENT = NamePattern(
    r"(?:.*_)?(?:id|ids|uid|idx|index|seed|step|steps|epoch|rank|timestamp|time|version|turn"
    r"|length|len|tokens?|"
    r"advantages?|logprobs?)",
    re.IGNORECASE,
)
"""Numbers beside a sample that measure nothing of it."""


@lru_cache(maxsize=1024)
def _is_component(name: str) -> bool:
    return bool(name) and _NO_COMPONENT.fullmatch(name) is None


class Evaluation:
    """The samples of one step and kind (training or validation), one after the other."""

    def __init__(self) -> None:
        self.count = 0
        """Samples taken in."""
        self._length = 0
        """Characters of all responses."""
        self._scored = 0
        self._first = 0.0
        """Samples with a score, and the first score."""
        self._low = math.inf
        self._high = -math.inf
        self._total = 0.0
        self._squares = 0.0
        """Sums of the scores and of their squares, counted from the first score: large ones close
        together keep their spread.
        """
        self._scores = array("d")
        self._extras: dict[str, list[float]] = {}
        """Name -> how many samples have it, and their sum."""
        self._groups: dict[int, tuple[float, float, int]] = {}
        """Prompt -> lowest and highest score, and how many."""
        self._texts = _Texts()

    def add(self, sample: Sample) -> None:
        """Take in a sample."""
        if self.count < LOOKED_AT:
            self._texts.add(sample.response)
        self._add(
            sample.score,
            hash(sample.group or sample.prompt),
            len(sample.response),
            sample.extras,
        )

    def add_fact(self, fact: SampleFacts, response: str | None) -> None:
        """Take in what is known of a sample.

        Args:
            fact: The sample without its text.
            response: Its text; needed of the first `LOOKED_AT` only.
        """
        if response is not None and self.count < LOOKED_AT:
            self._texts.add(response)
        self._add(fact.score, hash(fact.group), fact.length, fact.numbers)

    def _add(
        self, score: float | None, group: int, length: int, extras: Mapping[str, object]
    ) -> None:
        self.count += 1
        self._length += length
        # False for NaN, too. Whole numbers may be too large for a float: comparing them is safe.
        if score is not None and -_LARGEST < score < _LARGEST:
            self._add_score(score, group)
        for name, value in extras.items():
            if isinstance(value, _NUMBER) and -_LARGEST < value < _LARGEST:
                self._add_extra(name, value)

    def _add_score(self, score: float, group: int) -> None:
        if not self._scored:
            self._first = score
        self._scored += 1
        self._low = min(self._low, score)
        self._high = max(self._high, score)
        above = score - self._first
        self._total += above
        self._squares += above * above
        low, high, many = self._groups.get(group, (score, score, 0))
        if self._scored <= MOST_VALUES:
            self._scores.append(score)
        self._groups[group] = (
            score if score < low else low,
            score if score > high else high,
            many + 1,
        )

    def _add_extra(self, name: str, value: float) -> None:
        known = self._extras.get(name)
        if known is None:
            if len(self._extras) == _MOST_COMPONENTS or not _is_component(name):
                return
            known = self._extras[name] = [0, 0.0]
        known[0] += 1
        known[1] += value

    def figures(self, *, whole: bool = True) -> dict[str, float]:
        """Return what is known so far, by name; what cannot be known is left out.

        Args:
            whole: Whether these are all samples of the step. Of a part, only groups that are there
                to the last sample count: half a group is more often of one score than a whole one.
        """
        found: dict[str, float] = {
            "count": float(self.count),
            **self._texts.figures(),
            **self._spread(),
        }
        if self.count:
            found[LENGTH] = self._length / self.count
        found.update(self._dead_groups(2 if whole else self._whole_group()))
        for name, (count, total) in self._extras.items():
            free = name
            while free in found or free in RESERVED:
                free = f"extra_{free}"
            found[free] = total / count
        return found

    def _spread(self) -> Mapping[str, float]:
        if not self._scored:
            return {}
        mean = self._total / self._scored
        variance = max(0.0, self._squares / self._scored - mean * mean)
        spread = {
            "score_min": float(self._low),
            "score_max": float(self._high),
            "score_std": math.sqrt(variance),
        }
        scores = self.scores()
        if scores is not None:
            quantiles = {f"score/{name}": scores.figures[name] for name in QUANTILES}
        else:
            quantiles = {}
        return {"score": self._first + mean, **spread, **quantiles}

    def scores(self) -> Distribution | None:
        """Return how the scores are distributed, None of few."""
        if self._scored >= _LEAST_SCORED:
            return of_values(self._scores[:MOST_VALUES])
        return None

    def _whole_group(self) -> int:
        """Return how many samples a whole group has, at least; a number beyond all where the groups
        do not tell.
        """
        sizes = Counter(many for _, _, many in self._groups.values())
        largest = max(sizes, default=0)
        if sizes[largest] >= _WHOLE_GROUPS * len(self._groups):
            return max(2, largest)
        return self.count + 1

    def _dead_groups(self, least: int) -> Mapping[str, float]:
        """Return the shares of groups of one score, of those that have so many samples at least.

        Right is the top of the scale only: 1 where scores go up to there, else the step's highest
        score.
        """
        groups = [group for group in self._groups.values() if group[2] >= least]
        if not groups:
            return {}
        same = [low for low, high, _ in groups if high - low <= _ROUNDING * abs(high)]
        top = max(1.0, self._high)
        return {
            "groups": float(len(groups)),
            "dead_groups": len(same) / len(groups),
            "groups_all_wrong": sum(score <= 0 for score in same) / len(groups),
            "groups_all_right": sum(score >= top for score in same) / len(groups),
        }


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
        pairs = Counter(pairwise(words))
        self._count += 1
        self._repetition += repetition(text, words, pairs)
        share = entropy(pairs, len(words) - 1)
        if share is not None:
            self._entropies.append(share)
        self._pairs.update(pairs)
        self._total_pairs += max(0, len(words) - 1)
        # Spaces and line ends make no difference: to drop them is faster than to make them alike,
        # and fastest in bytes.
        written = response.encode("utf-8", "surrogatepass")
        self._different.add(hash(written.translate(None, b" \n")))
        if self._count == LOOKED_AT:
            self._done = self.figures()
            # A run has thousands of steps: what is known need not be remembered word by word.
            self._pairs = set()
            self._different = set()
            self._entropies = []

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
    {
        "count",
        "repetition",
        "ngram_entropy",
        "distinct_2",
        "unique_share",
        LENGTH,
        READ_SHARE,
    }
    | {
        "score",
        "score_std",
        "score_min",
        "score_max",
        "groups",
        "dead_groups",
        "groups_all_wrong",
        "groups_all_right",
    }
)
"""Names of figures; an extra of the same name is called `extra_…`."""

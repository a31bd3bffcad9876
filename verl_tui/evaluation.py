"""Figures that the samples of one step give: how good, how varied, how repetitive they are.

Distinct-n is that of Li et al. 2016 (arXiv:1510.03055).
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

from verl_tui.distributions import MOST_VALUES, QUANTILES, Bins, Distribution, of_values
from verl_tui.means import mean
from verl_tui.metrics import read_table
from verl_tui.patterns import NamePattern
from verl_tui.repetition import entropy, repetition, tokens

PREFIX = "samples/"
"""Of figures from training samples; those from validation begin with `val_samples/`."""
LOOKED_AT = 16
"""Responses of a step whose text is looked at: enough for a share, few enough to cost little beside
reading them.
"""
_LENGTH = 400
"""Characters looked at of each, the last ones: a loop goes on to the end."""
_MOST_COMPONENTS = 32
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
_ROUNDING = 1e-6
"""Share of its size by which a score may differ from the same one summed in another order, in
single precision.
"""
_LEAST_VALUES = 8
"""Fewer have no quantiles to speak of."""
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
        self._lengths = array("q")
        """Characters of each response."""
        self._scores = array("d")
        self._prompts = array("q")
        """Of each score: the same number for samples of one group."""
        self._extras: dict[str, list[float]] = {}
        """Name -> how many samples have it, and their sum."""
        self._texts: list[tuple[str, int]] = []
        """The ends of the first responses, and what tells the whole ones apart."""
        self._text_figures: dict[str, float] | None = None
        """Once all of these are there: a run has thousands of steps, which need not be remembered
        word by word.
        """

    def add(
        self,
        score: float | None,
        group: str | None,
        length: int,
        extras: Mapping[str, object],
        response: str | None,
    ) -> None:
        """Take in what is known of a sample.

        Args:
            score: Its score.
            group: The same for all samples of a prompt.
            length: Characters of the response.
            extras: Further fields.
            response: Its text; needed of the first `LOOKED_AT` only.
        """
        if response is not None and self.count < LOOKED_AT:
            # Spaces and line ends make no difference: to drop them is faster than to make them
            # alike, and fastest in bytes.
            written = response.encode("utf-8", "surrogatepass").translate(None, b" \n")
            self._texts.append((response[-_LENGTH:], hash(written)))
            if len(self._texts) == LOOKED_AT:
                self._text_figures = _of_texts(self._texts)
                self._texts = []
        self.count += 1
        self._lengths.append(length)
        # False for NaN, too. Whole numbers may be too large for a float: comparing them is safe.
        if score is not None and -_LARGEST < score < _LARGEST:
            self._scores.append(score)
            self._prompts.append(hash(group))
        for name, value in extras.items():
            if isinstance(value, (int, float)) and -_LARGEST < value < _LARGEST:
                self._add_extra(name, value)

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
            **(self._text_figures or _of_texts(self._texts)),
        }
        if self._scores:
            found.update(self._of_scores(whole=whole))
        if self.count:
            found["response_chars"] = sum(self._lengths) / self.count
        for name, (count, total) in self._extras.items():
            free = f"extra_{name}" if PREFIX + name in RESERVED else name
            found[free] = total / count
        return found

    def scores(self) -> Distribution | None:
        """Return how the scores are distributed, None of few."""
        return _distribution(self._scores)

    def histograms(self) -> dict[str, Bins]:
        """Return how scores and characters of responses are distributed, by name; not of few."""
        found = {"score": self.scores(), "length": _distribution(self._lengths)}
        return {name: one.bins for name, one in found.items() if one}

    def _of_scores(self, *, whole: bool) -> dict[str, float]:
        """Return how good the samples are, and the shares of groups of one score. Right is the top
        of the scale only: 1 where scores go up to there, else the step's highest score.
        """
        import numpy as np

        scores, prompts = np.array(self._scores), np.array(self._prompts)
        # Counted from the first, large ones close together keep their spread.
        above = scores - scores[0]
        found = {
            "score": float(scores[0] + above.mean()),
            "score_min": float(scores.min()),
            "score_max": float(scores.max()),
            "score_std": float(above.std()),
        }
        if spread := self.scores():
            found |= {f"score/{name}": spread.figures[name] for name in QUANTILES}
        order = np.lexsort((scores, prompts))
        starts = np.flatnonzero(np.diff(prompts[order], prepend=~prompts[order[0]]))
        sizes = np.diff(starts, append=len(order))
        least = 2
        if not whole:
            # Where the rows of a group are scattered, a part of a dump holds hardly any whole one.
            largest = sizes.max()
            known = (sizes == largest).mean() >= _WHOLE_GROUPS
            least = max(2, largest) if known else len(order) + 1
        counted = sizes >= least
        if not counted.any():
            return found
        low = scores[order][starts][counted]
        high = scores[order][(starts + sizes - 1)][counted]
        same = low[high - low <= _ROUNDING * np.abs(high)]
        groups = len(low)
        return found | {
            "groups": float(groups),
            "dead_groups": len(same) / groups,
            "groups_all_wrong": float((same <= 0).sum() / groups),
            "groups_all_right": float((same >= max(1.0, scores.max())).sum() / groups),
        }


def _distribution(values: Sequence[float]) -> Distribution | None:
    return of_values(values[:MOST_VALUES]) if len(values) >= _LEAST_VALUES else None


def _of_texts(texts: Sequence[tuple[str, int]]) -> dict[str, float]:
    """Return the figures of the responses that are looked at."""
    if not texts:
        return {}
    words = [tokens(text) for text, _ in texts]
    pairs = [Counter(pairwise(one)) for one in words]
    totals = [max(0, len(one) - 1) for one in words]
    ends, whole = zip(*texts, strict=True)
    found = {"repetition": sum(map(repetition, ends, words, pairs)) / len(texts)}
    if shares := [one for one in map(entropy, pairs, totals) if one is not None]:
        found["ngram_entropy"] = mean(shares)
    if any(totals):
        found["distinct_2"] = len(set().union(*pairs)) / sum(totals)
    if len(texts) > 1:
        found["unique_share"] = len({*whole}) / len(texts)
    return found


RESERVED = {one.key for one in read_table("samples")}
"""Figures of training samples; an extra of the same name is called `extra_…`."""

"""Scores of a step's samples, in all and one compared with the others."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import fsum, isfinite, sqrt
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.means import mean
from verl_tui.rendering.text.numbers import compact
from verl_tui.words import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from verl_tui.records import SampleFacts

_GLYPHS = {
    "right": "✓",
    "wrong": "✗",
    "above": "▲",
    "below": "▼",
    "even": "=",
    "none": "·",
    "odd": "!",
}


class GroupScores(NamedTuple):
    """The finite scores of the samples of one prompt."""

    low: float
    high: float
    size: int
    mean: float
    right: int
    """Number of scores above 0."""


@dataclass(frozen=True, slots=True)
class ScoreSummary:
    """The scores of a step's samples."""

    count: int = 0
    """Number of samples, with a score or without."""
    scored: int = 0
    mean: float = 0.0
    std: float = 0.0
    groups: int = 0
    """Number of prompts with more than one score."""
    dead: int = 0
    """Number of these prompts whose samples all score the same."""
    binary: bool = False
    """True if a score is only right or wrong."""
    by_group: Mapping[str, GroupScores] = field(default_factory=dict)
    """Scores of each prompt with more than one, by group."""

    def mark(self, score: float | None, group: str | None = None) -> tuple[str, str]:
        """Return a glyph with its role: right or wrong, else above or below the mean of its group,
        or of the step where it has no group.
        """
        name, role = self._judged(score, group)
        return _GLYPHS[name], role

    def group_words(self, group: str | None) -> str:
        """Say how many of a prompt's samples are right, or their mean; empty without a group."""
        scores = self.by_group.get(group or "")
        if scores is None:
            return ""
        if self.binary:
            return f"{scores.right} of {scores.size} right"
        return f"group mean {compact(scores.mean)}"

    def _judged(self, score: float | None, group: str | None) -> tuple[str, str]:
        if score is None:
            return "none", "even"
        if not isfinite(score):
            return "odd", "critical"
        if self.binary:
            if score > 0:
                return ("right", "good")
            return ("wrong", "critical")
        scores = self.by_group.get(group or "")
        centre = self.mean if scores is None else scores.mean
        if abs(score - centre) <= 1e-9 * max(1.0, abs(centre)):
            return "even", "even"
        if score > centre:
            return "above", "good"
        return "below", "critical" if score < 0 else "warning"

    def words(self, *, complete: bool = True) -> list[str]:
        """Return the figures: `512 rows`, `score 0.41 ± 0.49`, `dead groups 12 %`."""
        words = [counted(self.count, "row")]
        if self.scored:
            spread = ""
            if self.scored > 1:
                spread = f" ± {compact(self.std)}"
            words.append(f"score {compact(self.mean)}{spread}")
        if self.groups:
            words.append(f"dead groups {self.dead / self.groups:.0%}")
        if not complete:
            words[0] += " so far"
        return words


def summarise(facts: Sequence[SampleFacts]) -> ScoreSummary:
    """Sum up the scores of a step's samples."""
    scored = [(fact.group, fact.score) for fact in facts if fact.score is not None]
    scored = [(group, score) for group, score in scored if isfinite(score)]
    if not scored:
        return ScoreSummary(len(facts))
    scores = [score for _, score in scored]
    groups = _several(scored)
    centre = mean(scores)
    different = set(scores)
    return ScoreSummary(
        count=len(facts),
        scored=len(scores),
        mean=centre,
        std=_std(scores, centre),
        groups=len(groups),
        dead=sum(one.low == one.high for one in groups.values()),
        binary=different <= {0, 1} or different == {-1, 1},
        by_group=groups,
    )


def _several(scored: Sequence[tuple[str | None, float]]) -> dict[str, GroupScores]:
    """Return the scores of each group of more than one sample."""
    groups: dict[str, list[float]] = {}
    for group, score in scored:
        if group is not None:
            groups.setdefault(group, []).append(score)
    return {
        group: _of_group(scores) for group, scores in groups.items() if len(scores) > 1
    }


def _of_group(scores: Sequence[float]) -> GroupScores:
    solved = sum(score > 0 for score in scores)
    return GroupScores(min(scores), max(scores), len(scores), mean(scores), solved)


def _std(scores: Sequence[float], centre: float) -> float:
    largest = max(abs(score - centre) for score in scores)
    if not largest or not isfinite(largest):
        return largest
    return largest * sqrt(
        fsum(((score - centre) / largest) ** 2 for score in scores) / len(scores)
    )

"""Scores of a step's samples, in all and one compared with the others."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from math import fsum, isfinite, sqrt
from typing import TYPE_CHECKING

from verl_tui.means import mean
from verl_tui.rendering.text.numbers import compact
from verl_tui.words import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from verl_tui.records import SampleFacts
    from verl_tui.rendering.text.piece import Piece


@dataclass(frozen=True, slots=True)
class StepScores:
    """The finite scores of a step's samples."""

    count: int
    """Number of samples, with a score or without."""
    scores: Sequence[float]
    mean: float
    binary: bool
    """True if a score is only right or wrong."""
    groups: Mapping[str, Sequence[float]]
    """Scores of each prompt with more than one."""

    def mark(self, fact: SampleFacts) -> Piece:
        """Return a glyph with its role: right or wrong, else above or below the mean of its group,
        or of the step where it has no group.
        """
        score = fact.score
        if score is None:
            return "·", "dim"
        if not isfinite(score):
            return "!", "critical"
        if self.binary:
            return ("✓", "good") if score > 0 else ("✗", "critical")
        group = self.groups.get(fact.group or "")
        centre = mean(group) if group else self.mean
        if abs(score - centre) <= 1e-9 * max(1.0, abs(centre)):
            return "=", "dim"
        if score > centre:
            return "▲", "good"
        return "▼", "critical" if score < 0 else "warning"

    def score_words(self, fact: SampleFacts, word: str = "score ") -> Piece:
        """Return a sample's score with its glyph, and the role."""
        if fact.score is None:
            return "no score", "dim"
        glyph, role = self.mark(fact)
        return f"{glyph} {word}{compact(fact.score)}", role

    def group_words(self, group: str | None) -> str:
        """Say how many of a prompt's samples are right, or their mean; empty without a group."""
        scores = self.groups.get(group or "")
        if scores is None:
            return ""
        if self.binary:
            return f"{sum(score > 0 for score in scores)} of {len(scores)} right"
        return f"group mean {compact(mean(scores))}"

    def words(self, *, complete: bool = True) -> str:
        """Return the figures: `512 rows · score 0.41 ± 0.49 · dead groups 12%`."""
        words = [counted(self.count, "row") + ("" if complete else " so far")]
        if self.scores:
            spread = f" ± {compact(self._std())}" if len(self.scores) > 1 else ""
            words.append(f"score {compact(self.mean)}{spread}")
        if self.groups:
            dead = sum(min(one) == max(one) for one in self.groups.values())
            words.append(f"dead groups {dead / len(self.groups):.0%}")
        return " · ".join(words)

    def _std(self) -> float:
        apart = (score - self.mean for score in self.scores)
        return sqrt(fsum(one * one for one in apart) / len(self.scores))


def summarise(facts: Sequence[SampleFacts]) -> StepScores:
    """Sum up the scores of a step's samples."""
    scores: list[float] = []
    groups: dict[str, list[float]] = defaultdict(list)
    for fact in facts:
        if fact.score is not None and isfinite(fact.score):
            scores.append(fact.score)
            if fact.group is not None:
                groups[fact.group].append(fact.score)
    different = set(scores)
    return StepScores(
        len(facts),
        scores,
        mean(scores) if scores else 0.0,
        bool(scores) and (different <= {0, 1} or different == {-1, 1}),
        {group: several for group, several in groups.items() if len(several) > 1},
    )

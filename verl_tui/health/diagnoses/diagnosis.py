"""What all diagnoses share: they look at a run, and remember what they have told and since when."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from verl_tui.health.blocks import Block, Blocks
from verl_tui.health.conditions.condition import Breaches
from verl_tui.health.conditions.trend import trend
from verl_tui.health.finding import Episode, Finding, NotJudged

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from verl_tui.health.conditions.condition import Breach
    from verl_tui.health.conditions.trend import Trend
    from verl_tui.health.guide import Rule
    from verl_tui.health.rule_context import RuleContext


_MANY = 100
"""Blocks that a breach is described by at most."""


class Diagnosis(ABC):
    """A failure that is seen in several signals of one run."""

    alive: ClassVar[bool] = False
    """Whether it depends on the time of day too, as a hang does, and not only on what the log
    says.
    """
    sentences: ClassVar[bool] = False
    """Whether what it remembers are whole sentences, and not words behind the rule's title."""

    def __init__(self, rule: Rule) -> None:
        """Prepare a diagnosis.

        Args:
            rule: Its entry in the guide, with its figures.
        """
        self.rule = rule
        self.breaches = Breaches(cooldown=0)

    @abstractmethod
    def judge(self, context: RuleContext) -> Finding | NotJudged | None:
        """Return what is found now, why nothing can be said, or None where nothing is found."""

    @property
    def episodes(self) -> Sequence[Episode]:
        """All findings so far, oldest first."""
        return [self.episode(breach) for breach in self.breaches.all]

    def episode(self, breach: Breach) -> Episode:
        """Return a breach as a finding of the past."""
        rule = self.rule
        message = breach.what if self.sentences else f"{rule.title} {breach.what}"
        return Episode(rule.id, rule.severity, breach.since, breach.raised, breach.cleared, message)

    def remember(self, finding: Finding | None, step: int | None) -> None:
        """Note what holds now, for diagnoses that look at the present only."""
        at = step if step is not None else 0
        if finding is None:
            self.breaches.end(at, at)
        elif self.breaches.open is None:
            since = finding.since_step if finding.since_step is not None else at
            self.breaches.begin(since, at, finding.message, at)


class BlockInputs(NamedTuple):
    """What a diagnosis by blocks looks at."""

    keys: tuple[str | None, ...]
    """The log's own keys; the first one sets the pace, others may be None."""
    depends_on: Hashable = None
    """Whatever else it depends on: where it changes, all is looked at anew."""


@dataclass(frozen=True, slots=True)
class BlockFinding:
    """What is seen in the blocks so far."""

    since: int
    """First step of the failure."""
    what: str
    """A few words for the history, behind the rule's title."""
    message: str
    evidence: tuple[str, ...]
    key: str | None = None
    """The metric that shows it best."""


class BlockDiagnosis(Diagnosis):
    """A diagnosis that compares metrics block by block: each block is looked at once, when it is
    full.
    """

    size: ClassVar[int] = 10
    """Points a block: enough to tell a level from noise, few enough to be told soon."""
    patience: ClassVar[int] = 5
    """Blocks without the signs after which it is over: it must not come and go with the noise."""
    needs: ClassVar[int] = 4
    """Blocks below which nothing is said."""
    errors: ClassVar[bool] = False
    """Whether it asks how sure the levels of its blocks are."""

    def __init__(self, rule: Rule) -> None:
        super().__init__(rule)
        self._inputs: BlockInputs | None = None
        self._start_over()

    @abstractmethod
    def inputs(self, context: RuleContext) -> BlockInputs | NotJudged:
        """Return the metrics to look at, or why it does not apply."""

    @abstractmethod
    def judge_blocks(self, blocks: Sequence[Block], inputs: BlockInputs) -> BlockFinding | None:
        """Return what is seen at the last of the blocks, None where nothing is."""

    def causes(self, context: RuleContext) -> Sequence[str]:  # noqa: ARG002 - most need no settings
        """Return what the run's settings have to do with it, one sentence each."""
        return ()

    def judge(self, context: RuleContext) -> Finding | NotJudged | None:
        """Look at the blocks that are new."""
        inputs = self.inputs(context)
        known = None if isinstance(inputs, NotJudged) else inputs
        if known != self._inputs:
            self._inputs = known
            self._start_over()
        if isinstance(inputs, NotJudged):
            return inputs
        series = [context.run.series(key) if key else None for key in inputs.keys]
        over, fresh = self._blocks.advance(series, context.end)
        if over:
            self._forget()
        for block in fresh:
            self._history.append(block)
            self._widen(block)
            if len(self._history) >= self.needs:
                self._note(self.judge_blocks(self._history, inputs), block.settled_step)
        if len(self._history) < self.needs:
            needed = self.needs * self.size + 1
            count = len(series[0]) if series[0] is not None else 0
            return NotJudged(self.rule.id, f"needs {needed} points, has {count}")
        return self._finding(context)

    def _start_over(self) -> None:
        self._blocks = Blocks(self.size, errors=self.errors)
        self._forget()

    def _forget(self) -> None:
        self._history: list[Block] = []
        self._reach: list[tuple[float, float]] = []
        self._newest: BlockFinding | None = None
        self._quiet = 0
        self.breaches = Breaches(cooldown=self.patience)

    def began(self, step: int) -> int:
        """Return the first step of a failure that is seen to begin at a step: of one that comes
        back, its own first.
        """
        known = self.breaches.recent(len(self._history))
        return step if known is None else min(step, known.since)

    def reach(self, i: int) -> tuple[float, float]:
        """Return the lowest and the highest level of a metric over all blocks; nan where it has
        none.
        """
        low, high = self._reach[i] if self._reach else (math.inf, -math.inf)
        return (low, high) if low <= high else (math.nan, math.nan)

    def _widen(self, block: Block) -> None:
        if not self._reach:
            self._reach = [(math.inf, -math.inf)] * len(block.levels)
        # A comparison with nan is false: what a block lacks changes nothing.
        self._reach = [
            (level if level < low else low, level if level > high else high)
            for level, (low, high) in zip(block.levels, self._reach, strict=True)
        ]

    def _note(self, finding: BlockFinding | None, step: int) -> None:
        at = len(self._history)
        if finding is not None:
            self._quiet = 0
            if self.breaches.open is None:
                self.breaches.begin(finding.since, step, finding.what, at)
            self._newest = finding
        elif self.breaches.open is not None:
            self._quiet += 1
            if self._quiet >= self.patience:
                self.breaches.end(step, at)
                self._newest = None

    def _finding(self, context: RuleContext) -> Finding | None:
        finding, breach = self._newest, self.breaches.open
        if finding is None or breach is None:
            return None
        rule = self.rule
        return Finding(
            rule.id,
            rule.severity,
            finding.message,
            step=self._history[-1].last,
            since_step=breach.since,
            evidence=(*finding.evidence, *self.causes(context)),
            advice=rule.advice or None,
            source=rule.source,
            key=finding.key,
        )


def since(blocks: Sequence[Block], step: int) -> Sequence[Block]:
    """Return the blocks from a step on, thinned out where they are many: a long breach must not
    cost ever more.
    """
    stretch = blocks[bisect_left(blocks, step, key=lambda block: block.last) :]
    stride = len(stretch) // _MANY + 1
    return [*stretch[:-1:stride], stretch[-1]] if stride > 1 else stretch


def column(blocks: Sequence[Block], i: int) -> list[float]:
    """Return the levels of one metric, without the blocks that lack it."""
    return [value for block in blocks if not math.isnan(value := block.levels[i])]


def course(blocks: Sequence[Block], i: int) -> Trend:
    """Return the trend of one metric over the blocks."""
    return trend(column(blocks, i))

"""Base of all diagnoses: they judge a run, and remember their findings of the past."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from verl_tui.health.blocks import NONE, BlockHistory, blocks, settled
from verl_tui.health.conditions.condition import (
    KEPT_BREACHES,
    Breach,
    open_breach,
)
from verl_tui.health.conditions.trend import trend
from verl_tui.health.finding import Episode, Finding, NotJudged
from verl_tui.indicators import INDICATORS

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from verl_tui.health.conditions.trend import Trend
    from verl_tui.health.conditions.windows import Flags
    from verl_tui.health.finding import Severity
    from verl_tui.health.guide import Rule
    from verl_tui.health.rule_context import RuleContext
    from verl_tui.runs.series import Series


_MANY = 100
"""Most blocks that describe a breach."""


class Remark(NamedTuple):
    """What else is known of a breach."""

    severity: Severity
    words: str
    """To follow the message."""


class Diagnosis(ABC):
    """A failure that is seen in several signals of one run."""

    alive: ClassVar[bool] = False
    """True if it depends on the clock, as a hang does, and not only on the log."""
    sentences: ClassVar[bool] = False
    """True if the messages of its history are whole sentences, not words after the rule's title."""

    def __init__(self, rule: Rule) -> None:
        """Prepare a diagnosis.

        Args:
            rule: Its entry in the guide, with its figures.
        """
        self.rule = rule
        self.finding = rule.finding
        self.breaches: deque[Breach] = deque(maxlen=KEPT_BREACHES)
        self._remarks: dict[int, Remark] = {}
        """What was known of a breach when it was raised, by that step."""
        self._seen: Hashable = None
        """All that these depend on besides the step."""

    @abstractmethod
    def judge(self, context: RuleContext) -> Finding | NotJudged | None:
        """Return the finding now, why it does not judge, or None if nothing is found."""

    @property
    def episodes(self) -> Sequence[Episode]:
        """All findings so far, oldest first."""
        return [self.episode(breach) for breach in self.breaches]

    def episode(self, breach: Breach) -> Episode:
        """Return a breach as a finding of the past."""
        rule = self.rule
        message = breach.what if self.sentences else f"{rule.title} {breach.what}"
        severity, words = self._remarks.get(breach.raised, (rule.severity, ""))
        steps = (breach.since, breach.raised, breach.cleared)
        return Episode(rule.id, severity, *steps, message + words)

    def note_remarks(
        self,
        context: RuleContext,
        seen: Hashable,
        remark: Callable[[RuleContext], Remark],
    ) -> None:
        """Note of each breach what was known when it was raised: later points do not change the
        history.

        Args:
            context: The run.
            seen: All that remarks depend on besides the step.
            remark: Returns it by what is known in a context.
        """
        if seen != self._seen:
            self._seen = seen
            self._remarks = {}
        for breach in self.breaches:
            if breach.raised not in self._remarks:
                self._remarks[breach.raised] = remark(context.at(breach.raised))

    def remember(self, finding: Finding | None, step: int | None) -> None:
        """Note the present finding, for diagnoses that look at the present only."""
        at = step or 0
        if finding is None:
            self._end(at)
        elif self.open is None:
            since = finding.since_step if finding.since_step is not None else at
            before = self.breaches[-1] if self.breaches else None
            is_same = before is not None and at <= (before.cleared or 0)
            self._begin(Breach(since, at, finding.message), goes_on=is_same)

    @property
    def open(self) -> Breach | None:
        """The breach that holds now."""
        return open_breach(self.breaches)

    def _begin(self, breach: Breach, *, goes_on: bool) -> None:
        """Note a breach that has become certain, or that the last one goes on."""
        if goes_on:
            self.breaches[-1] = self.breaches[-1]._replace(cleared=None)
        else:
            self.breaches.append(breach)

    def _end(self, step: int) -> None:
        """Note that the breach is over; without one nothing happens."""
        if self.open is not None:
            self.breaches[-1] = self.breaches[-1]._replace(cleared=step)


class BlockInputs(NamedTuple):
    """The metrics that a diagnosis by blocks judges."""

    keys: tuple[str | None, ...]
    """The log's own keys; the first one sets the pace, others may be None."""
    depends_on: Any = None
    """Anything else that it depends on, hashable: if it changes, judging starts over."""


_NO_INPUTS = BlockInputs(())


@dataclass(frozen=True, slots=True)
class BlockFinding:
    """A finding in the blocks so far."""

    since: int
    """First step of the failure."""
    what: str
    """A few words for the history, after the rule's title."""
    message: str
    evidence: tuple[str, ...]
    key: str | None = None
    """The metric that shows it best."""


class BlockDiagnosis(Diagnosis):
    """A diagnosis that compares metrics block by block; each block is judged once, when full."""

    requires: ClassVar[tuple[str, ...]] = ()
    """Indicators without which it does not judge."""
    size: ClassVar[int] = 10
    """Points a block: enough to tell a level from noise, few enough to find failures soon."""
    patience: ClassVar[int] = 5
    """Blocks without the signs after which it is over: it must not come and go with noise."""
    needs: ClassVar[int] = 4
    """Fewest blocks to judge."""
    errors: ClassVar[bool] = False
    """True if its blocks need the standard errors of their levels."""

    def __init__(self, rule: Rule) -> None:
        super().__init__(rule)
        self._inputs = _NO_INPUTS
        self._of: tuple[int, Hashable] = (0, None)
        """What the blocks so far depend on."""
        self._history = NONE
        self._count = 0
        """Number of blocks that there are, of which `_history` are those judged so far."""
        self._start_over()

    @abstractmethod
    def inputs(self, context: RuleContext) -> BlockInputs | str:
        """Return the metrics to look at where it has what it requires, or why it does not apply."""

    @abstractmethod
    def judge_blocks(
        self, blocks: BlockHistory, inputs: BlockInputs
    ) -> BlockFinding | None:
        """Return the finding at the last of the blocks, None if there is none."""

    def may_begin(self, blocks: BlockHistory) -> Flags:
        """Return at which blocks a finding may begin, found at once for all: the others are not
        looked at one by one.
        """
        return np.ones(len(blocks), bool)

    def causes(self, context: RuleContext) -> Sequence[str]:  # noqa: ARG002 - most need no settings
        """Return the settings that may be to blame, one sentence each."""
        return ()

    def judge(self, context: RuleContext) -> Finding | NotJudged | None:
        """Judge the new blocks."""
        reason = self._lacks(context)
        inputs = reason or self.inputs(context)
        known = _NO_INPUTS if isinstance(inputs, str) else inputs
        if known != self._inputs:
            self._inputs = known
            self._start_over()
        if isinstance(inputs, str):
            return NotJudged(self.rule.id, inputs)
        series = [context.run.series(key) if key else None for key in inputs.keys]
        self._advance(series, context.end, inputs)
        if len(self._history) < self.needs:
            needed = self.needs * self.size + 1
            has = len(series[0]) if series[0] is not None else 0
            return NotJudged(self.rule.id, f"needs {needed} points, has {has}")
        return self._finding(context)

    def _lacks(self, context: RuleContext) -> str | None:
        """Return which indicator the log lacks, as a reason."""
        missing = [id for id in self.requires if id not in context.indicators]
        return f"the log has no {INDICATORS[missing[0]].label}" if missing else None

    def _advance(
        self, series: Sequence[Series | None], end: int | None, inputs: BlockInputs
    ) -> None:
        """Judge each new block once."""
        count, of = settled(series, self.size, end)
        if (count, of) == self._of:
            return
        whole = blocks(series, self.size, count, errors=self.errors)
        if not whole.begins_with(self._history):
            self._forget()
        self._count = count
        self._reach = whole.reach()
        steps = whole.settled_steps()
        may_begin = self.may_begin(whole).tolist() if count else ()
        for at in range(max(self.needs, len(self._history) + 1), count + 1):
            if may_begin[at - 1] or self._newest is not None:
                self._history = whole[:at]
                self._note(self.judge_blocks(self._history, inputs), steps[at - 1])
        self._history = whole
        self._of = (count, of)

    def _start_over(self) -> None:
        self._of = (0, None)
        self._forget()

    def _forget(self) -> None:
        self._history = NONE
        self._reach = NONE.reach()
        self._newest: BlockFinding | None = None
        self._quiet = 0
        self.breaches.clear()
        self._over = 0
        """Number of blocks when the last breach was over."""

    @property
    def _comes_back(self) -> bool:
        """True if a breach that begins now continues the last one."""
        return bool(self.breaches) and len(self._history) - self._over <= self.patience

    def began(self, step: int) -> int:
        """Return the first step of a failure that seems to begin at `step`: an earlier one if it
        continues a recent breach.
        """
        return min(step, self.breaches[-1].since) if self._comes_back else step

    def reach(self, i: int) -> tuple[float, float]:
        """Return the lowest and the highest level of a metric over all blocks; nan where it has
        none.
        """
        at = len(self._history) - 1
        if at < 0:
            return math.nan, math.nan
        low, high = self._reach
        return float(low[at, i]), float(high[at, i])

    def _note(self, finding: BlockFinding | None, step: int) -> None:
        if finding is not None:
            self._quiet = 0
            if self.open is None:
                breach = Breach(finding.since, step, finding.what)
                self._begin(breach, goes_on=self._comes_back)
            self._newest = finding
        elif self.open is not None:
            self._quiet += 1
            if self._quiet >= self.patience:
                self._end(step)
                self._over = len(self._history)
                self._newest = None

    def _finding(self, context: RuleContext) -> Finding | None:
        finding = self._newest
        if finding is None or self.open is None:
            return None
        return self.finding(
            finding.message,
            (*finding.evidence, *self.causes(context)),
            since=self.open.since,
            step=self._history[-1].last,
            key=finding.key,
        )


def blocks_since(blocks: BlockHistory, step: int) -> BlockHistory:
    """Return the blocks from a step on; many are thinned out, so that cost stays bounded."""
    return blocks[blocks.first_from(step) :].thinned(_MANY)


def column(blocks: BlockHistory, i: int) -> list[float]:
    """Return the levels of one metric, without the blocks that lack it."""
    levels = blocks.levels(i)
    known: list[float] = levels[~np.isnan(levels)].tolist()
    return known


def course(blocks: BlockHistory, i: int) -> Trend:
    """Return the trend of one metric over the blocks."""
    return trend(column(blocks, i))

"""Base of all diagnoses: they judge a run, and remember their findings of the past."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from math import isfinite
from string import Formatter
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from verl_tui.health.blocks import NONE, blocks, settled
from verl_tui.health.conditions.condition import (
    KEPT_BREACHES,
    Breach,
    open_breach,
)
from verl_tui.health.finding import Episode, Finding, NotJudged, number
from verl_tui.health.suspect_settings import CAUSES
from verl_tui.indicators import INDICATORS
from verl_tui.toml_tables import toml_table

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

    from verl_tui.health.blocks import BlockHistory
    from verl_tui.health.conditions.windows import Flags, Places
    from verl_tui.health.finding import Severity
    from verl_tui.health.guide import Rule
    from verl_tui.health.rule_context import RuleContext
    from verl_tui.runs.series import Series

WORDS = toml_table(__file__, "words.toml")
"""What diagnoses say, by the unique name of their rule."""


class _Filled(Formatter):
    """Fills words in: numbers with a fraction in few characters, where the words do not say how."""

    def format_field(self, value: object, spec: str) -> str:
        """Return one of them."""
        is_plain = isinstance(value, float) and isfinite(value) and not spec
        return number(value) if is_plain else format(value, spec)  # type: ignore[arg-type]


filled = _Filled().vformat


def went(key: str | None, levels: Sequence[float], first: int, last: int) -> str:
    """Return as evidence how a metric went between two steps."""
    return (
        f"{key}: {number(levels[0])} at step {first}, "
        f"{number(levels[-1])} at step {last}"
    )


class Remark(NamedTuple):
    """What else is known of a breach."""

    severity: Severity
    words: str
    """To follow the message."""


class Diagnosis(ABC):
    """A failure that is seen in several signals of one run."""

    RULE: ClassVar[str] = ""
    """Unique name of its rule, empty of what is only a base of others."""
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
        self.breaches: deque[Breach] = deque(maxlen=KEPT_BREACHES)
        self._remarks: dict[int, Remark] = {}
        """What was known of a breach when it was raised, by that step."""
        self._seen: Hashable = None
        """All that these depend on besides the step."""

    @abstractmethod
    def look(self, context: RuleContext) -> Finding | str | None:
        """Return the finding now, why it does not judge, or None if nothing is found."""

    def judge(self, context: RuleContext) -> Finding | NotJudged | None:
        """Return the finding now, that it does not judge, or None if nothing is found."""
        found = self.look(context)
        return NotJudged(self.rule.id, found) if isinstance(found, str) else found

    def words(self, case: str = "") -> Mapping[str, Any]:
        """Return what it says in one of its cases."""
        own: Mapping[str, Any] = WORDS.get(self.rule.name, {})
        return {**own, **own.get(case, {})}

    def finding(
        self,
        facts: Mapping[str, object],
        evidence: Iterable[str | None] = (),
        *,
        case: str = "",
        since: int | None = None,
        step: int | None = None,
        key: str | None = None,
        severity: Severity | None = None,
        advice: str | None = None,
    ) -> Finding:
        """Return a finding in its own words.

        Args:
            facts: What its words name, besides the key and the first step of the failure.
            evidence: Sentences that follow those of its words.
            case: Which of its cases it is.
            since: First step of the failure.
            step: The newest step that was judged, `since` if it is the same.
            key: The metric that shows it best.
            severity: Another one than the guide's.
            advice: Other advice than its own.
        """
        words = self.words(case)
        known = {"since": since, "key": key, **facts}
        own = [filled(one, (), known) for one in words.get("evidence", ())]
        return self.rule.finding(
            filled(words["message"], (), known),
            [*own, *evidence],
            since=since,
            step=step,
            key=key,
            severity=severity,
            advice=words.get("advice") if advice is None else advice,
        )

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

    @property
    def open(self) -> Breach | None:
        """The breach that holds now."""
        return open_breach(self.breaches)

    def begin(self, breach: Breach, *, goes_on: bool = False) -> None:
        """Note a breach that has become certain, or that the last one goes on."""
        if goes_on:
            self.breaches[-1] = self.breaches[-1]._replace(cleared=None)
        else:
            self.breaches.append(breach)

    def end(self, step: int) -> None:
        """Note that the breach is over; without one nothing happens."""
        if self.open is not None:
            self.breaches[-1] = self.breaches[-1]._replace(cleared=step)


class PresentDiagnosis(Diagnosis):
    """A diagnosis that looks at the present only: its history is what it has found so far."""

    sentences: ClassVar[bool] = True

    def judge(self, context: RuleContext) -> Finding | NotJudged | None:
        """Return what there is now, and remember it."""
        found = super().judge(context)
        is_found = isinstance(found, Finding) and self.counts(found, context)
        self.remember(found if is_found else None, context.run.step)  # type: ignore[arg-type]
        return found

    def counts(self, finding: Finding, context: RuleContext) -> bool:  # noqa: ARG002 - most do
        """Return whether a finding goes into the history."""
        return True

    def remember(self, finding: Finding | None, step: int | None) -> None:
        """Note the finding at a step, by its own step if it has one."""
        if finding is None:
            self.end(step or 0)
        elif self.open is None:
            at = (finding.step if finding.step is not None else step) or 0
            since = finding.since_step if finding.since_step is not None else at
            before = self.breaches[-1] if self.breaches else None
            is_same = before is not None and at <= (before.cleared or 0)
            self.begin(Breach(since, at, finding.message), goes_on=is_same)


class BlockInputs(NamedTuple):
    """The metrics that a diagnosis by blocks judges."""

    keys: tuple[str | None, ...]
    """The log's own keys; the first one sets the pace, others may be None."""
    depends_on: Any = None
    """Anything else that it depends on, hashable: if it changes, judging starts over."""


class BlockFinding(NamedTuple):
    """A finding in the blocks so far; put into words only where it is told."""

    since: int
    """First step of the failure."""
    key: str | None
    """The metric that shows it best."""
    facts: Mapping[str, object]
    """What its words name."""
    evidence: Sequence[str] = ()
    case: str = ""


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

    keys: tuple[str | None, ...] = ()
    depends_on: Any = None
    """The inputs, see `BlockInputs`."""
    history: BlockHistory = NONE
    """The blocks so far."""
    newest: BlockFinding | None = None
    """The finding at the last of them that had one, until it is over."""
    _of: Hashable = None
    """What these depend on."""
    _quiet = 0
    _over = 0
    """Number of blocks when the last breach was over."""

    @abstractmethod
    def inputs(self, context: RuleContext) -> BlockInputs | str:
        """Return the metrics to look at where it has what it requires, or why it does not apply."""

    @abstractmethod
    def judge_blocks(self, blocks: BlockHistory) -> BlockFinding | None:
        """Return the finding at the last of the blocks, None if there is none."""

    def may_begin(self, blocks: BlockHistory) -> Flags:
        """Return at which blocks a finding may begin, found at once for all: the others are not
        looked at one by one.
        """
        return np.ones(len(blocks), bool)

    def lasts(
        self,
        blocks: BlockHistory,  # noqa: ARG002 - most look at each
        begins: Flags,  # noqa: ARG002
    ) -> Flags | None:
        """Return at which blocks a finding that has begun still shows, found at once for all; None
        if that takes a look at each.

        Args:
            blocks: All blocks.
            begins: Where it may begin.
        """
        return None

    def told(
        self,
        since: int,
        key: str | None,
        evidence: Sequence[str] = (),
        case: str = "",
        **facts: object,
    ) -> BlockFinding:
        """Return a finding at the newest block.

        Args:
            since: First step of the failure.
            key: The metric that shows it best.
            evidence: Sentences that follow those of its words.
            case: Which of its cases it is.
            facts: What its words name besides these, the points a block, the block's last step, and
                the first metric with its level there.
        """
        newest = self.history[-1]
        own = {"since": since, "key": key, "size": self.size, "last": newest.last}
        lead = {"lead": self.keys[0], "level": newest.levels[0]}
        return BlockFinding(since, key, {**own, **lead, **facts}, evidence, case)

    def look(self, context: RuleContext) -> Finding | str | None:
        """Judge the new blocks."""
        inputs = self._lacks(context) or self.inputs(context)
        known = BlockInputs(()) if isinstance(inputs, str) else inputs
        if known != (self.keys, self.depends_on):
            self.keys, self.depends_on = known
            self.forget()
        if isinstance(inputs, str):
            return inputs
        series = [context.run.series(key) if key else None for key in self.keys]
        self._advance(series, context.end)
        if len(self.history) < self.needs:
            has = len(series[0]) if series[0] is not None else 0
            return f"needs {self.needs * self.size + 1} points, has {has}"
        return self._present(context)

    def _lacks(self, context: RuleContext) -> str | None:
        """Return which indicator the log lacks, as a reason."""
        missing = (id for id in self.requires if id not in context.indicators)
        first = next(missing, None)
        return first and f"the log has no {INDICATORS[first].label}"

    def _advance(self, series: Sequence[Series | None], end: int | None) -> None:
        """Judge each new block once."""
        count, of = settled(series, self.size, end)
        if of == self._of:
            return
        whole = blocks(series, self.size, count)
        if not whole.begins_with(self.history):
            self.forget()
        if count:
            self._judge_new(whole, max(self.needs, len(self.history) + 1))
        self.history = whole
        self._of = of

    def _judge_new(self, whole: BlockHistory, start: int) -> None:
        """Judge the blocks from a number of them on."""
        steps = whole.settled_steps()
        begins = self.may_begin(whole)
        lasts = self.lasts(whole, begins) if self.newest is not None else None
        for at in range(start, len(whole) + 1):
            held = self.newest
            may_show = begins[at - 1] or self.may_last
            if held is None and not may_show:
                continue
            self.history = whole[:at]
            found = self._judge_newest(lasts) if may_show else None
            self._note(found, steps[at - 1])
            if held is None and self.newest is not None:
                lasts = self.lasts(whole, begins)
        if lasts is not None:
            self._tell(whole, np.flatnonzero(lasts[start - 1 :]) + start)

    def _judge_newest(self, lasts: Flags | None) -> BlockFinding | None:
        """Return the finding at the newest block; of one that is said to last as it was."""
        if self.newest is None or lasts is None:
            return self.judge_blocks(self.history)
        return self.newest if lasts[len(self.history) - 1] else None

    def _tell(self, whole: BlockHistory, shown: Places) -> None:
        """Put into words what lasts, at the newest block that shows it."""
        if self.newest is not None and len(shown):
            self.history = whole[: shown[-1]]
            self.newest = self.judge_blocks(self.history) or self.newest

    def forget(self) -> None:
        """Start over."""
        self._of = self.newest = None
        self.history = NONE
        self._quiet = self._over = 0
        self.breaches.clear()

    @property
    def may_last(self) -> bool:
        """True if the next block may show a finding where none may begin."""
        return self.newest is not None

    @property
    def _comes_back(self) -> bool:
        """True if a breach that begins now continues the last one."""
        return bool(self.breaches) and len(self.history) - self._over <= self.patience

    def began(self, step: int) -> int:
        """Return the first step of a failure that seems to begin at `step`: an earlier one if it
        continues a recent breach.
        """
        return min(step, self.breaches[-1].since) if self._comes_back else step

    def _note(self, finding: BlockFinding | None, step: int) -> None:
        if finding is not None:
            self._quiet = 0
            if self.open is None:
                what = filled(self.words(finding.case)["what"], (), finding.facts)
                breach = Breach(finding.since, step, what)
                self.begin(breach, goes_on=self._comes_back)
            self.newest = finding
        elif self.open is not None:
            self._quiet += 1
            if self._quiet >= self.patience:
                self.end(step)
                self._over = len(self.history)
                self.newest = None

    def _present(self, context: RuleContext) -> Finding | None:
        found = self.newest
        if found is None or self.open is None:
            return None
        return self.finding(
            found.facts,
            (*found.evidence, *CAUSES[self.rule.causes](context.run)),
            case=found.case,
            since=self.open.since,
            step=self.history[-1].last,
            key=found.key,
        )

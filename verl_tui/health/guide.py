"""The guide: all rules as data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from verl_tui.health.finding import WORDS, Finding, Severity, filled, number
from verl_tui.indicators import DIALECTS
from verl_tui.words import figure


@dataclass(frozen=True, slots=True)
class Rule:
    """One entry of the guide. Which fields matter depends on the condition."""

    id: str
    """Public name, e.g. `kl-high`. Variants for different kinds of logs share it."""
    severity: Severity
    title: str
    """Name of the judged quantity in messages."""
    condition: str
    """Kind of the condition, one of `KINDS`; a `diagnosis` is in `verl_tui/health/diagnoses`."""
    cause: str = ""
    """What it finds, in the few words of a headline; empty where its id says it."""
    variant: str = ""
    indicator: str = ""
    """The judged quantity: an indicator's id …"""
    metric: tuple[str, ...] = ()
    """… or verl's present name of a metric, alternatives in order; with `*` every matching key on
    its own.
    """
    parts: bool = False
    """Judge each part of the reward, not the indicator itself."""
    beside_indicator: str = ""
    """A second input, for streams that need one: an indicator's id …"""
    beside_metric: tuple[str, ...] = ()
    """… or a metric."""
    stream: str = "value"
    """How the judged number is made of the inputs, see `verl_tui.health.columns`."""
    unit: str = ""
    """`share` or `percent`, where the number is one; percentages some logs write as shares."""
    threshold: float = 0.0
    low: float = 0.0
    high: float = 0.0
    """Ends of the healthy range, where the condition has two (`outside`)."""
    of: str = ""
    """A limit of the run's own settings that the threshold is a multiple of, see
    `verl_tui.health.limits`.
    """
    window: int = 1
    """Points (logged steps) of the window."""
    why_window: str = ""
    """The reason for this many: the guides say `for long` and name no number."""
    count: int = 5
    """Breaches in a row (circuit breakers, a fall to zero)."""
    factor: float = 1.0
    """Multiple of its own past (jumps, surges, rises)."""
    spread: float = 0.0
    """Standard deviations of its own past (jumps)."""
    floor: float = 0.0
    """Values below are never found (jumps, surges)."""
    tail: float = 0.0
    """Multiple of the upper tail of its own past (jumps): a value that recurs is not a jump."""
    ignore: float = -math.inf
    """Share of the floor up to which a value is left out of the past (jumps)."""
    least: int = 0
    """Fewest points of the past that it needs (jumps); 0 = the whole window."""
    hold: int = 10
    """Points for which a jump is reported."""
    recent: int = 5
    """Points that must have surged, or fallen."""
    share: float = 0.8
    """Share of the window that must be in breach for a finding to begin."""
    clear: float = 0.5
    """Share at or below which it ends."""
    trend: str = ""
    """What the window must show besides (stays): `rising` or `not rising`."""
    climb: float = 0.0
    """Multiple of its level at the beginning that the window must have reached (stays)."""
    dialects: tuple[str, ...] = DIALECTS
    """Dialects of the logs that it judges."""
    not_in: Mapping[str, str] = field(default_factory=dict)
    """Dialect -> why it does not judge such logs."""
    unless: tuple[str, ...] = ()
    """Names of the exemptions under which it does not apply: `verl_tui.health.exemptions`."""
    of_the_end: bool = False
    """Whether the end of a log is enough to judge it, see `judge.verdict_on_end`."""
    says: str = ""
    """A sentence's beginning that replaces `<title> has stayed <where>`."""
    label: str = ""
    """A remark for every finding, e.g. on the nature of a measurement."""
    false_when: str = ""
    """Units, scales or sparsity of logs that could cause a false alarm, and how it is prevented."""
    meaning: str = ""
    advice: str = ""
    source: str = ""
    """The document that the threshold is from, or `heuristic`."""
    null_rate: str = ""
    """Findings on runs without a fault, e.g. `0 of 600`; empty where figures were changed."""
    causes: str = ""
    """Settings that may be to blame: `drift` or `length`, see `limits.py`."""
    explains: tuple[str, ...] = ()
    """Ids of its consequences, which begin no earlier, see `verl_tui.health.consequences`."""
    signs: tuple[str, ...] = ()
    """Ids of its signs, which may begin earlier."""
    before: int = 300
    """Logged points by which a sign may begin earlier."""
    if_first: tuple[str, ...] = ()
    """Ids of what it explains, too, but only if it moved first: then it follows from none of
    these, whatever their rules explain, and is as bad as they are.
    """
    lag: int = 0
    """Logged points by which it may seem to begin later and still have moved first."""
    within: int = 100_000
    """Logged points after its beginning within which they must have begun."""

    @property
    def name(self) -> str:
        """Unique name: the id, with the variant where there is one."""
        return f"{self.id}/{self.variant}" if self.variant else self.id

    def written(self, value: float) -> str:
        """Return a judged number in few characters, percentages as such."""
        return figure(value, self.unit, number)

    def finding(
        self,
        facts: Mapping[str, object],
        evidence: Iterable[str | None] = (),
        case: str = "",
        words: Mapping[str, Any] | None = None,
        *,
        since: int | None = None,
        step: int | None = None,
        **others: Any,
    ) -> Finding:
        """Return a finding in the words of the rule, an entry of `words.toml`.

        Args:
            facts: What its words name, besides `since` and `key`.
            evidence: Sentences that follow those of its words; empty ones are left out.
            case: Which of its cases it is.
            words: Others than the rule's own.
            since: First step of the failure.
            step: The newest step that was judged, `since` if it is the same.
            **others: More fields of a `Finding`; None for what the guide says.
        """
        own = WORDS.get(self.name, {}) if words is None else words
        words = {**own, **own.get(case, {})}
        known = {"since": since, "key": others.get("key"), **facts}
        parts = (words.get("cause", ""), words["message"], *words.get("evidence", ()))
        cause, message, *said = (filled(one, known, self.unit) for one in parts)
        fields = {
            "severity": self.severity,
            "advice": words.get("advice", self.advice or None),
            **{name: one for name, one in others.items() if one is not None},
        }
        return Finding(
            self.id,
            message=message,
            step=since if step is None else step,
            since_step=since,
            evidence=tuple(filter(None, [*said, *evidence])),
            source=self.source,
            cause=cause or filled(self.cause, known),
            **fields,
        )


class Band(NamedTuple):
    """The healthy range of an indicator."""

    indicator: str
    dialects: tuple[str, ...]
    low: float | None
    high: float | None
    of: str = ""
    """A limit that low and high are multiples of."""
    source: str = ""


@dataclass(frozen=True)
class Guide:
    """The rules in force."""

    rules: tuple[Rule, ...]
    bands: tuple[Band, ...]
    silenced: frozenset[str]
    """Ids that the user has switched off (`silence`)."""
    response_limit: float | None
    """Longest response in tokens, for logs that do not state it."""

    def rule(self, id: str) -> Rule | None:
        """Return the rule of that id (its first variant), None where there is none."""
        return next((rule for rule in self.rules if rule.id == id), None)

    def band(
        self, indicator_id: str, dialect: str, response_limit: float | None = None
    ) -> tuple[float | None, float | None]:
        """Return the healthy band of an indicator, for charts.

        Args:
            indicator_id: Public id, e.g. `policy_kl`.
            dialect: Whose names the log uses.
            response_limit: The run's limit of response length; without it the user's setting, else
                the guide's 512.

        Returns:
            Lower and upper limit, each None where open, as both are where the guide knows no band.
        """
        limit = response_limit or self.response_limit or ASSUMED_RESPONSE_LIMIT
        for band in self.bands:
            if band.indicator == indicator_id and dialect in band.dialects:
                unit = limit if band.of else 1.0
                low, high = (end and end * unit for end in (band.low, band.high))
                return low, high
        return None, None


ASSUMED_RESPONSE_LIMIT = 512.0
"""The tutorials' max_new_tokens, for runs whose own is not known."""

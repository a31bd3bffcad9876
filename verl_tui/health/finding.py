"""Results of judging: findings, and rules that were not judged with the reason."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from math import isfinite
from string import Formatter
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_tui.failures import in_place
from verl_tui.text import one_line
from verl_tui.toml_tables import toml_table
from verl_tui.words import figure
from verl_tui.words import number as precise

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from verl_tui.runs.run import Run


WORDS = toml_table(__file__, "words.toml")
"""What conditions say, by their names, and diagnoses, by the unique names of their rules."""


class Severity(IntEnum):
    """Severity of a finding; greater is worse."""

    INFO = 0
    WARNING = 1
    CRITICAL = 2

    @property
    def word(self) -> str:
        """`info`, `warning` or `critical`, as in the machine output."""
        return self.name.lower()


_STATED = """
id severity step since_step message evidence advice source consequence_of"""
"""Fields of a finding in the machine output."""
SEVERITIES = {severity.word: severity for severity in Severity}
"""By their words."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule's present finding about a run."""

    id: str
    """Public name of the rule, e.g. `kl-high`."""
    severity: Severity
    message: str
    """One sentence that says in numbers what is wrong."""
    step: int | None = None
    """Step of the newest value that was judged."""
    since_step: int | None = None
    """First step of the breach."""
    evidence: tuple[str, ...] = ()
    """Numbers with their steps that show it, one sentence each."""
    advice: str | None = None
    """Advice on what to check or change."""
    source: str = ""
    """Source of the threshold."""
    key: str | None = None
    """The log's own key of the metric that was judged, so that a chart can mark it."""
    consequence_of: str | None = None
    """Rule of the finding that this one follows from, None if it is a cause itself."""
    certain: bool = True
    """Whether it goes into the history, where its diagnosis only sees the present, and is enough to
    explain what its rule explains `if_first`.
    """
    cause: str = ""
    """What it is, in the few words of a headline; empty where its id says it."""
    first_sign: int | None = None
    """Step at which another variant of its rule began before this one; None where none did."""

    @property
    def begun(self) -> int | None:
        """Step from which it may explain others, and before which all was well."""
        return self.since_step if self.first_sign is None else self.first_sign

    @property
    def headline(self) -> str:
        """What it is, in few words."""
        return one_line(self.cause or self.id.replace("-", " "), 120)

    def as_data(self) -> dict[str, Any]:
        """Return it as in the machine output."""
        found = {name: getattr(self, name) for name in _STATED.split()}
        return {**found, "severity": self.severity.word, "evidence": [*self.evidence]}


class NotJudged(NamedTuple):
    """A rule that does not apply to this run, cannot be judged yet, or failed."""

    id: str
    reason: str


KINDS_OF_REASONS = ("failed", "not applicable", "not checked yet")
"""Why rules give no verdict: an error of ours, nothing to judge, too few steps so far."""
_FAILED, _NEEDS = "failed: ", "needs "
"""Beginnings of the reasons of the first and the last."""


LACKS = "the log has"
"""Beginning of the reason of a rule for which the log lacks a metric."""
TOO_LARGE = "its values are too large to be reckoned with"
"""Reason of a rule whose squares and sums overflow, from about 1e150 on."""


def failure(error: Exception) -> str:
    """Return the reason of a rule that raised an error."""
    return _FAILED + in_place(error)


def failed(reason: str) -> bool:
    """Return whether a rule was not judged for an error of ours."""
    return f"; {_FAILED}" in f"; {reason}"


def kind_of_reason(reason: str) -> str:
    """Return which of `KINDS_OF_REASONS` a reason is."""
    broken, unfit, early = KINDS_OF_REASONS
    if failed(reason):
        return broken
    return early if f"; {_NEEDS}" in f"; {reason}" else unfit


def unjudged_rules(reasons: Sequence[str]) -> tuple[str, ...]:
    """Count the rules that gave no verdict, from their reasons, as part of a sentence: `1 rule
    failed`, `17 not applicable` to this run, `4 not checked yet` for want of steps; kinds without
    any are left out.
    """
    counts = Counter(map(kind_of_reason, reasons))
    parts = [f"{counts[kind]} {kind}" for kind in KINDS_OF_REASONS if counts[kind]]
    word = "rule" if parts[0].startswith("1 ") else "rules"
    return parts[0].replace(" ", f" {word} ", 1), *parts[1:]


class Episode(NamedTuple):
    """A finding from the step where it was raised to the one where it was cleared; the history is a
    list of these.
    """

    id: str
    """Public name of the rule."""
    severity: Severity
    since_step: int | None
    """First step of the breach."""
    raised_step: int | None
    """Step at which it became certain, later than the first."""
    cleared_step: int | None = None
    """Step at which it was over, None while it lasts."""
    message: str = ""
    """The message when it was raised."""
    key: str | None = None
    """The log's own key of the metric that was judged."""


class Verdict(NamedTuple):
    """The health of one run at one moment."""

    findings: tuple[Finding, ...] = ()
    """Worst first; of these, diagnoses before the symptoms that they explain, then the earliest."""
    not_judged: tuple[NotJudged, ...] = ()
    history: tuple[Episode, ...] = ()
    """All findings so far, raised and cleared, in the order in which they were raised."""

    @property
    def primary(self) -> tuple[Finding, ...]:
        """The findings that stand for themselves: one cause, one finding."""
        return tuple(
            finding for finding in self.findings if finding.consequence_of is None
        )

    def consequences(self, cause: Finding) -> tuple[Finding, ...]:
        """Return the findings that only follow from another one."""
        # If a rule has several findings, the first one carries them.
        first = next((one for one in self.primary if one.id == cause.id), None)
        if first != cause:
            return ()
        return tuple(one for one in self.findings if one.consequence_of == cause.id)

    @property
    def severity(self) -> Severity | None:
        """The worst severity, None where nothing was found."""
        return max((finding.severity for finding in self.findings), default=None)


def weighty(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings that count: warnings and worse."""
    return [finding for finding in findings if finding.severity > Severity.INFO]


class Moment(NamedTuple):
    """What is known of runs beside themselves, at one moment."""

    now: float
    """Seconds since the epoch."""
    verdicts: Mapping[str, Verdict]
    """The health of runs, by name."""


number = partial(precise, digits=3)
"""Writes a number in few characters: `0.214`, `400`, `12,345`, `1.2e-05`."""


class _Filled(Formatter):
    """Fills words in: numbers with a fraction in few characters, where the words do not say how."""

    def __init__(self, unit: str) -> None:
        self._unit = unit

    def format_field(self, value: object, spec: str) -> str:
        """Return one of them."""
        if isinstance(value, float) and isfinite(value) and not spec:
            return figure(value, self._unit, number)
        return format(value, spec)


def filled(words: str, facts: Mapping[str, object], unit: str = "") -> str:
    """Return words with facts in their blanks, those with a fraction in a unit."""
    return _Filled(unit).vformat(words, (), facts)


_QUANTITIES: Sequence[Mapping[str, Any]] = WORDS["quantities"]


class Coverage(NamedTuple):
    """Which of these quantities were not judged."""

    unknown: tuple[str, ...]
    """Not in the log, or under no name that is known."""
    early: tuple[str, ...]
    """Logged, but not judged: there are too few points, or no rule applies."""

    @property
    def complete(self) -> bool:
        """True if all were judged."""
        return not self.unknown and not self.early

    @property
    def most(self) -> bool:
        """True if the reward and at least one of the others were judged."""
        gaps = (*self.unknown, *self.early)
        return "reward" not in gaps and len(gaps) <= len(_QUANTITIES) - 2

    @property
    def words(self) -> str:
        """What is missing, to follow a sentence; empty where nothing is."""
        parts = (("not logged", self.unknown), ("not checked", self.early))
        return "".join(f"; {how}: {', '.join(what)}" for how, what in parts if what)


def coverage_of(run: Run, verdict: Verdict) -> Coverage:
    """Return what of a run was not judged; of a training that generates nothing only what it has,
    and its loss, which no rule judges.
    """
    indicators, skipped = run.indicators, {rule.id for rule in verdict.not_judged}
    unknown: list[str] = []
    early: list[str] = []
    if run.loss_alone and "response_length" not in indicators:
        early.append("loss")
    for one in _QUANTITIES:
        if indicators.keys().isdisjoint(one["indicators"]):
            unknown += [one["name"]] * ("loss" not in early)
        elif skipped >= {*one["rules"]}:
            early.append(one["name"])
    return Coverage(tuple(unknown), tuple(early))

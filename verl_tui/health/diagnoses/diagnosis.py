"""How a diagnosis is declared, and what it returns: figures, which `words.toml` has words for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from verl_tui.health.finding import number
from verl_tui.toml_tables import toml_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from verl_tui.health.conditions.condition import Breach
    from verl_tui.health.conditions.windows import Blocks, Flags
    from verl_tui.health.finding import Severity
    from verl_tui.health.guide import Rule
    from verl_tui.health.rule_context import RuleContext

    Look: TypeAlias = Callable[
        [RuleContext, Rule], "Told | FindingHistory | InBlocks | str | None"
    ]

WORDS = toml_table(__file__, "words.toml")
"""What diagnoses say, by the unique name of their rule."""


class Told(NamedTuple):
    """A finding in figures."""

    facts: Mapping[str, object]
    """What its words name, besides the key and the first step of the failure."""
    evidence: Iterable[str | None] = ()
    """Sentences that follow those of its words; empty ones are left out."""
    case: str = ""
    """Which of its cases it is."""
    since: int | None = None
    """First step of the failure."""
    step: int | None = None
    """The newest step that was judged, `since` if it is the same."""
    key: str | None = None
    """The metric that shows it best."""
    severity: Severity | None = None
    """Another one than the guide's."""
    advice: str | None = None
    """Other advice than that of its words."""
    certain: bool = True
    """Whether it goes into the history."""
    message: str = ""
    """In place of that of its words."""
    leads: bool = True
    """Whether it is enough to explain what its rule explains `if_first`."""


class FindingHistory(NamedTuple):
    """What a diagnosis finds in whole columns, now and before."""

    now: Told | str | None
    breaches: Sequence[Breach]
    """All so far, oldest first."""
    remark: Callable[[RuleContext], tuple[Severity, str]] | None = None
    """Severity of a breach and words to follow its message, by the context when it was raised."""
    sentences: bool = False
    """Whether the words of breaches are whole sentences, and do not follow the rule's title."""
    key: str | None = None
    """The log's own key of the metric that was judged."""


class Shown(NamedTuple):
    """What blocks show of a failure. Of what is found at a block nothing depends on later ones."""

    begins: Flags
    """At which blocks it may begin."""
    lasts: Flags | Callable[[int], Flags]
    """At which it shows, perhaps depending on where it began."""
    since: Callable[[int], int]
    """Returns the first step of the failure that begins at a block."""
    told: Callable[[int, int], Told]
    """Returns it in figures as it is at a block, by its place and the first step of the failure."""
    reason: str | None = None
    """Why it does not judge now, where it finds nothing."""


class InBlocks(NamedTuple):
    """A diagnosis that compares metrics block by block."""

    keys: tuple[str | None, ...]
    """The metrics: the log's own keys; the first one sets the pace, others may be None."""
    find: Callable[[Blocks, InBlocks], Shown]
    of: Any = None
    """Anything else that it depends on, hashable."""
    size: int = 10
    """Points a block: enough to tell a level from noise, few enough to find failures soon."""
    needs: int = 4
    """Fewest blocks to judge."""
    lasts: bool = True
    """Whether other metrics and settings alone make it another one."""
    patience: int = 5
    """Blocks without the signs after which it is over: it must not come and go with noise."""


class Diagnosis(NamedTuple):
    """A failure that is seen in several signals of one run."""

    look: Look
    """Returns the finding now, why it does not judge, or None if nothing is found; or its history;
    or what it looks at block by block.
    """
    alive: bool
    """True if it depends on the clock, as a hang does, and not only on the log."""
    requires: Sequence[str]
    """Indicators without which it does not judge."""


DIAGNOSES: dict[str, Diagnosis] = {}
"""Unique name of its rule -> diagnosis, which reads its figures from its entry in `guide.toml`."""


def diagnosis(name: str, *requires: str, alive: bool = False) -> Callable[[Look], Look]:
    """Declare a function as the diagnosis of a rule."""

    def declared(look: Look) -> Look:
        DIAGNOSES[name] = Diagnosis(look, alive, requires)
        return look

    return declared


def words_of(name: str, case: str = "") -> Mapping[str, Any]:
    """Return what a diagnosis says in one of its cases."""
    own: Mapping[str, Any] = WORDS.get(name, {})
    return {**own, **own.get(case, {})}


def went(key: str | None, begun: float, now: float, first: int, last: int) -> str:
    """Return as evidence how a metric went between two steps."""
    return f"{key}: {number(begun)} at step {first}, {number(now)} at step {last}"

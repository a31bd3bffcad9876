"""How a diagnosis is declared, and how it says in words what it has found in figures."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from verl_tui.health.finding import WORDS, Finding, filled, number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from verl_tui.health.blocks import InBlocks
    from verl_tui.health.conditions.condition import Found
    from verl_tui.health.guide import Rule
    from verl_tui.health.rule_context import RuleContext

    Look: TypeAlias = Callable[
        [RuleContext, Rule], "Finding | Found | InBlocks | str | None"
    ]


class Diagnosis(NamedTuple):
    """A failure that is seen in several signals of one run."""

    look: Look
    """Returns the finding now, why it does not judge, or None if nothing is found; or these with
    its history; or what it looks at block by block.
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


def told(
    rule: Rule,
    facts: Mapping[str, object],
    evidence: Iterable[str | None] = (),
    case: str = "",
    **of: Any,
) -> Finding:
    """Return a finding in the words of its rule.

    Args:
        rule: The rule.
        facts: What its words name, besides `since` and `key`.
        evidence: Sentences that follow those of its words; empty ones are left out.
        case: Which of its cases it is.
        **of: What else `Rule.finding` takes.
    """
    own: Mapping[str, Any] = WORDS.get(rule.name, {})
    words = {**own, **own.get(case, {})}
    known = {"since": of.get("since"), "key": of.get("key"), **facts}
    parts = (words.get("cause", ""), words["message"], *words.get("evidence", ()))
    cause, message, *said = (filled(one, known) for one in parts)
    if of.get("advice") is None:
        of["advice"] = words.get("advice")
    found = rule.finding(message, [*said, *evidence], **of)
    return replace(found, cause=cause or found.cause)


def went(key: str, begun: float, now: float, first: int, last: int) -> str:
    """Return as evidence how a metric went between two steps."""
    return f"{key}: {number(begun)} at step {first}, {number(now)} at step {last}"

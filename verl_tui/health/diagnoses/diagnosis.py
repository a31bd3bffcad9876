"""How a diagnosis is declared."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from verl_tui.health.blocks import InBlocks
    from verl_tui.health.conditions.condition import Found
    from verl_tui.health.finding import Finding
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

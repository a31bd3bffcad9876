"""What of a training was judged: nothing is called healthy whose reward, KL, entropy or response
length nobody has judged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection

    from verl_tui.health.finding import Verdict
    from verl_tui.runs.run import Run

_QUANTITIES = (
    ("reward", ("reward",), ("reward-slide", "reward-cliff")),
    (
        "KL",
        ("policy_kl", "reference_kl"),
        ("kl-high", "ref-kl-high", "ref-kl-above-band"),
    ),
    ("entropy", ("entropy",), ("entropy-collapse", "entropy-explosion")),
    (
        "response length",
        ("response_length",),
        ("length-collapse", "length-explosion", "response-short"),
    ),
)
"""What a training is judged by: its indicators, and the rules that look at its whole course."""


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
    def words(self) -> str:
        """What is missing, to follow a sentence; empty where nothing is."""
        parts = (("not logged", self.unknown), ("not judged", self.early))
        return "".join(f"; {how}: {', '.join(what)}" for how, what in parts if what)


def coverage(indicators: Collection[str], not_judged: Collection[str]) -> Coverage:
    """Return what was not judged.

    Args:
        indicators: Ids of the indicators that the log has.
        not_judged: Ids of the rules that gave no verdict.
    """
    unknown = []
    early = []
    for name, ids, rules in _QUANTITIES:
        if not any(id in indicators for id in ids):
            unknown.append(name)
        elif all(rule in not_judged for rule in rules):
            early.append(name)
    return Coverage(tuple(unknown), tuple(early))


def coverage_of(run: Run, verdict: Verdict) -> Coverage:
    """Return what of a run was not judged."""
    return coverage(run.indicators, {rule.id for rule in verdict.not_judged})

"""What all conditions share: small machines that are fed a metric's points in order and know what holds now."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@dataclass(frozen=True, slots=True)
class Words:
    """How a rule speaks about what it judges."""

    title: str
    """The metric in a few words, e.g. `policy KL`."""
    span: Callable[[int], str]
    """Says a number of steps, with minutes where the pace is known."""
    note: str = ""
    """What the threshold is relative to, e.g. `128 % of the limit 512, assumed`."""
    says: str = ""
    """A sentence's beginning that replaces `<title> has stayed <where>`."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a condition says while it is breached."""

    message: str
    since: int
    """Step at which the breach began."""
    evidence: tuple[str, ...] = ()


class Condition(ABC):
    """A streaming check of one stream of finite numbers.

    Points are fed in ascending step, each once; feeding them one by one or all together gives the same state.
    """

    needs = 1
    """Points below which nothing is said."""

    def __init__(self) -> None:
        self.seen = 0
        """Points fed so far."""

    @abstractmethod
    def feed(self, steps: Sequence[int], values: Sequence[float]) -> None:
        """Take in points."""

    @abstractmethod
    def report(self, words: Words) -> Report | None:
        """Return what is breached now, None where nothing is."""

    def clone(self) -> Condition:
        """Return an independent copy, for a look at a point that may still change."""
        twin = copy(self)
        twin._detach()
        return twin

    @abstractmethod
    def _detach(self) -> None:
        """Replace the containers shared with the original by copies."""


def number(value: float) -> str:
    """Return a number in few characters: `0.214`, `400`, `12,345`, `1.2e-05`."""
    if abs(value) >= 1e6:
        return f"{value:.3g}"
    if abs(value) >= 1000 or (value == int(value) and abs(value) >= 100):
        return f"{value:,.0f}"
    return f"{value:.3g}"

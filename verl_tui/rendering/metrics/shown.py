"""Input of the grid and the table of all metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from verl_tui.rendering.charts.plan import ChartLook
    from verl_tui.rendering.metrics.groups import MetricGroup
    from verl_tui.rendering.metrics.listing import MetricOrder
    from verl_tui.rendering.session.preferences import UserState
    from verl_tui.rendering.session.snapshot import View


@dataclass(frozen=True, slots=True)
class ListedMetrics:
    """The listed metrics with everything that draws them."""

    view: View
    groups: tuple[MetricGroup, ...]
    order: MetricOrder
    look: ChartLook
    user: UserState
    otherwise: str = ""
    """Sentence shown if no metric is listed."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The listed keys in order."""
        return tuple(key for group in self.groups for key in group.keys)


BUDGET = 0.03
"""Seconds of drawing before pending keys are handled and the rest is drawn."""

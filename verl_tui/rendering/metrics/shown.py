"""What the grid and the table of all metrics are given to draw."""

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
    """The metrics that are listed, and how."""

    view: View
    groups: tuple[MetricGroup, ...]
    order: MetricOrder
    look: ChartLook
    user: UserState
    otherwise: str = ""
    """What is said where no metric is listed."""

    @property
    def keys(self) -> tuple[str, ...]:
        """All that is listed, in order."""
        return tuple(key for group in self.groups for key in group.keys)


BUDGET = 0.03
"""Seconds of drawing at a stretch: whatever takes longer is drawn a moment later, and keys are
heard in between.
"""

"""Charts that are drawn over the KL instead of over steps, and their data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.metrics import describe
from verl_tui.rendering.charts.x_axes import kl_key
from verl_tui.text import one_line

if TYPE_CHECKING:
    from verl_tui.rendering.charts.chart_data import ChartData
    from verl_tui.rendering.charts.plan import ChartLook, PlannedChart
    from verl_tui.runs.run import Run


def kl_beside(found: PlannedChart, run: Run, look: ChartLook) -> str | None:
    """Return the KL that a chart is drawn over as a path, None where it is not: only rewards and
    scores are.
    """
    is_score = describe(found.key).group in ("reward", "validation")
    if look.axis != "kl" or not (
        is_score or found.indicator in ("reward", "validation")
    ):
        return None
    return kl_key(run)


def over_kl(data: ChartData, run: Run, key: str | None) -> ChartData:
    """Return the chart of a reward as its path over a KL, the chart itself where that is None."""
    over = run.series(key or "")
    main = data.main
    if key is None or over is None or main is None:
        return data
    return data._replace(
        label=f"{data.title} over KL",
        lines=(main._replace(over=over, kind="line"),),
        envelope=None,
        spread=(),
        beside=(),
        notes=(f"KL: {one_line(key)}",),
    )

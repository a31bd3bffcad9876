"""The keys of charts and what they do, the same on the dashboard, on the screen of all metrics and
over the full screen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.rendering.charts.axes import ZoomSpan, holding, panned, zoomed
from verl_tui.rendering.charts.downsample import WEIGHTS
from verl_tui.rendering.charts.x_axes import on_axis
from verl_tui.tui.keys import actions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from verl_tui.rendering.charts.plan import ChartLook
    from verl_tui.runs.run import Run

SMOOTHINGS = (0.0, None, *WEIGHTS)
"""Weights of the past that are offered, as in TensorBoard's slider; None is chosen by the noise."""
_LEAST_POINTS = 8
"""Nobody zooms in on fewer."""
KEYS = actions("""
    x              look('axis')      look.axis      X axis: step, time, relative       LEARN
    y              look('log')       look.log       Log scale                          LEARN
    Y              look('outliers')  look.outliers  Y axis with or without outliers    LEARN
    s              look('smoother')  look.smoother  Smoother                           LEARN
    S              look('rougher')   look.rougher   Less smooth, then raw values       LEARN
    +,=            look('in')        look.in        Zoom in on the cursor, or the end  LEARN
    -,_            look('out')       look.out       Zoom out                           LEARN
    H,shift+left   look('earlier')   look.earlier   Earlier steps, once zoomed in      LEARN
    L,shift+right  look('later')     look.later     Later steps, once zoomed in        LEARN
""")
TABLE = actions("W  write_table  table  Write the points in sight to a CSV file  TAKE")


def look_after(
    look: ChartLook, what: str, run: Run | None, cursor: int | None = None
) -> ChartLook:
    """Return the look after a key.

    Args:
        look: The look before.
        what: One of those in `KEYS`.
        run: The run that is shown.
        cursor: Step that is read.
    """
    match what:
        case "axis":
            return look.next_axis()
        case "log":
            return look._replace(log_y=not look.log_y)
        case "outliers":
            return look._replace(usual_y=not look.usual_y)
        case "smoother" | "rougher":
            at = SMOOTHINGS.index(look.smoothing) + (1 if what == "smoother" else -1)
            return look._replace(
                smoothing=SMOOTHINGS[max(0, min(at, len(SMOOTHINGS) - 1))]
            )
    whole = run.reach if run is not None else None
    if run is None or whole is None:
        return look
    return look._replace(span=_span_after(look.span, what, run, whole, cursor))


def _span_after(
    span: ZoomSpan | None,
    what: str,
    run: Run,
    whole: tuple[int, int],
    cursor: int | None,
) -> ZoomSpan | None:
    """Return the steps that are shown after a key that zooms or goes along the x axis."""
    if what not in ("in", "out"):
        return panned(span, whole, -1 if what == "earlier" else 1)
    # a run may log only every hundredth step
    tables = (table for one in run.sources.values() for table in one.tables.values())
    points = max(map(len, tables))
    least = max(1, _LEAST_POINTS * (whole[1] - whole[0]) // max(1, points))
    factor = 0.5 if what == "in" else 2.0
    return zoomed(span, whole, factor, at=cursor, least=least)


def why_unchanged(
    look: ChartLook, what: str, run: Run | None, keys: Mapping[str, str]
) -> str:
    """Return why a key changes nothing that can be seen, empty where it does.

    Args:
        look: How charts were drawn before.
        what: What the key changes.
        run: The shown run.
        keys: The keys that sentences name, as the user has them.
    """
    whole = run.reach if run is not None else None
    if what in ("earlier", "later"):
        if look.span is None:
            return f"all steps are shown already: {keys['look.in']} zooms in"
        if whole is None or look_after(look, what, run) != look:
            return ""
        last = what == "later"
        return f"step {whole[last]} is the {'newest' if last else 'first'}"
    if run is not None and what == "axis":
        problem = on_axis(run, look.next_axis().axis).problem
        return f"{problem}: x stays at steps" if problem is not None else ""
    return ""


def with_step_in_sight(
    look: ChartLook, run: Run | None, cursor: int | None
) -> ChartLook:
    """Return the look that has a step in sight."""
    whole = run.reach if run is not None else None
    if look.span is None or whole is None or cursor is None:
        return look
    return look._replace(span=holding(look.span, whole, cursor))


def step_at(run: Run | None, key: str, look: ChartLook, position: int) -> int | None:
    """Return the step of a position on the x axis, where a metric has its points; None where it is
    not known.
    """
    series = run.series(key) if run is not None else None
    if run is not None and series is not None:
        return on_axis(run, look.axis).step(series, position)
    return None

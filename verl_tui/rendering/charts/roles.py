"""The roles of the texts of a chart, each with a colour in every theme."""

from __future__ import annotations

from verl_tui.rendering.charts.chart_data import ALARM_ROLES
from verl_tui.rendering.text.family_colours import FAMILIES
from verl_tui.rendering.text.hues import BEHIND
from verl_tui.rendering.text.run_colours import RUNS

HUES = (*FAMILIES, *RUNS)
"""Roles that have a fainter one for values behind averages."""
ROLES = (
    *("title", "focused", "value", "trend", "key", "axis", "rule", "cursor"),
    *(
        "line",
        "line-2",
        "line-3",
        "line-4",
        *RUNS,
        *FAMILIES,
        *(hue + BEHIND for hue in HUES),
        "right",
        "raw",
        "envelope",
        "quartiles",
        "band",
        "healthy",
        "target",
    ),
    *(
        "odd",
        *ALARM_ROLES,
        *(role + BEHIND for role in ALARM_ROLES),
        "restart",
        "checkpoint",
    ),
)
"""What each style is for."""

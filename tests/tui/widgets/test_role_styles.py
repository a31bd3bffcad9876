"""Styles of roles: worked out when they are asked for, forgotten with the theme, known by name
only.
"""

from __future__ import annotations

from verl_tui.rendering.charts.roles import ROLES
from verl_tui.tui.widgets.plot import Plot


def test_every_role_of_a_chart_has_a_look() -> None:
    """One without would be drawn as plain text."""
    assert {*ROLES} == {*Plot.LOOKS}

"""What the help says of the signs in charts and in the run list: those that are drawn, with and
without Unicode.
"""

from __future__ import annotations

from verl_tui.rendering.charts.symbols import SIGNS, Symbols

FRAME = {
    "ellipsis",
    "rule",
    "grid",
    "tick",
    "side",
    "side_tick",
    "side_right",
    "corner",
}
"""Signs that need no words."""


def test_every_sign_of_a_chart_is_explained() -> None:
    assert {name for names in SIGNS for name in names.split()} | FRAME == set(
        Symbols._fields
    )

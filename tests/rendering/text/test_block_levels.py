"""Percentages as blocks: the scale is fixed, what is unknown is empty, idle is a line on the
floor.
"""

from __future__ import annotations

import math

from verl_tui.rendering.text.block_levels import level_glyph, strip, tall


def test_one_row() -> None:
    assert strip([0, 12.5, 50, 100], 10) == "▁▁▄█"
    assert strip([0, 50, 100], 2) == "▄█"
    assert strip([0, math.nan, 100], 3, ascii_only=True) == "_ #"
    assert strip([1, 2], 0) == strip([], 5) == ""


def test_several_rows() -> None:
    assert tall([0, 50, 75, 100, math.nan, math.inf], 6, 2) == ["  ▄█  ", "▁███  "]
    assert tall([0, 100], 2, 3, ascii_only=True) == [" #", " #", "_#"]


def test_beyond_the_scale() -> None:
    assert level_glyph(-5) == "▁"
    assert level_glyph(1e300) == "█"

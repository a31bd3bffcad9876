"""Colours of runs that colour-blind people can distinguish, too.

They began as those of Okabe and Ito, "Color Universal Design", 2008
(https://jfly.uni-koeln.de/color/), but for orange, vermillion and yellow, which here mean a warning
and worse, and were moved until the tests' measures held: each has a contrast of 3 or more to the
ground (WCAG 2.2, 1.4.11: what is needed to understand a graphic), and is apart from the others and
from critical, warning and info for people who see red and green alike, too.
"""

from __future__ import annotations

from verl_tui.rendering.text.hues import Hue

DARK = ("#A8E4F0", "#8490FC", "#3CC090", "#D878B4", "#B4C018", "#F0FCF0")
"""Sky blue, periwinkle, bluish green, pink, lime, white: for dark grounds."""
LIGHT = ("#0C6CC0", "#4830A8", "#006C40", "#843078", "#6C7830", "#242424")
"""Blue, indigo, bluish green, plum, olive, black: for light grounds."""
ANSI = (
    "ansi_cyan",
    "ansi_bright_blue",
    "ansi_green",
    "ansi_bright_magenta",
    "ansi_magenta",
    "ansi_bright_white",
)
"""Colours of the terminal's own sixteen, without its reds and yellows and the bright cyan of the
chosen row.
"""
RUNS = tuple(f"run-{place}" for place in range(1, len(DARK) + 1))
"""Roles of the runs in their places."""
HUES = dict(zip(RUNS, map(Hue, DARK, LIGHT, ANSI), strict=True))

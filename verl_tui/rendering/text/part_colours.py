"""Colours of the parts of a step that stand side by side in one bar.

The hues are those of Paul Tol's scheme "light" for colour-blind people ("Colour Schemes", SRON
technical note 3.2, 2021, https://personal.sron.nl/~pault/) and the reddish purple of Okabe and Ito,
darker on light grounds. None is red or amber: these are findings.
"""

from __future__ import annotations

from verl_tui.rendering.text.hues import Hue

DARK = ("#77AADD", "#44BB99", "#BBCC33", "#D693B8", "#EEDD88", "#DDDDDD")
"""Blue, mint, pear, reddish purple, light yellow, grey: for dark grounds."""
LIGHT = ("#225588", "#006650", "#4F5A00", "#8B3A78", "#7A6A00", "#3A3A3A")
ANSI = (
    "ansi_bright_cyan",
    "ansi_bright_green",
    "ansi_bright_yellow",
    "ansi_bright_magenta",
    "ansi_bright_blue",
    "ansi_bright_white",
)
"""Colours of the terminal's own sixteen, used together with a sign for each part."""
PARTS = tuple(f"part-{number}" for number in range(len(DARK)))
"""Roles of the parts, the longest first."""
HUES = dict(zip(PARTS, map(Hue, DARK, LIGHT, ANSI), strict=True))

"""Colours of runs that colour-blind people can distinguish, too.

The hues are those of Okabe and Ito, "Color Universal Design", 2008
(https://jfly.uni-koeln.de/color/), which Wong recommends for figures ("Points of view: Color
blindness", Nature Methods 8, 441, 2011). On light grounds they are darker and black stands for
yellow, on dark grounds three of them are a little lighter, so that each has a contrast of 3 or more
to the ground (WCAG 2.2, 1.4.11: what is needed to understand a graphic).
"""

from __future__ import annotations

DARK = ("#72C1ED", "#E69F00", "#13A57D", "#D693B8", "#DB7727", "#F1E54A")
"""Sky blue, orange, bluish green, reddish purple, vermillion, yellow: for dark grounds."""
LIGHT = ("#004F7C", "#9C6C00", "#008A64", "#513043", "#723200", "#000000")
"""Blue, orange, bluish green, reddish purple, vermillion, black: for light grounds."""
RUNS = tuple(f"run-{place}" for place in range(1, len(DARK) + 1))
"""Roles of the runs in their places."""


def rules(widget: str, prefix: str) -> str:
    """Return the stylesheet that colours the component classes of the roles in a widget."""
    return "\n".join(
        f"{widget}:{kind} > .{prefix}--{role} {{ color: {colour}; }}"
        for kind, colours in (("dark", DARK), ("light", LIGHT))
        for role, colour in zip(RUNS, colours, strict=True)
    )

"""How well colours can be told apart, as WCAG 2.2 reckons."""

from __future__ import annotations

from textual.color import Color


def linear(colour: Color) -> list[float]:
    """Return red, green and blue as shares of light."""
    return [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in colour.normalized
    ]


def contrast(one: Color | str, other: Color | str) -> float:
    """Return the contrast ratio of two opaque colours."""
    dark, bright = sorted(
        0.2126 * red + 0.7152 * green + 0.0722 * blue
        for red, green, blue in (linear(Color.parse(each)) for each in (one, other))
    )
    return (bright + 0.05) / (dark + 0.05)

"""Colours by role, and the stylesheet that paints the roles in a widget."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FAINT = "-raw"
"""Ending of the role of a metric's values behind their average."""


class Hue(NamedTuple):
    """A colour for dark grounds, for light ones, and of the terminal's own sixteen."""

    dark: str
    light: str
    ansi: str


def rules(
    widget: str, prefix: str, hues: Mapping[str, Hue], *, faint: bool = False
) -> str:
    """Return the stylesheet that colours the component classes of roles in a widget.

    Args:
        widget: The widget's class.
        prefix: What its component classes begin with.
        hues: The colours by role.
        faint: Whether there are values behind averages, too.
    """
    return "\n".join(_rules(widget, prefix, hues, faint=faint))


def _rules(
    widget: str, prefix: str, hues: Mapping[str, Hue], *, faint: bool
) -> Iterator[str]:
    for ground, opacity in (("dark", " 50%"), ("light", " 50%"), ("ansi", "")):
        for role, hue in hues.items():
            colour = getattr(hue, ground)
            rule = f"{widget}:{ground} > .{prefix}--{role}"
            yield f"{rule} {{ color: {colour}; }}"
            if faint:
                yield f"{rule}{FAINT} {{ color: {colour}{opacity}; }}"

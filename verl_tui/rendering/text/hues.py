"""Colours that a theme does not have, for each kind of ground."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

BEHIND = "-raw"
"""Ending of the role of a metric's values behind their average."""


class Hue(NamedTuple):
    """A colour for dark grounds, for light ones, and of the terminal's own sixteen."""

    dark: str
    light: str
    ansi: str

    def on_ground(self, *, ansi: bool, dark: bool) -> str:
        """Return the colour for a ground."""
        if ansi:
            return self.ansi
        return self.dark if dark else self.light

    @property
    def faint(self) -> Hue:
        """The colour of values behind their average; the sixteen have no shades."""
        return Hue(f"{self.dark} 50%", f"{self.light} 50%", self.ansi)


def with_faint(hues: Mapping[str, Hue]) -> dict[str, Hue]:
    """Return colours by role, and those of the values behind their averages."""
    return {**hues, **{role + BEHIND: hue.faint for role, hue in hues.items()}}

"""Colours that a theme does not have, for each kind of ground."""

from __future__ import annotations

from typing import NamedTuple

from verl_tui.metrics import describe
from verl_tui.toml_tables import toml_table


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


_TABLE = toml_table(__file__, "hues.toml")
FAMILIES, HUES, _PARTS = (
    {role: Hue(**hue) for role, hue in _TABLE[kind].items()}
    for kind in ("families", "runs", "parts")
)
"""By role."""
RUNS, PARTS = tuple(HUES), tuple(_PARTS)
"""Roles of runs in their places, and of the parts of a step, the longest first."""
OF_ROLES = {**FAMILIES, **HUES, **_PARTS}
_FAMILY: dict[str, str] = {
    name: role for role, has in _TABLE["members"].items() for name in has.split()
}


def family_role(key: str, indicator: str | None) -> str:
    """Return the role that colours a metric: its family's, or that of all others."""
    if indicator in _FAMILY:
        return _FAMILY[indicator]
    if key.rpartition("/")[2].startswith("entropy"):
        return "entropy"
    return _FAMILY.get(describe(key).group, "other")

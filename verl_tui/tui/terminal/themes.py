"""The themes: those of ours, and Textual's with the colours in which every text can be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.theme import Theme

from verl_tui.toml_tables import toml_table

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from verl_tui.rendering.session.preferences import UserState

_TABLE = toml_table(__file__, "themes.toml")
OURS = tuple(
    Theme(name, **row["colours"]) for name, row in _TABLE.items() if "colours" in row
)
PLAIN = "sixteen-colours"
"""The theme for terminals of so many: others' colours would become those that happen to be nearest,
white mostly. Its ground is its own, as the terminal's may be light. Without colours it does as
well: what is chosen is reversed.
"""


def readable(
    variables: Mapping[str, str], theme: str, *, few: bool = False
) -> dict[str, str]:
    """Return a theme's variables with those in their place that make all of it readable.

    Args:
        variables: What Textual makes of the theme.
        theme: Its name.
        few: Whether the terminal shows 256 colours.
    """
    row = _TABLE.get(theme, {})
    return {**variables, **row.get("all", {}), **(row.get("in_256", {}) if few else {})}


def in_force(configured: str, state: UserState, available: Collection[str]) -> str:
    """Return the theme to begin with: the one chosen in the app last, until the configuration names
    another.

    Args:
        configured: The theme in the configuration now.
        state: What is remembered of the user.
        available: Names of all themes there are.
    """
    remembered = state.theme if state.theme_instead_of == configured else ""
    return remembered if remembered in available else configured

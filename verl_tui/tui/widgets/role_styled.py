"""How roles look, and widgets that draw in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.control import strip_control_codes
from rich.segment import Segment
from rich.style import Style as RichStyle
from textual.strip import Strip
from textual.style import Style as VisualStyle
from textual.widget import Widget

from verl_tui.patterns import pattern
from verl_tui.rendering.text.hues import OF_ROLES, Hue
from verl_tui.toml_tables import toml_table
from verl_tui.tui.terminal.net import ContainedWidget

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    Looks = Mapping[str, str | Hue]

_VARIABLE = pattern(r"\$([a-z0-9-]+)")
"""A colour of the theme."""


LOOKS_IN: Mapping[str, Mapping[str, str]] = {
    place: {role: look for look, roles in looks.items() for role in roles.split()}
    for place, looks in toml_table(__file__, "roles.toml").items()
}
"""How roles look in some widgets, by their names in the table."""
ROLES: Looks = {**LOOKS_IN["everywhere"], **OF_ROLES}
"""How each role looks on the ground of a widget."""


class RoleStyled(ContainedWidget, Widget):
    """A widget that draws in the colours of roles, such as `dim` or `critical`.

    A role's style is worked out when something is first drawn in it. Textual's component classes
    take a rule of the stylesheet each, and are all worked out whenever a widget is mounted; a chart
    has sixty roles and draws with eight of them.
    """

    LOOKS: ClassVar[Looks] = {}
    """How roles look that other widgets do not have."""

    _role_styles: dict[str, RichStyle] | None = None

    def role_style(self, role: str) -> RichStyle:
        """Return the style of a role, on the ground of another behind a `+`; of none, and of one
        that is not known, that of the widget itself.
        """
        if self._role_styles is None:
            self._role_styles = {"": self.rich_style}
        if role not in self._role_styles:
            name, _, area = role.partition("+")
            look = VisualStyle.parse(self._words(name))
            style = (self.visual_style + look).rich_style
            if area:
                style += RichStyle(bgcolor=self.role_style(area).bgcolor)
            self._role_styles[role] = style
        return self._role_styles[role]

    def _words(self, role: str) -> str:
        """Return how a role looks in the theme in force, in the colours that this has."""
        look = self.LOOKS.get(role) or ROLES.get(role, "")
        ansi = self.app.native_ansi_color
        if isinstance(look, Hue):
            return look.on_ground(ansi=ansi, dark=self.app.current_theme.dark)
        words = LOOKS_IN["in_sixteen"].get(role, look) if ansi else look
        # Textual's parser drops the share of a variable such as `auto 60%`
        variables = self.app.theme_variables
        return _VARIABLE.sub(lambda found: variables[found[1]], words)

    def inked(self, row: Iterable[tuple[str, str]]) -> Strip:
        """Return a row of pieces, each a text and its role, in their colours."""
        return Strip(
            [
                Segment(strip_control_codes(text), self.role_style(role))
                for text, role in row
                if text
            ]
        )

    def notify_style_update(self) -> None:
        """Forget the styles: the theme has changed."""
        self._role_styles = None
        super().notify_style_update()

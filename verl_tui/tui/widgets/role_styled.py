"""Widgets that draw in the colours of roles."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from textual.strip import Strip
from textual.style import Style as VisualStyle
from textual.widget import Widget

from verl_tui.patterns import pattern
from verl_tui.rendering.text.hues import Hue
from verl_tui.tui.terminal.net import ContainedWidget

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rich.style import Style

    Looks = Mapping[str, str | Hue]

_VARIABLE = pattern(r"\$([a-z0-9-]+)")
"""A colour of the theme."""


class RoleStyled(ContainedWidget, Widget):
    """A widget that draws in the colours of roles, such as `dim` or `critical`.

    A role's style is worked out when something is first drawn in it. Textual's component classes
    take a rule of the stylesheet each, and are all worked out whenever a widget is mounted; a chart
    has sixty roles and draws with eight of them.
    """

    LOOKS: ClassVar[Looks] = {}
    """How each role looks on the ground of the widget: a colour, or words as in Textual's markup,
    such as `bold $text-error` or `$primary 60% on $panel`.
    """
    ANSI_LOOKS: ClassVar[Mapping[str, str]] = {}
    """The same of roles that look otherwise in the terminal's own sixteen colours, which have no
    shades.
    """

    _role_styles: dict[str, Style] | None = None

    def role_style(self, role: str) -> Style:
        """Return the style of a role; of none that of the widget itself.

        Raises:
            KeyError: There is no such role.
        """
        if self._role_styles is None:
            self._role_styles = {"": self.rich_style}
        if role not in self._role_styles:
            look = VisualStyle.parse(self._words(role))
            self._role_styles[role] = (self.visual_style + look).rich_style
        return self._role_styles[role]

    def _words(self, role: str) -> str:
        """Return how a role looks in the theme in force, in the colours that this has."""
        look = self.LOOKS[role]
        ansi = self.app.native_ansi_color
        if isinstance(look, Hue):
            return look.on_ground(ansi=ansi, dark=self.app.current_theme.dark)
        words = self.ANSI_LOOKS.get(role, look) if ansi else look
        # Textual's parser drops the share of a variable such as `auto 60%`
        variables = self.app.theme_variables
        return _VARIABLE.sub(lambda found: variables[found[1]], words)

    @property
    def role_styles(self) -> dict[str, Style]:
        """The styles of all roles."""
        return {role: self.role_style(role) for role in self.LOOKS}

    def inked(self, row: Iterable[tuple[str, str]]) -> Strip:
        """Return a row of pieces, each a text and its role, in their colours; without a role the
        row's own.
        """
        segments = [
            Segment(text, self.role_style(role) if role else None)
            for text, role in row
            if text
        ]
        return Strip(segments)

    def notify_style_update(self) -> None:
        """Forget the styles: the theme has changed."""
        self._role_styles = None
        super().notify_style_update()

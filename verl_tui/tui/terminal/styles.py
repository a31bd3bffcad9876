"""Styles that are computed when something is first drawn with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakKeyDictionary

from rich.segment import Segment
from textual.dom import DOMNode
from textual.strip import Strip
from textual.widget import Widget

from verl_tui.tui.terminal.net import ContainedWidget

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from rich.style import Style
    from textual.css.stylesheet import Stylesheet

    _StyleKey = tuple[type[Widget], str, str, Style]
    """Class of the widget, role, theme, and the style of the widget itself."""

COMPUTED: WeakKeyDictionary[Stylesheet, dict[_StyleKey, Style]] = WeakKeyDictionary()
"""Styles of roles by stylesheet: each takes about 0.3 ms, and a chart draws with six."""


_CAN_ATTACH = hasattr(DOMNode, "_attach")
"""False where Textual sets parents in another way: then all component classes are declared."""


class RoleStyled(ContainedWidget, Widget):
    """A widget that draws in the colours of roles, which the stylesheet has component classes for.

    Textual works out all that `COMPONENT_CLASSES` names whenever a widget is mounted or styled
    anew. A chart has forty and draws with eight of them: opening a page of charts took twice as
    long.

    Among several bases of a widget it stands last: Textual takes the stylesheet's rules of the
    first.
    """

    PREFIX: ClassVar[str] = ""
    """Prefix of its component classes: role `ok` is coloured by `runs--ok`."""

    STYLED_ROLES: ClassVar[Collection[str]] = ()
    """Names of its roles."""

    _role_styles: dict[str, Style] | None = None

    def __init_subclass__(cls, **options: Any) -> None:
        if not _CAN_ATTACH:
            cls.COMPONENT_CLASSES = {
                f"{cls.PREFIX}--{role}" for role in cls.STYLED_ROLES
            }
        super().__init_subclass__(**options)

    def role_style(self, role: str) -> Style:
        """Return the style of a role; of none that of the widget itself.

        Raises:
            KeyError: There is no such role.
        """
        if self._role_styles is None:
            self._role_styles = {"": self.rich_style}
        if role not in self._role_styles:
            if role not in self.STYLED_ROLES:
                raise KeyError(role)
            self._role_styles[role] = self._compute(role, self._role_styles[""])
        return self._role_styles[role]

    def _compute(self, role: str, base: Style) -> Style:
        """Return the style of a role as the stylesheet has it: of one kind of widget the same,
        wherever one is.
        """
        app = self.app
        known = COMPUTED.setdefault(app.stylesheet, {})
        key = (type(self), role, app.theme, base)
        if key not in known:
            name = f"{self.PREFIX}--{role}"
            if _CAN_ATTACH:
                component = DOMNode(classes=name)
                component._attach(self)
                app.stylesheet.apply(component)
                known[key] = component.rich_style
            else:
                known[key] = self.get_component_rich_style(name)
        return known[key]

    @property
    def role_styles(self) -> dict[str, Style]:
        """The styles of all roles."""
        return {role: self.role_style(role) for role in self.STYLED_ROLES}

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

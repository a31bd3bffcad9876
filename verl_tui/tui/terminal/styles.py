"""Styles that are worked out when something is first drawn with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakKeyDictionary

from rich.segment import Segment
from textual.dom import DOMNode
from textual.strip import Strip
from textual.widget import Widget

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from rich.style import Style
    from textual.css.stylesheet import Stylesheet

    _Ink = tuple[type[Widget], str, str, Style]
    """A kind of widget, a role, the theme, and the style of the widget itself."""

_KNOWN: WeakKeyDictionary[Stylesheet, dict[_Ink, Style]] = WeakKeyDictionary()
"""The styles that have been worked out: each takes about 0.3 ms, and a chart draws with six."""


_CAN_ATTACH = hasattr(DOMNode, "_attach")
"""False where Textual gives nodes no parent in this way: all component classes are declared."""


class Inked(Widget):
    """A widget that colours what it draws by roles, for which the stylesheet has component classes.

    Textual works out all that `COMPONENT_CLASSES` names whenever a widget is mounted or styled
    anew. A chart has forty and draws with eight of them: opening a page of charts took twice as
    long.

    Among several bases of a widget it stands last: Textual takes the stylesheet's rules of the
    first.
    """

    PREFIX: ClassVar[str] = ""
    """What its component classes begin with: role `ok` is coloured by `runs--ok`."""

    INKS: ClassVar[Collection[str]] = ()
    """The roles there are."""

    _inks: dict[str, Style] | None = None

    def __init_subclass__(cls, **options: Any) -> None:
        if not _CAN_ATTACH:
            cls.COMPONENT_CLASSES = {f"{cls.PREFIX}--{role}" for role in cls.INKS}
        super().__init_subclass__(**options)

    def ink(self, role: str) -> Style:
        """Return the style of a role; of none that of the widget itself.

        Raises:
            KeyError: There is no such role.
        """
        if self._inks is None:
            self._inks = {"": self.rich_style}
        if role not in self._inks:
            if role not in self.INKS:
                raise KeyError(role)
            self._inks[role] = self._worked_out(role, self._inks[""])
        return self._inks[role]

    def _worked_out(self, role: str, base: Style) -> Style:
        """Return the style of a role as the stylesheet has it: of one kind of widget the same,
        wherever one is.
        """
        app = self.app
        known = _KNOWN.setdefault(app.stylesheet, {})
        ink = (type(self), role, app.theme, base)
        if ink not in known:
            name = f"{self.PREFIX}--{role}"
            if _CAN_ATTACH:
                component = DOMNode(classes=name)
                component._attach(self)
                app.stylesheet.apply(component)
                known[ink] = component.rich_style
            else:
                known[ink] = self.get_component_rich_style(name)
        return known[ink]

    @property
    def inks(self) -> dict[str, Style]:
        """The styles of all roles."""
        return {role: self.ink(role) for role in self.INKS}

    def inked(self, row: Iterable[tuple[str, str]]) -> Strip:
        """Return a row of pieces, each a text and its role, in their colours; without a role the
        row's own.
        """
        return Strip(
            [Segment(text, self.ink(role) if role else None) for text, role in row if text]
        )

    def notify_style_update(self) -> None:
        """Forget the styles: the theme has changed."""
        self._inks = None
        super().notify_style_update()

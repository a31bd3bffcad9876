"""Styles that are worked out when something is first drawn with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.dom import DOMNode

if TYPE_CHECKING:
    from rich.style import Style
    from textual.widget import Widget


def ink(widget: Widget, name: str) -> Style:
    """Return the style that the stylesheet gives a component class of a widget.

    Textual works out all that `COMPONENT_CLASSES` names whenever a widget is mounted or styled anew. A chart has forty
    and draws with eight of them: opening a page of charts took twice as long.
    """
    component = DOMNode(classes=name)
    component._attach(widget)
    widget.app.stylesheet.apply(component)
    return component.rich_style

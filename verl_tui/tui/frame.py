"""The frame that is on the screen, as plain text."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from textual.app import App


def screen_text(app: App[object]) -> str:
    """Return the rows of the screen without colours, trailing blanks cut."""
    width, height = app.size
    console = app.console
    options = console.options.update(width=width, height=height)
    rows = console.render_lines(app.screen._compositor.render_update(full=True), options, pad=False)  # noqa: SLF001
    return "\n".join("".join(segment.text for segment in row).rstrip() for row in rows) + "\n"

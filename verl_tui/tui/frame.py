"""The screen as plain text or as a picture."""

from __future__ import annotations

from html import unescape
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.terminal_theme import SVG_EXPORT_THEME
from textual.color import Color

from verl_tui.patterns import pattern
from verl_tui.tui.terminal.output import screen_rows

if TYPE_CHECKING:
    import re

    from textual.app import App
    from textual.pilot import Pilot

    from verl_tui.on_demand.samples import SampleBrowser

_COLOUR = pattern("#[0-9a-f]{6}")
_SIXTEEN = (
    *("#000000", "#e05561", "#4ec96f", "#d7a03c", "#5c8dff", "#c678dd", "#35b5c5"),
    *("#d9d9d9", "#808080", "#ff7b72", "#7ee787", "#f2cc60", "#79a8ff", "#e5a3ff"),
    *("#6fe3f5", "#ffffff"),
)
"""The colours of a terminal of sixteen in pictures, dark and bright: each can be read on black.
Those that Rich draws with cannot.
"""
_BRAILLE = pattern("[\u2801-\u28ff]")
_PATIENCE = 100
_TEXT = pattern(r'(<text [^<>]*?textLength=")([\d.]+)("[^<>]*>)([^<]*)(</text>)')


async def settled(pilot: Pilot[Any], browser: SampleBrowser) -> None:
    """Wait until everything in sight has been read and drawn, five seconds at most."""
    for _ in range(_PATIENCE):
        await pilot.pause()
        if browser.idle:
            break
        await pilot.pause(0.05)
    # The last message comes a moment after the last reading, and is drawn a moment after that.
    await pilot.pause(0.1)
    await pilot.pause()


def screen_text(app: App[Any]) -> str:
    """Return the rows of the screen without colours, trailing blanks cut."""
    return "\n".join(row.rstrip() for row in screen_rows(app)) + "\n"


def screen_svg(app: App[Any], title: str) -> str:
    """Return the screen as an SVG picture.

    Rich gives every character the width of one cell; Chinese text would be squeezed to half its
    width.
    """
    svg = _TEXT.sub(_widened, app.export_screenshot(title=title))
    if app.current_theme.ansi:
        colours = (SVG_EXPORT_THEME.ansi_colors[at] for at in range(len(_SIXTEEN)))
        drawn = (Color(*one).hex.lower() for one in colours)
        inks = dict(zip(drawn, _SIXTEEN, strict=False))
        svg = _COLOUR.sub(lambda found: inks.get(found[0], found[0]), svg)
    return svg


def _widened(found: re.Match[str]) -> str:
    """Return a text of the picture as wide as its cells."""
    text, shown = unescape(found[4]), found[4]
    if _BRAILLE.search(text):
        # Fonts rarely give blanks and dots the same width: the columns of a plot would drift.
        shown = shown.replace("&#160;", "\u2800")
    elif not text or cell_len(text) == len(text):
        return found[0]
    length = float(found[2]) / len(text) * cell_len(text)
    return f"{found[1]}{length:.1f}{found[3]}{shown}{found[5]}"

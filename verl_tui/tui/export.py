"""Screenshots as picture and text, the clipboard, and tables of numbers as CSV."""

from __future__ import annotations

import asyncio
import csv
import os
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.terminal_theme import SVG_EXPORT_THEME
from textual.color import Color

from verl_tui.exporters.csv import CsvColumn, csv_rows
from verl_tui.exporters.file_names import create, named
from verl_tui.given_files import why
from verl_tui.patterns import pattern
from verl_tui.rendering.text.piece import middle
from verl_tui.tui.messages import toast
from verl_tui.tui.terminal.output import screen_rows
from verl_tui.tui.widgets.rows import Rows
from verl_tui.words import counted

if TYPE_CHECKING:
    import re
    from collections.abc import Sequence

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


def screen_picture(app: App[Any], ending: str, title: str = "verl-tui") -> str:
    """Return the screen as a text, or for `.svg` as a picture with a title.

    Rich gives every character the width of one cell; Chinese text would be squeezed to half its
    width.
    """
    if ending != ".svg":
        return screen_text(app)
    svg = _TEXT.sub(_widened, app.export_screenshot(title=title))
    if app.current_theme.ansi:
        colours = SVG_EXPORT_THEME.ansi_colors
        drawn = (Color(*colours[at]).hex.lower() for at in range(len(_SIXTEEN)))
        inks = dict(zip(drawn, _SIXTEEN, strict=True))
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


_MOST = 74_000
"""Bytes copied at most: terminals refuse longer sequences, and this becomes 100 kB."""
_SHORT = 200
"""Characters up to which a copied text is repeated in the message."""


def clipping(text: str) -> tuple[str, str]:
    """Return as much of a text as a terminal accepts, and the message to the user."""
    data = text.encode("utf-8", "replace")
    what = copied = data[:_MOST].decode("utf-8", "ignore")
    if len(copied) > _SHORT or "\n" in copied:
        what = f"{len(copied):,} characters"
    if len(data) > _MOST:
        what += f" of {len(text):,}, terminals take no more"
    tmux = "; tmux needs set-clipboard on" if os.environ.get("TMUX") else ""
    return copied, f"copied {what}{tmux}"


def copy_text(app: App[Any], text: str) -> None:
    """Copy a text to the clipboard of the terminal, and confirm it."""
    copied, says = clipping(text)
    app.copy_to_clipboard(copied)
    toast(app, says)


def copy_here(app: App[Any]) -> None:
    """Copy the text at the cursor.

    The first panel or screen with a `clip` returns it, from the focused widget upwards; where none
    has one it is the chosen row of the focused list, or all rows where none is chosen.
    """
    nodes = (app.focused or app.screen).ancestors_with_self
    texts = (node.clip() for node in nodes if hasattr(node, "clip"))
    rows = app.focused.plain if isinstance(app.focused, Rows) else ""
    text = next(filter(None, texts), rows)
    if text:
        copy_text(app, text)
    else:
        toast(app, "nothing to copy here")


def take_picture(app: App[Any], run: str) -> None:
    """Write the screen into the current directory, as a picture and as text.

    Notifications do not belong there, so they go first.
    """

    def take() -> None:
        where = type(app.screen).__name__.removesuffix("Screen").lower()
        paths: tuple[Path, ...] = ()
        try:
            paths = create(Path.cwd(), named(run, where), ".svg", ".txt")
            for path in paths:
                text = screen_picture(app, path.suffix)
                path.write_text(text, encoding="utf-8", errors="replace")
        except OSError as error:
            _give_up(app, paths, error)
        else:
            _say(app, "written", paths[0], " and .txt")

    app.clear_notifications()
    app.call_after_refresh(take)


def take_table(app: App[Any], columns: Sequence[CsvColumn], *words: str) -> None:
    """Write columns as CSV into the current directory, to a file named by these words."""
    if any(column.steps for column in columns):
        app.run_worker(write_table(app, named(*words), columns))
    else:
        toast(app, "nothing to write")


async def write_table(app: App[Any], name: str, columns: Sequence[CsvColumn]) -> None:
    """Write columns as RFC 4180 has it, in a thread: keys are answered meanwhile, and the app ends
    when the table is whole.
    """

    def write(path: Path) -> int:
        with path.open("w", encoding="utf-8", newline="") as file:
            return sum(1 for _ in map(csv.writer(file).writerow, csv_rows(columns)))

    paths: tuple[Path, ...] = ()
    try:
        paths = create(Path.cwd(), name, ".csv")
        rows = await asyncio.to_thread(write, paths[0])
    except OSError as error:
        _give_up(app, paths, error)
    else:
        _say(app, f"{counted(rows - 1, 'step')} in", paths[0])


def folder() -> str:
    """Return the directory that files are written into."""
    try:
        return str(Path.cwd())
    except OSError:  # it is gone
        return "the current directory"


def _give_up(app: App[Any], paths: Sequence[Path], error: OSError) -> None:
    for path in paths:
        path.unlink(missing_ok=True)
    _say(app, "cannot write to", folder(), f": {why(error)}")


def _say(app: App[Any], sentence: str, path: Path | str, end: str = "") -> None:
    """Say it in one line; of a path both ends are kept."""
    room = max(8, app.size.width - 9 - len(sentence) - len(end))
    toast(app, f"{sentence} {middle(str(path), room)}{end}")

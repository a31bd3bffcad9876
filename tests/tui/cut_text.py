"""Looks for text that ends where its room ends, with nothing to say that there is more."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import textual
from inside_textual import screen_strips
from rich.cells import cell_len
from textual.screen import ModalScreen
from textual.widgets import Input

import verl_tui
from verl_tui.rendering.text.piece import text_of
from verl_tui.tui.widgets.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from textual.app import App

    from verl_tui.monitor import Monitor

_WORD = re.compile(r"[A-Za-z]{2,}")
_ENDS = "…~"
_FRAMES = "│ "


def words_of(monitor: Monitor) -> frozenset[str]:
    """Return all words that our own sentences, those of Textual, the tests and the paths of their
    logs are made of.
    """
    paths = [path for run in monitor.runs.values() for path in run.sources]
    return _written().union(*map(_WORD.findall, paths))


@cache
def _written() -> frozenset[str]:
    folders = (Path(verl_tui.__file__).parent, Path(__file__).parent)
    files = [
        path
        for folder in folders
        for path in folder.rglob("*")
        if path.suffix in (".py", ".toml")
    ]
    files += Path(textual.__file__).parent.glob("*.py")
    return frozenset(
        word
        for path in files
        for word in _WORD.findall(path.read_text(encoding="utf-8"))
    )


def cut_words(rows: list[str], known: frozenset[str]) -> Iterator[str]:
    """Yield words that nobody has written, and that neither an ellipsis nor a further row makes
    whole.

    The last word of all is left alone: it may go on in a row that is out of sight.

    Args:
        rows: Text as it stands one row below the other.
        known: Every word that has been written.
    """
    for before, row, after in zip(["", *rows], rows, [*rows[1:], ""], strict=False):
        around = [*_WORD.finditer(before + row + after)]
        for found in _WORD.finditer(row):
            start = len(before) + found.start()
            whole = next(
                word[0] for word in around if word.start() <= start < word.end()
            )
            beside = (
                row[max(0, found.start() - 1) : found.start()]
                + row[found.end() : found.end() + 1]
            )
            goes_on = row is rows[-1] and found.end() == len(row)
            cut = not (
                known.intersection((found[0], whole)) or found[0].isupper() or goes_on
            )
            if cut and not any(sign in _ENDS for sign in beside):
                yield f"{found[0]!r} is cut in {row!r}"


def cut_rows(app: App[Any]) -> Iterator[str]:
    """Yield rows in sight that are wider than the widget that shows them."""
    for rows in app.screen.query(Rows):
        top = rows.scroll_offset.y
        for at in range(
            top, min(top + rows.size.height, len(rows.rows)) if rows.region.area else 0
        ):
            text = text_of(rows.rows[at]).rstrip()
            if cell_len(text) > rows.width:
                yield f"{rows} is {rows.width} wide, and not as wide as {text!r}"


def cut_hints(app: App[Any]) -> Iterator[str]:
    """Yield what boxes ask for in more words than they have room for."""
    for box in app.screen.query(Input):
        if (
            box.region.area
            and not box.value
            and cell_len(str(box.placeholder)) > box.content_size.width
        ):
            yield f"{box} is {box.content_size.width} wide, and not as wide as {box.placeholder!r}"


def cut_toasts(app: App[Any]) -> Iterator[str]:
    """Yield words in passing that are longer than there is room for."""
    for toast in app.screen.query("Toast"):
        width, height = toast.content_size
        if toast.get_content_height(
            app.size, app.size, width
        ) > height or not app.screen.region.contains_region(toast.region):
            yield f"{toast} is {width} × {height}, and not as large as {str(toast.render())!r}"


def texts_in_front(app: App[Any]) -> Iterator[list[str]]:
    """Yield the rows of what nothing else covers: what shines through from below, or beside a
    toast, ends anywhere.
    """
    screen = app.screen
    strips = screen_strips(app)
    toasts = [toast.region for toast in screen.query("Toast")]
    children = (
        [child.region for child in screen.children if child.display]
        if isinstance(screen, ModalScreen)
        else []
    )
    for region in children or [screen.region]:
        yield [
            strips[y].crop(region.x, region.right).text.strip(_FRAMES)
            for y in region.line_range
            if y < len(strips)
            and not any(toast.contains_point((toast.x, y)) for toast in toasts)
        ]

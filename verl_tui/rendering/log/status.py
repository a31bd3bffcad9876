"""The line above a log: which file of which run, what is searched, where in it."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from verl_tui.rendering.filter_words import Matches
from verl_tui.rendering.log.window import ROOMY
from verl_tui.rendering.text.printable import middle
from verl_tui.rendering.text.search import Search

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.records import SourceStatus
    from verl_tui.rendering.log.line_rows import ScreenRow
    from verl_tui.rendering.log.window import LogWindow
    from verl_tui.rendering.text.piece import Pieces


def place_line(window: LogWindow, width: int) -> tuple[Pieces, Pieces]:
    """Return the pieces of the line above the log, at its left and at its right."""
    run, pager = window.view.run, window.pager
    left: Pieces = []
    if width >= ROOMY:
        name = middle(run.name, max(8, width // 3)) if run is not None else ""
        left += [("log ", "dim"), (f"{name}  ", "strong")]
    if pager is None or window.source is None:
        return left, []
    left += _file_words(window, window.source, max(8, width // 2 - 8))
    if window.progress:
        return left, [(window.progress, "accent")]
    if pager.follow or not window.lines:
        return left, [("following" if pager.follow else "", "dim")]
    return left, [(f"{pager.share(window.lines[-1])}%", "dim")]


def _file_words(window: LogWindow, source: SourceStatus, cells: int) -> Pieces:
    paths = window.paths
    number = f" {paths.index(source.path) + 1}/{len(paths)}" if len(paths) > 1 else ""
    words: Pieces = [(middle(PurePath(source.path).name, cells) + number, "")]
    if source.unreadable:
        words.append((f"  {source.unreadable:,} unreadable", "warning"))
    if window.query is not None:
        words.append((f"  /{window.query.search.expression}/", "accent"))
        if window.query.search.given_up:
            words.append(("  long lines not searched", "warning"))
    return words


def hits_in_sight(
    lines: Sequence[ScreenRow], expression: str
) -> dict[str, Matches] | None:
    """Count the rows in sight that match a typed expression; None while it is not valid."""
    try:
        search = Search(expression)
    except ValueError:
        return None
    rows = {line.row.start: line.row.whole for line in lines}
    found = sum(search.search(text) for text in rows.values())
    return {"lines in sight": Matches(found, len(rows))}

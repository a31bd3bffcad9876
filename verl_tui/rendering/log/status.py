"""The lines above and below a log: which file of which run, where in it, and the keys."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from verl_tui.rendering.filter_words import Matches
from verl_tui.rendering.log.window import ROOMY
from verl_tui.rendering.session.hint_keys import HINT_KEYS
from verl_tui.rendering.text.printable import middle
from verl_tui.rendering.text.search import Search

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from verl_tui.rendering.log.line_kinds import TextQuery
    from verl_tui.rendering.log.pager import ScreenRow
    from verl_tui.rendering.log.window import LogWindow
    from verl_tui.rendering.text.piece import Pieces

_KEYS = (
    ("log.back", "back"),
    ("log.search", "search"),
    ("log.next_hit log.previous_hit", "hits"),
    ("log.next_alarm log.previous_alarm", "errors"),
    ("log.next_warning log.previous_warning", "warnings"),
    ("log.whole", "whole line"),
    ("log.follow", "follow"),
    ("log.unfold", "unfold"),
    ("log.wrap", "wrap"),
    ("log.copy", "copy"),
    ("log.next_source", "next file"),
)
"""Actions and what they do: the last ones go first where there is little room; the help has all."""


def place_line(window: LogWindow, width: int) -> tuple[Pieces, Pieces]:
    """Return the pieces of the line above the log, at its left and at its right."""
    view = window.view
    source = window.source
    pager = window.pager
    left: Pieces = [("log ", "dim")] if width >= ROOMY else []
    if view.run is not None and width >= ROOMY:
        name = middle(view.run.name, max(8, width // 3))
        left.append((f"{name}  ", "strong"))
    if pager is None or source is None:
        return left, []
    name = middle(PurePath(source.path).name, max(8, width // 2 - 8))
    left.append((name + _number(source.path, window.paths), ""))
    if source.unreadable:
        left.append((f"  {source.unreadable:,} unreadable", "warning"))
    progress = window.seeker.progress(pager.log)
    if progress:
        return left, [(progress, "accent")]
    if pager.follow:
        return left, [("following", "dim")]
    return left, [(f"{pager.share(window.lines[-1])}%" if window.lines else "", "dim")]


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


def _number(path: str, paths: list[str]) -> str:
    return f" {paths.index(path) + 1}/{len(paths)}" if len(paths) > 1 else ""


def keys(query: TextQuery | None, named: Mapping[str, str] = HINT_KEYS) -> Pieces:
    """Return the pieces of the line below the log: the search, then keys.

    Args:
        query: The search, None without one.
        named: Names of actions -> their keys.
    """
    pieces: Pieces = []
    for names, does in _KEYS:
        keys = " ".join(named[name] for name in names.split())
        gap = " · " if pieces else ""
        pieces.append((f"{gap}{keys} {does}", "dim"))
    if query is None:
        return pieces
    if query.search.given_up:
        pieces.insert(0, ("long lines not searched ", "warning"))
    return [(f"/{query.search.expression}/ ", "accent"), *pieces]

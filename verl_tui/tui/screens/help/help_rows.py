"""The rows of the help: sections below each other, or in columns side by side."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

from rich.cells import cell_len

from verl_tui.rendering.text.piece import text_of
from verl_tui.rendering.text.wrap import fit, wrap

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from verl_tui.rendering.text.piece import Pieces
    from verl_tui.tui.screens.help.sections import KeySection

GAP = 2
"""Cells between two columns."""
ROOMY = 56
"""Cells from which on keys stand in a wide column, and the names of actions beside what they do."""


def help_rows(
    sections: Iterable[KeySection], width: int, columns: int = 1
) -> Iterator[Pieces]:
    """Yield sections in columns of a width, each below the shortest column so far."""
    made: list[list[Pieces]] = [[] for _ in range(columns)]
    for section in sections:
        min(made, key=len).extend((*_section(section, width), []))
    for parts in zip_longest(*made, fillvalue=()):
        row: Pieces = []
        for part in parts:
            row += [*part, (" " * (width - cell_len(text_of(part)) + GAP), "")]
        yield row[:-1]


def _section(section: KeySection, width: int) -> Iterator[Pieces]:
    """Yield title, keys and notes."""
    task = fit(section.task, width)
    title = f" · {section.title}" if section.title else ""
    yield [(task, "strong"), (fit(title, width - len(task)), "dim")]
    beside = width >= ROOMY
    least = 18 if beside else 9
    for keys, words, name in section.rows:
        start = max(least, len(keys) + 1) + 2
        room = width - start - (len(name) + 2 if beside and name else 0)
        first, *more = wrap(words, max(8, room))
        said = fit(f"  {keys}".ljust(start) + first.ljust(room), width)
        yield [(said, ""), (f"  {name}" if beside and name else "", "dim")]
        yield from ([(fit(" " * start + line, width), "")] for line in more)
    yield from ([(fit(f"  {note}", width), "")] for note in section.notes)

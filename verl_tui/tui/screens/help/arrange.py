"""How the rows of the help are arranged: those that are looked for, and sections side by side."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

from rich.cells import cell_len

from verl_tui.rendering.text.piece import text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.style import Style

    from verl_tui.tui.screens.help.help_rows import HelpRow

GAP = 2
"""Cells between two columns."""


def by_section(rows: Iterable[HelpRow]) -> list[list[HelpRow]]:
    """Return the rows of each section, its title first, without the empty rows between them."""
    found: list[list[HelpRow]] = [[]]
    for row in rows:
        if row:
            found[-1].append(row)
        elif found[-1]:
            found.append([])
    return [section for section in found if section]


def with_words(
    sections: Iterable[Sequence[HelpRow]], wanted: str
) -> list[list[HelpRow]]:
    """Return the sections with the rows that contain all words, in any case, below their titles;
    words in a title hold for all of its rows.
    """
    words = wanted.casefold().split()
    found = []
    for title, *rows in sections:
        named = _text(title).casefold()
        sought = [word for word in words if word not in named]
        left: list[HelpRow] = []
        for row in rows:
            text = _text(row).casefold()
            if all(word in text for word in sought):
                left.append(row)
        found += [[title, *left]] if left else []
    return found


def in_columns(
    sections: Iterable[Sequence[HelpRow]], columns: int, width: int
) -> Iterator[HelpRow]:
    """Yield sections in columns of a width, each below the shortest column so far."""
    made: list[list[HelpRow]] = [[] for _ in range(columns)]
    for section in sections:
        min(made, key=len).extend((*section, []))
    for parts in zip_longest(*made, fillvalue=()):
        row: list[tuple[str, Style | None]] = []
        for at, part in enumerate(parts):
            row += part
            if at < columns - 1:
                row.append((" " * (width - cell_len(_text(part)) + GAP), None))
        yield row


def _text(row: HelpRow) -> str:
    return text_of(row)

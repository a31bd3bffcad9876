"""The pages beside the code (`README.md` of a folder), which are installed with it, as text for a
terminal.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import ClassVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown, TableElement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from rich.theme import Theme

from verl_tui.patterns import pattern

_IMAGE = pattern(r"!\[[^\[\]]*\]\([^()]*\)\n*")
_LINK = pattern(r"\[([^\[\]]+)\]\((?!https?:)[^()]*\)")
_EMPTY = pattern(r"^(?:\s|\x1b\[[0-9;]*m)*$")
"""A line that shows nothing, whatever its style."""
_GAP = pattern(r"\n{3,}")
_ADDRESS = pattern(r"\[([^\[\]]+)\]\((https?:[^()]*)\)")
# Weight alone, so that a page reads the same on light and dark terminals.
_STYLES = Theme(
    {
        "markdown.h1": "bold underline",
        "markdown.h2": "bold",
        "markdown.h3": "bold",
        "markdown.code": "bold",
        "markdown.table.border": "dim",
        "markdown.table.header": "bold",
        "markdown.item.bullet": "none",
    }
)


def page(folder: str) -> str:
    """Return the page of a folder of the package, in Markdown without links into the project and
    without pictures, which a terminal cannot follow or show.
    """
    text = (Path(__file__).parent / folder / "README.md").read_text(encoding="utf-8")
    return _ADDRESS.sub(r"\1 (\2)", _LINK.sub(r"\1", _IMAGE.sub("", text)))


def page_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown, its cells shown as they stand."""
    lines = [head, ["---"] * len(head)]
    lines += [list(map(_cell, row)) for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(text: str) -> str:
    return "".join(f"\\{sign}" if sign in "\\`*_[]<>|~!#&" else sign for sign in text)


def as_text(markdown: str, width: int, *, styled: bool = False) -> str:
    """Return Markdown as lines of a width.

    Args:
        markdown: The text, of the project's own.
        width: Cells of a line.
        styled: True for bold and dim, which need escape sequences.
    """
    out = io.StringIO()
    console = Console(
        file=out,
        width=width,
        force_terminal=styled,
        color_system="standard" if styled else None,
        no_color=True,
        theme=_STYLES,
    )
    console.print(_Page(markdown, hyperlinks=False))
    lines = "\n".join(
        _EMPTY.sub("", line).rstrip() for line in out.getvalue().splitlines()
    )
    return _GAP.sub("\n\n", lines).strip("\n") + "\n"


class _Title(Heading):
    """A heading at the left."""

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> RenderResult:
        self.text.justify = "left"
        yield self.text


class _Indented(CodeBlock):
    """Code as it stands in the page, without a box; lines that are too long go on below."""

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> RenderResult:
        yield Padding(Text(str(self.text).rstrip(), overflow="fold"), (0, 0, 0, 4))


class _WholeTable(TableElement):
    """A table whose long words go on below, instead of being cut off."""

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> RenderResult:
        for made in super().__rich_console__(console, options):
            if isinstance(made, Table):
                for column in made.columns:
                    column.overflow = "fold"
            yield made


class _Page(Markdown):
    elements: ClassVar = {
        **Markdown.elements,
        "heading_open": _Title,
        "code_block": _Indented,
        "fence": _Indented,
        "table_open": _WholeTable,
    }

"""Rows that change are painted, with a frame around them and without."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from rich.segment import Segment
from rich.style import Style
from textual.app import App, ComposeResult
from textual.strip import Strip

from verl_tui.tui.widgets.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Iterable

ROW = [
    ("plain ", None),
    ("dim ", Style(dim=True)),
    ("数… ", Style(color="red", bold=True)),
    ("on", Style(bgcolor="#123456")),
]


class Painted(App[None]):
    """Rows with a scroll bar, and rows with a padding and a frame."""

    CSS = "Rows { height: 6; } #framed { padding: 0 1; border: round red; }"

    def compose(self) -> ComposeResult:
        yield Rows(choosing=True)
        yield Rows(choosing=True, id="framed")

    def on_mount(self) -> None:
        for rows in self.query(Rows):
            rows.set_strips([Strip([Segment(*piece) for piece in ROW])] * 20)
            rows.chosen = 1


def cells(strips: Iterable[Strip]) -> list[list[tuple[str, Style]]]:
    """Return what is seen in each cell."""
    return [
        [(sign, style or Style()) for text, style, _ in strip for sign in text]
        for strip in strips
    ]


@pytest.mark.parametrize("framed", [False, True])
async def test_other_rows_another_choice_and_another_theme_are_seen(
    framed: bool,
) -> None:
    app = Painted()
    async with app.run_test(size=(40, 24)) as pilot:
        rows = app.query(Rows)[framed]
        rows.focus()
        await pilot.pause()
        seen = []
        for change in (
            lambda: None,
            lambda: setattr(rows, "chosen", 2),
            lambda: app.set_focus(None),
            lambda: rows.set_strips(
                [Strip([Segment(f"other {n}")]) for n in range(20)]
            ),
            lambda: setattr(app, "theme", "textual-light"),
            lambda: rows.scroll_to(y=3, animate=False),
        ):
            change()
            await pilot.pause()
            seen.append(cells(rows.render_lines(rows.outer_size.region)))
        assert [one != other for one, other in pairwise(seen)] == [True] * 5


async def test_a_reversed_row_leaves_pictures_and_the_blanks_behind_them_as_they_are() -> (
    None
):
    app = Painted()
    async with app.run_test(size=(40, 24)) as pilot:
        app.theme = "ansi-dark"
        rows = app.query(Rows)[0]
        row = [Segment(text) for text in (" name ", "▁▄█", " ", "last")]
        rows.set_strips([Strip(row), Strip(row[:3])])
        rows.focus()
        for chosen, drawn in ((0, " name last" + " " * 26), (1, " name ")):
            rows.chosen = chosen
            await pilot.pause()
            line = cells(rows.render_lines(rows.region))[chosen]
            assert "".join(sign for sign, style in line if style.reverse) == drawn

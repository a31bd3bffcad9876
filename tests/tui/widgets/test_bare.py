"""Widgets that hand their rows over look as if Textual had painted them."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from rich.segment import Segment
from rich.style import Style
from textual.app import App, ComposeResult
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from verl_tui.tui.terminal.ascii_filter import AsciiOnly
from verl_tui.tui.terminal.fast_rows import Bar
from verl_tui.tui.widgets.chart import Chart, ChartData
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
    """Rows with a scroll bar, rows with a padding and a frame, and a chart."""

    CSS = "Rows { height: 6; } #framed { padding: 0 1; border: round red; } Chart { height: 8; }"

    def compose(self) -> ComposeResult:
        yield Rows(choosing=True)
        yield Rows(id="framed")
        yield Chart(ChartData(key="k"), ascii_only=False)

    def on_mount(self) -> None:
        for rows in self.query(Rows):
            rows.set_strips([Strip([Segment(*piece) for piece in ROW])] * 20)
            rows.chosen = 1


def cells(strips: Iterable[Strip]) -> list[list[tuple[str, Style]]]:
    """Return what is seen in each cell."""
    return [
        [(sign, style or Style()) for text, style, _ in strip for sign in text] for strip in strips
    ]


@pytest.mark.parametrize("theme", ["textual-dark", "textual-light", "ansi-dark"])
@pytest.mark.parametrize("ascii_only", [False, True])
async def test_all_looks_as_textual_paints_it(theme: str, ascii_only: bool) -> None:
    app = Painted()
    if ascii_only:
        app._filters.append(AsciiOnly())
    async with app.run_test(size=(40, 24)) as pilot:
        app.theme = theme
        await pilot.pause()
        for widget in (*app.query(Rows), app.query_one(Chart)):
            for crop in (widget.outer_size.region, Region(3, 2, 20, 3)):
                assert cells(widget.render_lines(crop)) == cells(
                    Widget.render_lines(widget, crop)
                ), (widget, crop)


async def test_other_rows_another_choice_and_another_theme_are_seen() -> None:
    app = Painted()
    async with app.run_test(size=(40, 24)) as pilot:
        rows = app.query(Rows).first()
        seen = []
        for change in (
            lambda: None,
            lambda: setattr(rows, "chosen", 2),
            lambda: app.set_focus(None),
            lambda: rows.set_strips([Strip([Segment(f"other {n}")]) for n in range(20)]),
            lambda: setattr(app, "theme", "textual-light"),
            lambda: rows.scroll_to(y=3, animate=False),
        ):
            change()
            await pilot.pause()
            seen.append(cells(rows.render_lines(rows.outer_size.region)))
        assert all(one != other for one, other in pairwise(seen))


@pytest.mark.parametrize("count", [3, 7, 20, 5000])
async def test_the_scroll_bar_is_textuals(count: int) -> None:
    app = Painted()
    async with app.run_test(size=(40, 24)) as pilot:
        rows = app.query(Rows).first()
        rows.set_strips([Strip([Segment("row")])] * count)
        for at in (0, 1, count // 3, count):
            rows.scroll_to(y=at, animate=False)
            await pilot.pause()
            bar = rows.vertical_scrollbar
            assert isinstance(bar, Bar)
            assert bar.display is (count > rows.outer_size.height)
            shown = bar.render_lines(bar.outer_size.region)
            bar.refresh()
            assert not bar.display or cells(shown) == cells(
                Widget.render_line(bar, y) for y in range(bar.outer_size.height)
            )

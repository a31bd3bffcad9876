"""Screens that draw themselves: their layout follows their own rules."""

from __future__ import annotations

from textual.app import App, ComposeResult
from textual.css.scalar import Scalar, Unit
from textual.events import Resize
from textual.geometry import Size
from textual.widgets import Static

from verl_tui.tui.terminal.buffered_screen import BufferedScreen


class Two(BufferedScreen[None]):
    """Two widgets in a grid, one above the other."""

    DEFAULT_CSS = "Two { layout: grid; grid-size: 1; & > Static { height: 1fr; } }"

    def compose(self) -> ComposeResult:
        yield Static(id="upper")
        yield Static(id="lower")

    def divide(self, *heights: int) -> None:
        """Give the rows of the grid other heights, as the dashboard does."""
        rows = tuple(Scalar(height, Unit.CELLS, Unit.HEIGHT) for height in heights)
        self.styles.set_rule("grid_rows", rows)
        self.refresh(layout=True, repaint=False)


async def test_other_rows_of_a_grid_are_laid_out_though_the_size_is_the_same() -> None:
    app = App[None]()
    async with app.run_test(size=(40, 12)) as pilot:
        screen = Two()
        await app.push_screen(screen)
        for heights in ((4, 8), (7, 5), (1, 11)):
            screen.divide(*heights)
            await pilot.pause()
            assert tuple(child.size.height for child in screen.children) == heights


class Counted(BufferedScreen[None]):
    """Counts for how many sizes it is laid out, and is shut where there are far too many."""

    fitted = 0

    def fit(self, size: Size) -> None:
        self.fitted += 1
        if self.fitted == 50:
            self.app.exit()


async def test_the_last_size_is_laid_out_though_the_one_before_is_reported_behind_it() -> (
    None
):
    app = App[None]()
    async with app.run_test(size=(40, 12)) as pilot:
        screen = Counted()
        await app.push_screen(screen)
        await pilot.resize_terminal(30, 10)
        for size in (Size(20, 5), Size(10, 5)):
            screen.post_message(Resize(size, size))
        await pilot.pause()
        assert screen.size == (30, 10)


async def test_two_sizes_at_once_are_not_laid_out_in_turn_for_ever() -> None:
    app = App[None]()
    async with app.run_test(size=(40, 12)) as pilot:
        screen = Counted()
        await app.push_screen(screen)
        for size in (Size(30, 10), Size(40, 12)):
            screen.post_message(Resize(size, size))
            screen.call_later(lambda: None)  # else the second would replace the first
        await pilot.pause()
        assert screen.size == (40, 12)
        assert screen.fitted < 4

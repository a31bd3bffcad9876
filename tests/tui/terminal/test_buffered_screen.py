"""Screens that draw themselves: their layout follows their own rules."""

from __future__ import annotations

from textual.app import App
from textual.events import Resize
from textual.geometry import Size

from verl_tui.tui.terminal.buffered_screen import BufferedScreen


class Counted(BufferedScreen):
    """Counts its layouts, and for how many sizes; it is shut where there are far too many."""

    drawn = laid = 0

    def _refresh_layout(self, size=None, scroll=False):
        self.laid += 1
        super()._refresh_layout(size, scroll)

    def redraw(self):
        self.drawn += 1
        if self.drawn == 50:
            self.app.exit()


async def test_two_sizes_at_once_are_not_laid_out_in_turn_for_ever():
    app = App[None]()
    async with app.run_test(size=(40, 12)) as pilot:
        screen = Counted()
        await app.push_screen(screen)
        for size in (Size(30, 10), Size(40, 12)):
            screen.post_message(Resize(size, size))
            screen.call_later(lambda: None)  # else the second would replace the first
        await pilot.pause()
        assert screen.size == (40, 12)
        assert screen.drawn < 5


async def test_a_screen_is_not_laid_out_for_one_that_opens_over_it():
    app = App[None]()
    async with app.run_test(size=(40, 12)) as pilot:
        screen = Counted()
        await app.push_screen(screen)
        await pilot.pause()
        before = screen.laid
        await app.push_screen(BufferedScreen())
        await pilot.pause()
        assert screen.laid == before

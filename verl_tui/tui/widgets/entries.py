"""Rows in groups: a list whose entries take several rows each."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, ClassVar

from textual.actions import SkipAction
from textual.geometry import Region
from textual.message import Message

from verl_tui.tui.keys.act import act
from verl_tui.tui.widgets.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events
    from textual.binding import BindingType
    from textual.strip import Strip


class Entries(Rows):
    """A list of entries that take one row or more each; an entry is chosen as a whole.

    `chosen` is the row that the chosen entry begins at.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        act("enter", "open", "entries.open", "Open"),
        act("pagedown", "page(1)", "entries.page_down", "Page down"),
        act("pageup", "page(-1)", "entries.page_up", "Page up"),
    ]

    class Opened(Message):
        """The user pressed enter on the chosen entry, or clicked it twice."""

        def __init__(self, entries: Entries, entry: int) -> None:
            self.entries = entries
            self.entry = entry
            super().__init__()

        @property
        def control(self) -> Entries:
            """The widget that sent the message."""
            return self.entries

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(choosing=True, id=id)
        self._heads: Sequence[int] = ()
        self._stop = 0
        """Row after the last entry."""

    @property
    def entry(self) -> int | None:
        """Index of the chosen entry."""
        if self.chosen is None:
            return None
        return self.entry_at(self.chosen)

    def set_entries(
        self, strips: Sequence[Strip], heads: Sequence[int], stop: int
    ) -> None:
        """Show rows that are divided into entries.

        Args:
            strips: All rows.
            heads: The row that each entry begins at, ascending.
            stop: The row after the last entry.
        """
        self._heads = heads
        self._stop = stop
        self.choosing = bool(heads)
        self.set_strips(strips)

    def entry_at(self, row: int) -> int | None:
        """Return the entry that a row belongs to, None where it belongs to none."""
        if self._heads and self._heads[0] <= row < self._stop:
            return bisect_right(self._heads, row) - 1
        return None

    def choose(self, entry: int | None) -> None:
        """Mark an entry as chosen, without a message."""
        self.chosen = None if entry is None else self._heads[entry]

    def reveal(self, index: int) -> None:
        """Scroll as little as needed to show the entry that begins at a row, its beginning at
        least.
        """
        entry = self.entry_at(index)
        tall = 1 if entry is None else self._end(entry) - index
        height = max(1, min(tall, self.size.height))
        region = Region(0, index, 1, height)
        self.scroll_to_region(region, animate=False, force=True)

    def action_move(self, by: int) -> None:
        """Choose the next entry; beyond the last one, scroll."""
        if self.entry is not None:
            target = self.entry + by
        else:
            target = 0 if by > 0 else len(self._heads) - 1
        if self._heads and 0 <= target < len(self._heads):
            self._choose(self._heads[target])
        else:
            self.scroll_relative(y=by, animate=False)

    def action_page(self, by: int) -> None:
        """Scroll by a screenful."""
        self.scroll_relative(y=by * max(1, self.size.height - 1), animate=False)

    def action_end(self, way: int) -> None:
        """Choose the first or last entry, and scroll to that end."""
        if self._heads:
            self._choose(self._heads[0 if way < 0 else -1])
        if way < 0:
            self.scroll_home(animate=False)
        else:
            self.scroll_end(animate=False)

    def action_open(self) -> None:
        """Open the chosen entry, else the first; without entries leave the key to others."""
        if not self._heads:
            raise SkipAction
        self._choose(self._heads[self.entry or 0])
        self.post_message(self.Opened(self, self.entry or 0))

    def on_click(self, event: events.Click) -> None:
        """Open an entry at the second click; the first chooses it."""
        row = event.y + self.scroll_offset.y
        if event.chain == 2 and self.entry_at(row) is not None:
            self.action_open()

    def _choose(self, index: int) -> None:
        entry = self.entry_at(index)
        if entry is not None:
            super()._choose(self._heads[entry])

    def _end(self, entry: int) -> int:
        """Return the row behind the last one of an entry."""
        return [*self._heads, self._stop][entry + 1]

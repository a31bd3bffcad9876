"""A scrolling list of ready-made rows that repaints only the rows that have changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import var
from textual.strip import Strip

from verl_tui.means import clamp
from verl_tui.tui.keys.act import act
from verl_tui.tui.keys.help_section import HelpSection
from verl_tui.tui.terminal.scrolling import ScrollingRows
from verl_tui.tui.widgets.role_styled import RoleStyled

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from textual import events
    from textual.binding import BindingType

    from verl_tui.tui.widgets.role_styled import Looks

_EMPTY = Strip([])
"""Drawn below the last row."""
_BLOCKS = frozenset("▁▂▃▄▅▆▇█▏▎▍▌▋▊▉")
"""Characters of bars and sparklines."""


def _grounded(strip: Strip, ground: Style) -> Iterator[Segment]:
    """Yield a row with a ground laid under it. A bar or a sparkline, with the blanks behind it, is
    not reversed: that would show its opposite.
    """
    upright = Style(bgcolor=ground.bgcolor, bold=ground.bold)
    picture = False
    for text, style, _ in strip:
        picture = not _BLOCKS.isdisjoint(text) or (picture and not text.strip())
        yield Segment(
            text,
            (style or Style()) + (upright if picture and ground.reverse else ground),
        )


class Rows(ScrollingRows, RoleStyled, can_focus=True):
    """Rows of text; one may be chosen with the keyboard or the mouse.

    Textual writes a dirty widget whole, so what did not change must not be refreshed: over a slow
    link the difference is a factor of a hundred.
    """

    LOOKS: ClassVar[Looks] = {
        "here": "bold on $primary-muted",
        "chosen": "on $block-cursor-blurred-background",
    }
    # Nobody knows which grounds the text of the terminal's own colours can be read on.
    ANSI_LOOKS: ClassVar[Mapping[str, str]] = {
        "here": "bold reverse",
        "chosen": "bold",
    }
    DEFAULT_CSS = """
    Rows {
        scrollbar-size-vertical: 1;
        overflow-x: hidden;
        overflow-y: auto;
    }
    """
    HELP_SECTION = HelpSection("lists, with the focus", rank=1000)
    BINDINGS: ClassVar[list[BindingType]] = [
        act("j,down", "move(1)", "list.down", "down"),
        act("k,up", "move(-1)", "list.up", "up"),
        act("pagedown", "page(1)", "list.page_down", "page down"),
        act("pageup", "page(-1)", "list.page_up", "page up"),
        act("g,home", "end(-1)", "list.first", "first"),
        act("G,end", "end(1)", "list.last", "last"),
    ]

    class Chosen(Message):
        """A row was chosen by the user."""

        def __init__(self, rows: Rows, index: int) -> None:
            self.rows = rows
            self.index = index
            super().__init__()

        @property
        def control(self) -> Rows:
            """The widget that sent the message."""
            return self.rows

    chosen: var[int | None] = var(None, init=False)
    """Index of the chosen row; None while none is."""

    def __init__(self, *, choosing: bool = False, id: str | None = None) -> None:
        super().__init__(id=id)
        self.choosing = choosing
        """True if moving chooses rows; otherwise it scrolls."""
        self.show_horizontal_scrollbar = False
        self.strips: Sequence[Strip] = []
        """All rows, in sight or not; `set_strips` sets them."""

    @property
    def width(self) -> int:
        """Width of a row in cells."""
        return self.scrollable_content_region.width

    def set_strips(self, strips: Sequence[Strip]) -> None:
        """Show these strips; repaints only the rows in sight that differ from those before."""
        old = self.strips
        self.strips = strips
        width = self.width
        if len(old) != len(strips) or self.virtual_size.width != width:
            self.scroll_over(Size(width, len(strips)))
        top = self.scroll_offset.y
        shown, height = self.size
        before = [*old[top : top + height], *[None] * height]
        after = [*strips[top : top + height], *[None] * height]
        changed = [y for y in range(height) if _differ(before[y], after[y])]
        if changed:
            self.refresh(*(Region(0, y, shown, 1) for y in changed))

    def render_line(self, y: int) -> Strip:
        """Return one row of the screen."""
        at = self.scroll_offset.y + y
        width = self.size.width
        strip = self.strips[at] if 0 <= at < len(self.strips) else _EMPTY
        strip = strip.crop(0, width).extend_cell_length(width)
        ground = self.ground(at)
        if ground is not None:
            strip = Strip(_grounded(strip, ground), width)
        return strip.apply_style(self.role_style(""))

    def ground(self, at: int) -> Style | None:
        """Return the style under a chosen row.

        Only the background changes: the meaning of a row's colours must stay readable under the
        cursor.
        """
        if not self.choosing or at != self.chosen:
            return None
        mark = self.mark
        return Style(bgcolor=mark.bgcolor, bold=mark.bold, reverse=mark.reverse)

    @property
    def mark(self) -> Style:
        """Style of the chosen row, with the focus or without."""
        return self.role_style("here" if self.has_focus else "chosen")

    def watch_has_focus(self, _has_focus: bool) -> None:
        """Repaint the chosen row: nothing else shows the focus."""
        self.watch_chosen(self.chosen, None)

    def watch_chosen(self, before: int | None, after: int | None) -> None:
        """Repaint the row chosen before and the one chosen now."""
        for at in (before, after):
            if at is not None:
                self.refresh(Region(0, at - self.scroll_offset.y, self.size.width, 1))

    @property
    def plain(self) -> str:
        """The chosen row as text; all rows where none can be chosen."""
        rows: Sequence[Strip] = self.strips
        if self.choosing:
            rows = [] if self.chosen is None else rows[self.chosen : self.chosen + 1]
        return "\n".join(row.text.rstrip() for row in rows)

    def reveal(self, index: int) -> None:
        """Scroll as little as needed to show a row."""
        self.scroll_to_region(Region(0, index, 1, 1), animate=False, force=True)

    def action_move(self, by: int) -> None:
        """Choose the next row, or scroll by one."""
        if self.choosing:
            at = self.chosen
            if at is None:
                at = -1 if by > 0 else 1
            self._choose(at + by)
        else:
            self.scroll_relative(y=by, animate=False, immediate=True)

    def action_page(self, by: int) -> None:
        """Move by a screenful."""
        rows = max(1, self.size.height - 1)
        if self.choosing:
            self._choose((self.chosen or 0) + by * rows)
        else:
            self.scroll_relative(y=by * rows, animate=False, immediate=True)

    def action_end(self, way: int) -> None:
        """Go to the first or last row."""
        if self.choosing:
            self._choose(0 if way < 0 else len(self.strips) - 1)
        elif way < 0:
            self.scroll_home(animate=False)
        else:
            self.scroll_end(animate=False)

    def on_click(self, event: events.Click) -> None:
        """Choose the row under the mouse."""
        if self.choosing:
            self._choose(event.y + self.scroll_offset.y)

    def _choose(self, index: int) -> None:
        if not self.strips:
            return
        index = clamp(index, 0, len(self.strips) - 1)
        self.chosen = index
        self.reveal(index)
        self.post_message(self.Chosen(self, index))


def _differ(before: Strip | None, after: Strip | None) -> bool:
    if before is after:
        return False
    return before is None or after is None or list(before) != list(after)

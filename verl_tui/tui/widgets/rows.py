"""Widgets that draw rows in the colours of roles, and repaint only those that have changed."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

from rich.control import strip_control_codes
from rich.segment import Segment
from rich.style import Style
from textual.actions import SkipAction
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import var
from textual.strip import Strip
from textual.style import Style as VisualStyle
from textual.widget import Widget

from verl_tui.means import clamp, page_rows
from verl_tui.patterns import pattern
from verl_tui.rendering.text.hues import OF_ROLES, Hue
from verl_tui.rendering.text.piece import Pieces, cells_of, cut, text_of
from verl_tui.toml_tables import toml_table
from verl_tui.tui.keys import HelpSection, actions
from verl_tui.tui.terminal.net import ContainedWidget
from verl_tui.tui.terminal.scrolling import ScrollingRows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from textual import events


_VARIABLE = pattern(r"\$([a-z0-9-]+)")
"""A colour of the theme."""


LOOKS_IN: Mapping[str, Mapping[str, str]] = {
    place: {role: look for look, roles in looks.items() for role in roles.split()}
    for place, looks in toml_table(__file__, "roles.toml").items()
}
"""How roles look in some widgets, by their names in the table."""
ROLES: Mapping[str, str | Hue] = {**LOOKS_IN["everywhere"], **OF_ROLES}
"""How each role looks on the ground of a widget."""


class RoleStyled(ContainedWidget, Widget):
    """A widget that draws in the colours of roles, such as `dim` or `critical`.

    A role's style is worked out when something is first drawn in it. Textual's component classes
    take a rule of the stylesheet each, and are all worked out whenever a widget is mounted; a chart
    has sixty roles and draws with eight of them.
    """

    LOOKS = "everywhere"
    """The part of the table of roles that holds first."""

    _role_styles: dict[str, Style] | None = None

    def role_style(self, role: str) -> Style:
        """Return the style of a role, on the ground of another behind a `+`; of none, and of one
        that is not known, that of the widget itself.
        """
        if not self._role_styles:
            self._role_styles = {"": self.rich_style}
        if role not in self._role_styles:
            name, _, area = role.partition("+")
            look = VisualStyle.parse(self._words(name))
            style = (self.visual_style + look).rich_style
            if area:
                style += Style(bgcolor=self.role_style(area).bgcolor)
            self._role_styles[role] = style
        return self._role_styles[role]

    def _words(self, role: str) -> str:
        """Return how a role looks in the theme in force, in the colours that this has."""
        look = LOOKS_IN[self.LOOKS].get(role) or ROLES.get(role, "")
        ansi = self.app.native_ansi_color
        if isinstance(look, Hue):
            return look.on_ground(ansi=ansi, dark=self.app.current_theme.dark)
        words = LOOKS_IN["in_sixteen"].get(role, look) if ansi else look
        # Textual's parser drops the share of a variable such as `auto 60%`
        variables = self.app.theme_variables
        return _VARIABLE.sub(lambda found: variables[found[1]], words)

    def inked(self, row: Iterable[tuple[str, str]]) -> Strip:
        """Return a row of pieces, each a text and its role, in their colours."""
        return Strip(
            [
                Segment(strip_control_codes(text), self.role_style(role))
                for text, role in row
                if text
            ]
        )

    def notify_style_update(self) -> None:
        """Forget the styles: the theme has changed."""
        self._role_styles = None
        super().notify_style_update()

    def repaint(self, before: Sequence[Pieces], after: Sequence[Pieces]) -> None:
        """Repaint the rows that differ from those before.

        Textual writes a dirty widget whole, so what did not change must not be refreshed: over a
        slow link the difference is a factor of a hundred.
        """
        pairs = enumerate(zip_longest(before, after))
        width = self.size.width
        changed = [Region(0, y, width, 1) for y, (old, new) in pairs if old != new]
        if changed:
            self.refresh(*changed)


_BLOCKS = frozenset("▁▂▃▄▅▆▇█━╸─")
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
    """Rows of text, or entries of one row or more each; of these one may be chosen."""

    DEFAULT_CSS = """
    Rows {
        scrollbar-size-vertical: 1;
        overflow-x: hidden;
        overflow-y: auto;
    }
    """
    BINDINGS = actions("""
        j,down    move(1)   list.down       down
        k,up      move(-1)  list.up         up
        pagedown,ctrl+f  page(1)     list.page_down  page down
        pageup,ctrl+b    page(-1)    list.page_up    page up
        ctrl+d           page(0.5)   list.half_down  half a page down
        ctrl+u           page(-0.5)  list.half_up    half a page up
        g,home           end(-1)     list.first      first
        G,end            end(1)      list.last       last
    """)

    @dataclass
    class Chosen(Message):
        """The user chose an entry."""

        entry: int

    chosen: var[int | None] = var(None, init=False)
    """The row that the chosen entry begins at; None while none is."""

    rows: Sequence[Pieces] = ()
    """All rows, in sight or not; `set` sets them."""
    resized: Callable[[], object] = object
    """What writes them for another size; nothing at first."""
    _starts: Sequence[int] = ()

    @property
    def width(self) -> int:
        """Width of a row in cells."""
        return self.scrollable_content_region.width

    def on_resize(self) -> None:
        """Have the rows written again."""
        self.resized()

    def set(self, rows: Sequence[Pieces], starts: Sequence[int] = ()) -> None:
        """Show these rows; repaints only those in sight that differ from those before.

        Args:
            rows: All rows.
            starts: The row that each entry begins at, ascending; none where none can be chosen.
        """
        old, self.rows = self.rows, rows
        self._starts = starts
        size = Size(self.width, len(rows))
        if size != self.virtual_size:
            self.scroll_over(size)
        sight = slice(self.scroll_offset.y, self.scroll_offset.y + self.size.height)
        self.repaint(old[sight], rows[sight])

    def render_line(self, y: int) -> Strip:
        """Return one row of the screen."""
        at = self.scroll_offset.y + y
        width = self.size.width
        row = self.rows[at] if 0 <= at < len(self.rows) else ()
        strip = self.inked(row).crop(0, width).extend_cell_length(width)
        if self._starts and at == self.chosen:
            # Only the ground changes: a row's colours must stay readable under the cursor, as no
            # colour of sixteen is sure to be on what is reversed.
            mark = self.role_style("row" if self.has_focus else "row-blurred")
            ground = mark.without_color + Style(bgcolor=mark.bgcolor)
            ground = mark if mark.reverse else ground
            strip = Strip(_grounded(strip, ground), width)
        return strip.apply_style(self.role_style(""))

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
        """The chosen row as text; all rows where none is chosen."""
        rows = self.rows
        if self._starts and self.chosen is not None:
            rows = rows[self.chosen : self.chosen + 1]
        return "\n".join(text_of(row).rstrip() for row in rows)

    # -- entries -----------------------------------------------------------------------------------

    @property
    def entry(self) -> int | None:
        """Index of the chosen entry."""
        return None if self.chosen is None else self.entry_at(self.chosen)

    def entry_at(self, row: int) -> int | None:
        """Return the entry that a row belongs to, None where it belongs to none."""
        if self._starts and self._starts[0] <= row < len(self.rows):
            return bisect_right(self._starts, row) - 1
        return None

    def choose(self, entry: int | None) -> None:
        """Mark an entry as chosen, without a message."""
        self.chosen = None if entry is None else self._starts[entry]

    def reveal(self, row: int) -> None:
        """Scroll as little as needed to show the entry that begins at a row, its beginning at
        least.
        """
        at = self.entry_at(row)
        end = row + 1 if at is None else [*self._starts, len(self.rows)][at + 1]
        height = max(1, min(end - row, self.size.height))
        self.scroll_to_region(Region(0, row, 1, height), animate=False, force=True)

    def _choose(self, row: int) -> None:
        at = self.entry_at(row)
        if at is not None:
            self.chosen = self._starts[at]
            self.reveal(self.chosen)
            self.post_message(self.Chosen(at))

    # -- keys and mouse ----------------------------------------------------------------------------

    def action_move(self, by: int) -> None:
        """Choose the next entry; scroll where there is none."""
        starts = self._starts
        at = self.entry
        to = (0 if by > 0 else len(starts) - 1) if at is None else at + by
        if 0 <= to < len(starts) and self._is_near(starts[to]):
            self._choose(starts[to])
        else:
            self.scroll_relative(y=by, animate=False, immediate=True)

    def action_page(self, screens: float) -> None:
        """Choose the entry so many screens away; scroll where there is none."""
        by = page_rows(screens, self.size.height)
        if self._starts and self._is_near(self._starts[0]):
            row = (self.chosen or 0) + by
            self._choose(clamp(row, self._starts[0], len(self.rows) - 1))
        else:
            self.scroll_relative(y=by, animate=False, immediate=True)

    def _is_near(self, row: int) -> bool:
        """Return whether an entry may be chosen: the first one not before it comes in sight."""
        return self.chosen is not None or row < self.scroll_offset.y + self.size.height

    def action_end(self, way: int) -> None:
        """Choose the first or last entry, and scroll to that end."""
        if self._starts:
            self._choose(self._starts[0 if way < 0 else -1])
        if way < 0:
            self.scroll_home(animate=False)
        else:
            self.scroll_end(animate=False)

    def on_click(self, event: events.Click) -> None:
        """Choose the entry under the mouse."""
        self._choose(event.y + self.scroll_offset.y)


class Entries(Rows):
    """A list whose entries can be opened."""

    HELP_SECTION = HelpSection(
        "lists, with the focus",
        rank=1000,
        notes=("space, too, is a page down where it has no other meaning",),
    )
    BINDINGS = actions("""
        enter  open  entries.open  Open, or go there
    """)

    @dataclass
    class Opened(Message):
        """The user pressed enter on the chosen entry, or clicked it twice."""

        entry: int

    def action_open(self) -> None:
        """Open the chosen entry, else the first; without entries leave the key to others."""
        if not self._starts:
            raise SkipAction
        self._choose(self._starts[self.entry or 0])
        self.post_message(self.Opened(self.entry or 0))

    def on_click(self, event: events.Click) -> None:
        """Open an entry at the second click; the first chooses it."""
        row = event.y + self.scroll_offset.y
        if event.chain == 2 and self.entry_at(row) is not None:
            self.action_open()


class Line(RoleStyled):
    """One line of pieces at the left and at the right; the left ones are cut first."""

    DEFAULT_CSS = """
    Line {
        height: 1;
        width: 1fr;
    }
    """

    _shown: tuple[Pieces, Pieces] = ([], [])

    def show(
        self, left: Iterable[tuple[str, str]], right: Iterable[tuple[str, str]] = ()
    ) -> None:
        """Show these pieces; repaints only if they are new."""
        shown = [*left], [*right]
        if shown != self._shown:
            self._shown = shown
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """Return the line."""
        width = self.size.width
        if y > 0 or width < 1:
            return Strip.blank(width, self.rich_style)
        left, right = self._shown
        if cells_of(right) > width // 2:
            right = []
        room = width - cells_of(right)
        while cells_of(left) > room - bool(right) and len(left) > 1:
            # Half a word at the end is misleading: the last pieces matter least.
            left = left[:-1]
        left = cut(left, room - bool(right))
        gap = " " * (room - cells_of(left))
        strip = self.inked([*left, (gap, ""), *right]).adjust_cell_length(width)
        return strip.apply_style(self.rich_style)


class FewRows(Rows, can_focus=False):
    """Rows in the colour of the widget; out of sight while there are none."""

    DEFAULT_CSS = """
    FewRows { height: 1; width: 1fr; padding: 0 1; display: none; overflow: hidden hidden; }
    """

    @property
    def room(self) -> int:
        """Cells of a row."""
        return max(1, self.screen.size.width - 2)

    def show(self, rows: Sequence[Pieces]) -> None:
        """Show these rows."""
        if len(rows) != len(self.rows):
            self.styles.height = max(1, len(rows))
            self.display = bool(rows)
        self.set(rows)

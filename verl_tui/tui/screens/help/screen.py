"""All keys, from the same declarations that make them work."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.containers import Container
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input

from verl_tui.rendering.filter_words import Matches
from verl_tui.tui.keys.act import act
from verl_tui.tui.keys.bindings import first_keys
from verl_tui.tui.screens.help.help_rows import GAP, ROOMY, help_rows
from verl_tui.tui.screens.help.sections import sections
from verl_tui.tui.terminal.buffered_screen import BufferedScreen
from verl_tui.tui.widgets.filter_bar import FilterBar
from verl_tui.tui.widgets.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult
    from textual.binding import BindingType
    from textual.geometry import Size

    from verl_tui.tui.screens.help.sections import KeySection
    from verl_tui.tui.widgets.role_styled import Looks


_COLUMNS = 130
"""Columns of a screen from which on the help has two columns."""


class HelpRows(Rows):
    """The rows of the help."""

    LOOKS: ClassVar[Looks] = {**Rows.LOOKS, "strong": "bold", "dim": "$text-muted"}


class HelpScreen(BufferedScreen[None], ModalScreen[None]):
    """A list of all keys: of the screen in front, everywhere, then place by place."""

    BINDINGS: ClassVar[list[BindingType]] = [
        act("escape,q,question_mark", "back", "help.back", "Back"),
        act("slash", "search", "help.search", "Search the keys"),
    ]
    DEFAULT_CSS = """
    HelpScreen {
        align: center middle;
        /* The dashboard behind it would be blended row by row: half of the work. */
        background: $background;
        & > Container {
            width: 84;
            max-width: 100%;
            height: 90%;
            border: round $accent;
            border-title-color: $accent;
            background: $surface;
            padding: 0 1;
        }
        &.-columns > Container { width: 168; }
        &.-narrow > Container { height: 100%; }
        &.-line > Container { border: none; height: 100%; }
    }
    """

    def compose(self) -> ComposeResult:
        """A frame with scrolling rows."""
        with Container() as frame:
            frame.border_title = "keys"
            yield HelpRows(id="help")
            yield FilterBar(id="help-bar", input_id="help-search")

    def on_mount(self) -> None:
        """Listen to the keys at once."""
        self.query(FilterBar).set(display=False)
        self.query(Rows).focus()  # none where the app ends meanwhile

    def fit(self, size: Size) -> None:
        """Take room for two columns where there is some."""
        if (size.width >= _COLUMNS) != self.has_class("-columns"):
            self.set_class(size.width >= _COLUMNS, "-columns", update=False)
            if self.is_mounted:
                for node in (self, *self.children):
                    self.app.stylesheet.apply(node)

    def action_search(self) -> None:
        """Ask for words to look for."""
        bar = self.query_one(FilterBar)
        bar.open("search the keys: ", bar.input.value)
        bar.state(f"{self._key('help.back')} leaves")

    def action_back(self) -> None:
        """Leave the search, or the help."""
        bar = self.query_one(FilterBar)
        if not bar.display:
            self.dismiss()
            return
        bar.display = False
        bar.input.value = ""
        self.query(Rows).focus()

    @on(Input.Changed)
    def _searched(self) -> None:
        self.redraw()

    @on(Input.Submitted)
    def _kept(self) -> None:
        self.query(Rows).focus()

    def redraw(self) -> None:
        """Fill the rows."""
        rows = self.query_one_optional(Rows)
        if rows is None:
            return  # the app is ending
        room = rows.size.width
        edge = [
            f"{self._key('help.search')} searches",
            f"{self._key('help.back')} closes",
            "the names are for [keys] in the configuration",
        ]
        words = " · ".join(edge if room > ROOMY else edge[:2])
        self.query_one(Container).border_subtitle = Content(words)
        bar = self.query_one(FilterBar)
        wanted = bar.input.value.strip()
        every = sections(self.app)
        found = [one for one in (one.with_words(wanted) for one in every) if one.lines]
        if bar.display:
            counts = Matches(_lines(found), _lines(every))
            bar.say({"lines": counts}, escape=self._key("help.back"))
        # One cell is the scroll bar's, which there always is but on the tallest of screens.
        columns = 2 if room >= 2 * ROOMY + GAP + 1 else 1
        width = max(1, (room - 1 - GAP * (columns - 1)) // columns)
        rows.set_strips([rows.inked(line) for line in help_rows(found, width, columns)])
        if wanted:
            rows.scroll_home(animate=False)

    def _key(self, name: str) -> str:
        """Return the first key of an action of the help, as people call it."""
        return first_keys(self.app, (HelpScreen,), name)


def _lines(sections: Sequence[KeySection]) -> int:
    """Return the number of lines in sections, without their headings."""
    return sum(section.lines for section in sections)

"""All keys, from the same declarations that make them work."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from textual.binding import Binding
from textual.containers import Container
from textual.content import Content
from textual.screen import ModalScreen
from textual.strip import Strip

from verl_tui.tui.screens.help.rows import ROOMY, help_rows
from verl_tui.tui.terminal.buffered_screen import BufferedScreen
from verl_tui.tui.terminal.lazy_strips import LazyStrips
from verl_tui.tui.widgets.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult
    from textual.binding import BindingType

    from verl_tui.tui.screens.help.rows import HelpRow


class HelpScreen(BufferedScreen[None], ModalScreen[None]):
    """A list of all keys: of the screen in front, everywhere, then place by place."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark", "dismiss", "Back", show=False)
    ]
    DEFAULT_CSS = """
    HelpScreen {
        align: center middle;
        /* The dashboard behind it would be blended row by row: half of the work. */
        background: $background;
        &:ansi { background: ansi_default; }
        & > Container {
            width: 84;
            max-width: 100%;
            height: 90%;
            border: round $accent;
            border-title-color: $accent;
            background: $surface;
            padding: 0 1;
        }
        &.-narrow > Container { height: 100%; }
        &.-line > Container, &.-pair > Container { border: none; height: 100%; }
    }
    """

    def compose(self) -> ComposeResult:
        """A frame with scrolling rows."""
        with Container() as frame:
            frame.border_title = "keys"
            yield Rows(id="help")

    def on_mount(self) -> None:
        """Listen to the keys at once."""
        self.query(Rows).focus()  # none where the app ends meanwhile

    def redraw(self) -> None:
        """Fill the rows: those in sight, and once the screen is seen all of them."""
        if (rows := self.query_one_optional(Rows)) is None:
            return  # the app is ending
        names = (
            " · the names are for [keys] in the configuration" if rows.size.width > ROOMY else ""
        )
        self.query_one(Container).border_subtitle = Content(f"esc closes{names}")
        # One cell is the scroll bar's, which there always is but on the tallest of screens.
        lines = help_rows(self.app, max(1, rows.size.width - 1))
        if rows.virtual_size.height:
            _fill(rows, list(lines))
        else:
            first = list(islice(lines, rows.size.height))
            _fill(rows, first)
            self.call_later(lambda: _fill(rows, [*first, *lines]))


def _fill(rows: Rows, lines: Sequence[HelpRow]) -> None:
    rows.set_strips(
        LazyStrips(len(lines), lambda at: Strip([Segment(*piece) for piece in lines[at]]))
    )

"""All findings that were ever raised about the shown run, over the dashboard."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding

from verl_tui.rendering.history_rows import caption, episode_name, history_rows
from verl_tui.tui.keys.help_section import HelpSection
from verl_tui.tui.keys.tasks import WHY
from verl_tui.tui.panels.panel import TextPanel
from verl_tui.tui.screens.overlay import Overlay
from verl_tui.tui.widgets.entries import Entries

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import BindingType

    from verl_tui.health.finding import Episode
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.tui.widgets.role_styled import Looks


class HistoryPanel(TextPanel):
    """Episodes of the shown run, the newest first."""

    TITLE = "finding history"
    LOOKS: ClassVar[Looks] = {
        "critical": "bold $text-error",
        "warning": "bold $text-warning",
        "info": "$text-primary",
        "text": "$foreground",
        "dim": "$text-muted",
    }
    DEFAULT_CSS = """
    HistoryPanel {
        border: round $accent;
        background: $surface;
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self._rows = Entries()
        self._view: View | None = None
        self.episodes: tuple[Episode, ...] = ()
        """The entries listed, in this order."""
        self._chosen: tuple[object, ...] | None = None
        """Name of the chosen episode: newer ones push it down."""

    def compose(self) -> ComposeResult:
        """Make the rows."""
        yield self._rows

    def show(self, view: View) -> None:
        """List the episodes so far."""
        self._view = view
        self.episodes = tuple(reversed(view.verdict.history))
        self.redraw()

    def chosen(self) -> Episode | None:
        """Return the chosen episode, the newest if none was chosen; None if there is none."""
        entry = self._rows.entry if self._rows.entry is not None else 0
        if entry < len(self.episodes):
            return self.episodes[entry]
        return None

    def on_rows_chosen(self, message: Entries.Chosen) -> None:
        """Remember the episode that the user chose."""
        message.stop()
        episode = self.chosen()
        self._chosen = episode_name(episode) if episode is not None else None

    def redraw(self) -> None:
        """Write the rows of what was shown last."""
        view = self._view
        width = self._rows.size.width
        if view is None or width < 1:
            return
        rows, starts = history_rows(view, self.episodes, width)
        self._rows.set_entries(self.strips(rows), starts, len(rows) if starts else 0)
        self._choose_again()
        self.subtitle(caption(self.episodes))

    def _choose_again(self) -> None:
        """Mark the chosen episode where it is listed now, the newest one if it is gone."""
        names = [episode_name(episode) for episode in self.episodes]
        at = names.index(self._chosen) if self._chosen in names else 0
        self._chosen = names[at] if names else None
        self._rows.choose(at if names else None)


class HistoryScreen(Overlay["Episode | None"]):
    """The finding history over the dashboard; returns the episode that the user opened, if any."""

    HELP_SECTION = HelpSection("finding history", (Overlay,), rank=90, task=WHY)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,A", "dismiss", "Close", id="history.close")
    ]
    EDGE = (("entries.open", "goes there"), ("history.close", "closes"))
    WIDEST = 140

    _panel: HistoryPanel

    def __init__(self, view: View | None = None) -> None:
        super().__init__(HistoryPanel(), view)

    def draw(self, view: View) -> None:
        """Write the title and list the episodes."""
        self.entitle(self.edge(self._panel.TITLE))
        self._panel.show(view)

    def on_entries_opened(self, message: Entries.Opened) -> None:
        """Close and return the chosen episode."""
        message.stop()
        self.dismiss(self._panel.chosen())

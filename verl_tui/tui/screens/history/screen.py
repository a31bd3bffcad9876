"""All that was ever found about the shown run: raised, cleared, acknowledged."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding

from verl_tui.health.finding import Severity
from verl_tui.rendering.text.printable import middle, wrapped
from verl_tui.tui.keys.help_section import HelpSection
from verl_tui.tui.panels.panel import TextPanel
from verl_tui.tui.screens.overlay import Overlay
from verl_tui.tui.widgets.entries import Entries

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import BindingType

    from verl_tui.health.finding import Episode
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.rendering.text.piece import Pieces

_ROLES = ("critical", "warning", "info", "text", "dim")
_MARKS = {Severity.CRITICAL: ("✖", "X"), Severity.WARNING: ("▲", "!"), Severity.INFO: ("•", "i")}


class HistoryPanel(TextPanel):
    """Episodes of the shown run, the newest first."""

    TITLE = "finding history"
    PREFIX = "history"
    STYLED_ROLES = _ROLES
    DEFAULT_CSS = """
    HistoryPanel {
        border: round $accent;
        background: $surface;
        & > .history--critical { color: $text-error; text-style: bold; }
        & > .history--warning { color: $text-warning; text-style: bold; }
        & > .history--info { color: $text-primary; }
        & > .history--text { color: $foreground; }
        & > .history--dim { color: $text-muted; }
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self._rows = Entries()
        self._view: View | None = None
        self.episodes: tuple[Episode, ...] = ()
        """What is listed, in this order."""
        self._chosen: tuple[object, ...] | None = None
        """Which episode is chosen: newer ones push it down."""

    def compose(self) -> ComposeResult:
        """Make the rows."""
        yield self._rows

    def show(self, view: View) -> None:
        """List what has happened so far."""
        self._view = view
        self.episodes = tuple(reversed(view.verdict.history))
        self.redraw()

    def chosen(self) -> Episode | None:
        """Return the episode that the user has chosen, the newest if none."""
        entry = self._rows.entry if self._rows.entry is not None else 0
        return self.episodes[entry] if entry < len(self.episodes) else None

    def on_rows_chosen(self, message: Entries.Chosen) -> None:
        """Stay with what the user chose."""
        message.stop()
        episode = self.chosen()
        self._chosen = _name(episode) if episode is not None else None

    def redraw(self) -> None:
        """Write the rows of what was shown last."""
        view, width = self._view, self._rows.size.width
        if view is None or width < 1:
            return
        lines: list[Pieces] = []
        heads: list[int] = []
        for episode in self.episodes:
            heads.append(len(lines))
            known = view.run is not None and view.acknowledgements.marked(view.run.name, episode)
            lines += _entry(episode, width - 1, known=known, ascii_only=view.ascii)
        if not lines:
            words = "nothing was found so far" if view.run is not None else "no run yet"
            lines = [[(part, "dim")] for part in wrapped(words, width)]
        self._rows.set_entries(self.strips(lines), heads, len(lines) if heads else 0)
        names = [_name(episode) for episode in self.episodes]
        at = names.index(self._chosen) if self._chosen in names else 0
        self._chosen = names[at] if names else None
        self._rows.choose(at if names else None)
        lasting = sum(episode.cleared_step is None for episode in self.episodes)
        self.subtitle(f"{len(self.episodes)} raised, {lasting} lasting" if self.episodes else "")


class HistoryScreen(Overlay["Episode | None"]):
    """The history of findings over the dashboard; ends with the episode that the user wants to see,
    if any.
    """

    HELP_SECTION = HelpSection("finding history", (Overlay,), rank=90)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,A", "dismiss", "Close", id="history.close")
    ]
    WIDEST = 140

    _panel: HistoryPanel

    def __init__(self, view: View | None = None) -> None:
        super().__init__(HistoryPanel(), view)

    def draw(self, view: View) -> None:
        """List what has happened so far."""
        keys = " · enter goes there · esc closes" if self.has_class("-wide") else ""
        self.entitle(f"{self._panel.TITLE}{keys}")
        self._panel.show(view)

    def on_entries_opened(self, message: Entries.Opened) -> None:
        """Close, and say which episode was chosen."""
        message.stop()
        self.dismiss(self._panel.chosen())


def _name(episode: Episode) -> tuple[object, ...]:
    """Return what stays the same when an episode is cleared."""
    return episode.id, episode.key, episode.since_step, episode.raised_step


def _entry(episode: Episode, width: int, *, known: bool, ascii_only: bool) -> list[Pieces]:
    role = "dim" if known or episode.cleared_step is not None else episode.severity.word
    mark = _MARKS[episode.severity][ascii_only]
    steps = [] if episode.since_step is None else [f"since step {episode.since_step}"]
    steps += [] if episode.raised_step is None else [f"raised at step {episode.raised_step}"]
    steps.append(
        "lasting" if episode.cleared_step is None else f"cleared at step {episode.cleared_step}"
    )
    steps += ["acknowledged"] if known else []
    told = (" - " if ascii_only else " · ").join(steps)
    rows: list[Pieces] = [[(f"{mark} ", role), (middle(episode.id, width - 2), role)]]
    rows += [
        [("  ", ""), (part, "dim")] for part in wrapped(told, width - 2, ascii_only=ascii_only)
    ]
    words = wrapped(episode.message, width - 2, ascii_only=ascii_only)
    return [*rows, *([("  ", ""), (part, "dim" if known else "text")] for part in words)]

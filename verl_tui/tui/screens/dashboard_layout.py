"""How the panels share the main screen: which are in sight, which fills it, which has the focus."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar

from rich.cells import cell_len
from textual.geometry import NULL_OFFSET, NULL_SPACING, Region, Size
from textual.layout import Layout, WidgetPlacement

from verl_tui.means import next_of
from verl_tui.rendering.arrange import LOW, NARROW, Need, Room, arrange, cells_for
from verl_tui.rendering.status_line import status
from verl_tui.rendering.verdict_row import verdict_rows
from verl_tui.tui.keys import actions, declaring
from verl_tui.tui.panels.charts import ChartsPanel
from verl_tui.tui.panels.panel import NOTHING, Panel
from verl_tui.tui.panels.runs import BESIDE
from verl_tui.tui.panels.samples import SamplesPanel
from verl_tui.tui.terminal.buffered_screen import BufferedScreen
from verl_tui.tui.widgets.filter_bar import FilterBar, Keys
from verl_tui.tui.widgets.rows import Entries, Line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from textual import events
    from textual.app import ComposeResult
    from textual.widget import Widget

    from verl_tui.rendering.session.snapshot import View

_KINDS: list[type[Panel]] = declaring("verl_tui.tui.panels", "PANEL")
_KINDS.sort(key=lambda kind: (kind.PANEL.rank, kind.PANEL.name))
PANELS = [kind.PANEL for kind in _KINDS]
"""The panels of the dashboard, in the reading order of the wide layout."""
_Panel = TypeVar("_Panel", bound=Panel)
_FEW = 2
"""Rows in which a panel is hardly in sight, unless that is all it has to show."""


class Placed(Layout):
    """Places widgets by their names."""

    name = "placed"

    def __init__(self) -> None:
        self.rooms: Mapping[str, Room] = {}
        """Name of a widget -> its place."""

    def arrange(
        self,
        parent: Widget,
        children: Sequence[Widget],
        size: Size,
        greedy: bool = True,
    ) -> list[WidgetPlacement]:
        """Return the place of each widget that has one."""
        rooms = self.rooms
        return [
            WidgetPlacement(
                Region(*rooms[child.id or ""][:4]), NULL_OFFSET, NULL_SPACING, child
            )
            for child in children
            if child.id in rooms
        ]


class VerdictRow(Entries):
    """The verdict, which opens why it is so."""

    DEFAULT_CSS = "VerdictRow { padding: 0 1; overflow: hidden hidden; }"
    FOOTER = "entries.open  Why"

    def watch_has_focus(self, has_focus: bool) -> None:
        """Mark it as chosen while it has the focus."""
        self.choose(0 if has_focus else None)

    def action_open(self) -> None:
        """Say why it is so."""
        self.call_later(self.app.run_action, "open_screen('explain')")

    def on_click(self, _event: events.Click) -> None:
        """Open it at once."""
        self.action_open()


class DashboardLayout(BufferedScreen):
    """The panels of one run, arranged by the space there is."""

    AUTO_FOCUS = ""
    MAY_FAIL = False
    ORDER = tuple(
        spec.name for spec in sorted(PANELS, key=lambda one: (one.tab, one.name))
    )
    """Panels in the order of the tab key."""
    BINDINGS = actions(
        """
        tab        next_panel(1)   panel.next      Next panel
        shift+tab  next_panel(-1)  panel.previous  Previous panel
        z          zoom            panel.zoom      Zoom panel
        """,
        "\n".join(
            f"{one.key}  show_panel('{one.name}')  panel.{one.name}  {one.words}"
            for one in PANELS
        ),
    )
    DEFAULT_CSS = """
    DashboardLayout {
        & > #status { background: $panel; padding: 0 1; }
        & > .-narrow { padding: 0; }
    }
    """

    view: View = NOTHING
    """What is shown."""
    _most_of: object = None
    _front = ""
    """Name of the panel that fills the screen."""

    def __init__(self) -> None:
        super().__init__(id="dashboard")
        self.panels = [kind(id=kind.PANEL.name) for kind in _KINDS]
        """All panels, in sight or not."""
        self._status = Line(id="status")
        self._verdict = VerdictRow(id="verdict")
        self.bar = FilterBar(id="filter-bar")
        self._rooms = Placed()
        self.styles.set_rule("layout", self._rooms)
        self._most: dict[str, int] = {}
        """The most rows that each panel has needed for one run, at one size: panels only grow, so
        that the screen does not jump with every finding that comes and goes.
        """

    def compose(self) -> ComposeResult:
        """Where each stands is worked out when there is something to show."""
        yield self._status
        yield self._verdict
        yield from self.panels
        yield self.bar
        yield Keys(id="keys")

    def panel(self, kind: type[_Panel]) -> _Panel:
        """Return the panel of a kind."""
        return next(one for one in self.panels if isinstance(one, kind))

    def show(self, view: View) -> None:
        """Draw the newest state of all panels in sight; behind a screen when that closes."""
        self.view = view
        # Behind a screen nothing is drawn: for one row that shines through Textual writes all
        # again.
        if self.app.screen is self:
            self.redraw()

    def redraw(self) -> None:
        """Draw what was shown last, at another size also behind the screen in front."""
        if self.view is NOTHING or not self.children:
            return  # too early, or the app is ending
        self.attempt(self._show_status)
        if not self.fit_rooms():
            self._show_panels(self.panels)

    def _show_status(self) -> None:
        verdict, line = self._verdict, self._status
        width = line.size.width or self.size.width
        line.show(*status(self.view, width, alone=not verdict.display))
        if verdict.display and verdict.size.width:
            verdict.set(verdict_rows(self.view, *verdict.size), (0,))

    def _show_panels(self, panels: Sequence[Panel]) -> None:
        for panel in panels:
            if panel.display:
                panel.attempt(panel.show, self.view)

    def show_samples(self, view: View) -> None:
        """Draw the samples alone, as more have been read; they may need more room now."""
        self.view = view
        self._show_panels([self.panel(SamplesPanel)])
        self.fit_rooms()

    # -- how the panels share the screen -----------------------------------------------------------

    def fit_rooms(self) -> bool:
        """Give each part of the screen the room that suits what there is to show; return whether
        any room has changed: then everything is drawn, resized charts in the layout that follows.
        """
        size = self.app.size
        names = max(map(cell_len, self.view.monitor.runs), default=0) + BESIDE
        foot = "filter-bar" if self.bar.display else "keys"
        rooms = arrange(
            self._needs(), *size, names=names, zoomed=self._front, foot=foot
        )
        if rooms == self._rooms.rooms:
            return False
        self._rooms.rooms = rooms
        for child in self.children:
            self._place(child, rooms.get(child.id or ""))
        for panel in self.panels:
            panel.due = rooms.get(panel.PANEL.name, ())[2:4]
        self.refresh(layout=True)
        charts = self.panel(ChartsPanel)
        if charts.display:  # else the layout would draw those of the view before
            charts.attempt(partial(charts.show, self.view, in_layout=True))
        self._show_panels(self.panels)
        self.call_after_refresh(self.attempt, self._show_status)
        return True

    def _needs(self) -> dict[str, Need]:
        """Ask each panel how many rows there are to show."""
        view, size = self.view, self.app.size
        of = view.run and view.run.name, size
        other = of != self._most_of
        if other:
            self._most_of, self._most = of, {}
        needs: dict[str, Need] = {}
        for panel in self.panels:
            if other and panel.failed:  # it may do with another run, or at another size
                panel.fail("")
                self.call_after_refresh(self.redraw)
            name, charts = panel.PANEL.name, panel.PANEL.name == "charts"
            room = cells_for(name, size.width) - 2, size.height - 2
            rows = panel.attempt(panel.needed, view, *room, otherwise=int(not charts))
            # a second step makes charts of rows, and what says nothing more goes at once
            if rows and not charts:
                rows = max(rows, self._most.get(name, 0))
            self._most[name] = rows
            needs[name] = Need(rows, panel.PANEL.share, panel.PANEL.least)
        return needs

    def _place(self, child: Widget, room: Room | None) -> None:
        """Have a part look as its place in the layout asks for; one without a place is gone."""
        child.display = room is not None
        if not room:
            return
        width, height = self.app.size
        looks = {
            "-narrow": width < NARROW or height < LOW,
            "-bare": not room.framed,
            "-zoomed": child.id == self._front,
        }
        if any(child.has_class(name) is not on for name, on in looks.items()):
            for name, on in looks.items():
                child.set_class(on, name, update=False)
            # To the part itself only: what is in it looks the same.
            self.app.stylesheet.apply(child)

    @property
    def zoomed(self) -> Panel | None:
        """The panel that fills the screen, None where several share it."""
        return next((one for one in self.panels if one.id == self._front), None)

    def rows_of(self, panel: Panel) -> int:
        """Return the rows that a panel has, or has as soon as it is drawn."""
        room = self._rooms.rooms.get(panel.PANEL.name)
        return room.height - 2 * room.framed if room else 0

    def _is_in_sight(self, panel: Panel) -> bool:
        """Return whether a panel shows enough of itself."""
        shown = self.rows_of(panel)
        whole = not panel.ABRIDGED and 0 < self._most.get(panel.PANEL.name, 0) <= shown
        return shown > _FEW or whole

    @property
    def focused_panel(self) -> Panel | None:
        """The panel that has the focus, or something in it."""
        return next((one for one in self.panels if one.has_focus_within), None)

    def action_next_panel(self, way: int) -> None:
        """Focus the next panel with something to show; one that is out of sight fills the
        screen.
        """
        current = self.zoomed or self.focused_panel
        name = current.PANEL.name if current else ""
        order = [
            one for one in self.ORDER if one in (name, "charts") or self._most.get(one)
        ]
        order += ["verdict"] * (self._verdict.display and self.zoomed is None)
        name = "verdict" if self._verdict.has_focus else name
        self.action_show_panel(next_of(order, name, way))

    def action_show_panel(self, name: str) -> None:
        """Bring a panel to the front and give it the focus."""
        if name == "verdict":
            self.set_focus(self._verdict)
            return
        panel = self.query_one(f"#{name}", Panel)
        if not self.zoomed and self._is_in_sight(panel):
            self._focus_in(panel)
            return
        self._zoom(panel)
        self.call_after_refresh(self._focus_in, panel)

    def _focus_in(self, panel: Panel) -> None:
        inner = next((widget for widget in panel.query("*") if widget.focusable), None)
        if inner:
            self.set_focus(inner, scroll_visible=False)

    def action_zoom(self) -> None:
        """Let the focused panel fill the screen, or give the others their room back."""
        panel = self.focused_panel or self.panel(ChartsPanel)
        self._zoom(None if self.zoomed else panel)

    def _zoom(self, panel: Panel | None) -> None:
        """Let a panel fill the screen, or give all their room back."""
        self._front = panel.PANEL.name if panel else ""
        self.fit_rooms()

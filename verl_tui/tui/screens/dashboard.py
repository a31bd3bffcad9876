"""The main screen: runs, charts, health, GPUs and samples, arranged by the space there is."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import Binding
from textual.widgets import Input

from verl_tui.tui.actions import bindings, keys_of
from verl_tui.tui.cursor import CursorMoved
from verl_tui.tui.panels import looking
from verl_tui.tui.panels.charts import ChartsPanel
from verl_tui.tui.panels.gpus import GpusPanel
from verl_tui.tui.panels.health import HealthPanel
from verl_tui.tui.panels.panel import Panel
from verl_tui.tui.panels.runs import RunsPanel
from verl_tui.tui.panels.samples import SamplesPanel
from verl_tui.tui.screens.status import status
from verl_tui.tui.screens.still import StillScreen
from verl_tui.tui.widgets.box import Box
from verl_tui.tui.widgets.chart import Chart
from verl_tui.tui.widgets.footer import Keys
from verl_tui.tui.widgets.hint import Hint
from verl_tui.tui.widgets.line import Line
from verl_tui.tui.widgets.words import printable
from verl_tui.tui.widgets.wrap import fit

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import BindingType

    from verl_tui.health.finding import Episode, Finding
    from verl_tui.tui.panels.chart_plan import Look
    from verl_tui.tui.view import View


_FIRST = (
    ("help", "help"),
    ("panel.next", "next panel"),
    ("chart.zoom", "zoom"),
    ("run.previous", "previous run"),
    ("run.next", "next run"),
    ("metrics", "all metrics"),
)
"""Keys to know at the first start, by their names in the configuration."""


_RUNS = {"-wide": (26, 40), "-huge": (34, 56)}
"""Cells of the run list at the left, by layout: usually, and at most where names need them."""
_SIDES = {"-wide": 36, "-huge": 48}
"""Cells of health and GPUs at the right."""
_FILTERED = ("runs", "charts")
"""Panels that can be filtered."""
_CHARTS = 64
"""Cells that are left to the charts: two columns."""


class Dashboard(StillScreen[None]):
    """Everything about the shown run at a glance. Which panels are in sight is decided by the stylesheet alone."""

    AUTO_FOCUS = ""
    ORDER = ("charts", "health", "samples", "gpus", "runs")
    """Panels in the order of the tab key."""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "next_panel(1)", "Next panel", id="panel.next"),
        Binding("shift+tab", "next_panel(-1)", "Previous panel", show=False, id="panel.previous"),
        Binding("z", "zoom", "Zoom panel", id="panel.zoom"),
        Binding("enter", "open", "Full screen: the focused chart or panel", show=False, id="chart.zoom"),
        Binding("escape", "back", "Back", show=False, id="back"),
        Binding("left_square_bracket", "switch_run(-1)", "Previous run", show=False, id="run.previous"),
        Binding("right_square_bracket", "switch_run(1)", "Next run", key_display="[ ]", id="run.next"),
        *(Binding(str(n), f"pick_run({n})", f"Run {n}", show=False, id=f"run.{n}") for n in range(1, 10)),
        Binding("f2", "show_panel('runs')", "Runs", show=False, id="panel.runs"),
        Binding("f3", "show_panel('charts')", "Charts", show=False, id="panel.charts"),
        Binding("f4", "show_panel('health')", "Health", show=False, id="panel.health"),
        Binding("f5", "show_panel('gpus')", "GPUs", show=False, id="panel.gpus"),
        Binding("f6", "show_panel('samples')", "Samples", show=False, id="panel.samples"),
        Binding("e", "finding(1)", "Next finding", id="finding.next"),
        Binding("E", "finding(-1)", "Previous finding", show=False, id="finding.previous"),
        Binding("a", "acknowledge", "Acknowledge finding (this session)", show=False, id="finding.acknowledge"),
        *looking.KEYS,
        looking.TABLE,
        Binding("0", "reset", "Reset the view", show=False, id="look.reset"),
        Binding("slash", "filter", "Filter", key_display="/", id="filter"),
        # While nothing has the focus the charts' own keys mean them; the help has these among theirs.
        Binding("j,down", "charts('step', 1)", show=False, id="chart.next"),
        Binding("k,up", "charts('step', -1)", show=False, id="chart.previous"),
        Binding("pagedown", "charts('page', 1)", show=False, id="chart.page_down"),
        Binding("pageup", "charts('page', -1)", show=False, id="chart.page_up"),
    ]
    DEFAULT_CSS = """
    Dashboard {
        overflow: hidden hidden;
        layout: grid;
        grid-gutter: 0;
        & > #status { dock: top; background: $panel; padding: 0 1; }
        & > #filter { dock: bottom; height: 1; border: none; padding: 0 1; display: none; }
        &.-filtering > #filter { display: block; }
        &.-filtering > Keys, &.-welcoming > Keys { display: none; }
        & > #hint { dock: bottom; display: none; }
        &.-welcoming > #hint { display: block; }
        &.-filtering > #hint { display: none; }

        &.-wide, &.-huge {
            grid-size: 3 3;
            grid-columns: 26 1fr 36;
            grid-rows: 5fr 2fr 3fr;
            & > #runs { row-span: 2; }
            & > #charts { row-span: 2; }
            & > #samples { column-span: 3; }
        }
        &.-huge { grid-columns: 34 1fr 48; }
        &.-wide.-low, &.-wide.-flat, &.-huge.-low, &.-huge.-flat {
            grid-size: 3 2;
            grid-rows: 2fr 1fr;
            & > #samples { display: none; }
        }
        &.-medium {
            grid-size: 1 2;
            grid-rows: 1fr 8;
            & > #runs, & > #gpus, & > #samples { display: none; }
        }
        &.-medium.-tall {
            grid-size: 1 3;
            grid-rows: 2fr 9 1fr;
            & > #samples { display: block; }
        }
        &.-medium.-low { grid-rows: 1fr 6; }
        &.-medium.-flat { grid-rows: 1fr 3; }
        &.-narrow {
            grid-size: 1 2;
            grid-rows: 1fr 2;
            & > #status { padding: 0; }
            & > Keys { display: none; }
            & > #runs, & > #samples, & > #gpus { display: none; }
            & > Panel { border: none; }
        }
        &.-narrow.-gpus {
            grid-size: 1 3;
            grid-rows: 1fr 2 3;
            & > #gpus { display: block; }
        }
        &.-narrow.-flat.-gpus { grid-rows: 1fr 1 2; }
        &.-tiny, &.-pair, &.-line {
            layout: vertical;
            & > #status { padding: 0; }
            & > Panel { display: none; border: none; }
            & > #charts { display: block; height: 1fr; }
            & > Keys { display: none; }
        }
        &.-tiny.-narrow > #health { display: block; height: 1; }
        &.-tiny.-narrow.-gpus > #gpus, &.-pair.-narrow.-gpus > #gpus, &.-line.-narrow.-gpus > #gpus { display: none; }
        &.-line > #charts { display: none; }
        &.-narrow > #hint, &.-tiny > #hint, &.-pair > #hint, &.-line > #hint { display: none !important; }
        &.-line.-zoomed > #status, &.-line.-filtering > #status { display: none; }
        &.-zoomed {
            layout: vertical !important;
            & > Panel { display: none !important; }
            & > Panel.-zoomed {
                display: block !important;
                height: 1fr !important;
            }
        }
    }
    """

    def __init__(self) -> None:
        super().__init__(id="dashboard")
        self._view: View | None = None
        self._filtered: tuple[str, ...] = _FILTERED
        """Panels that what is typed as a filter is meant for."""
        self._columns = ""
        """How wide the columns of a wide layout are, empty where they are as usual."""

    def compose(self) -> ComposeResult:
        """The order is the reading order of the wide layout; the stylesheet places it."""
        yield Line(id="status")
        yield RunsPanel(id="runs")
        yield ChartsPanel(id="charts")
        yield HealthPanel(id="health")
        yield GpusPanel(id="gpus")
        yield SamplesPanel(id="samples")
        yield Box("filter runs and metrics · enter keeps, esc clears", id="filter")
        yield Hint(id="hint")
        yield Keys()

    def show(self, view: View) -> None:
        """Draw the newest state in every panel that is in sight; behind a screen when that closes.

        Of another run the charts come a frame later: they take as long as all else, and whoever goes from run to run
        sees at once where that leads.
        """
        switched = self._view is not None and self._view.run is not None and view.run is not self._view.run
        self._view = view
        if self.app.screen is not self:
            return  # a row that shines through costs all rows: Textual writes the screen in front anew
        if not self.query("#status"):
            return  # the app is ending
        alone = not self.query_one(HealthPanel).display and self.zoomed is None
        line = self.query_one("#status", Line)
        line.show(*status(view, line.size.width or self.size.width, alone=alone))
        # Nothing is known of GPUs in most side panes: no room is given to saying so.
        known = bool(view.monitor.gpus and view.monitor.gpus.gpus)
        if known != self.has_class("-gpus"):
            self._arrange("-gpus", on=known)
            self._after_layout()
        self._give_names_room(view)
        for panel in self.query(Panel):
            panel.set_class(view.ascii, "-ascii")
            if panel.display and not (switched and isinstance(panel, ChartsPanel)):
                panel.show(view)
        if switched:
            self.call_after_refresh(self._show_charts)

    def _give_names_room(self, view: View) -> None:
        """Make the run list as wide as names need, as far as the charts can spare it."""
        layout = next(filter(self.has_class, _RUNS), None)
        columns = ""
        if layout is not None:
            (usual, most), side = _RUNS[layout], _SIDES[layout]
            wide = min(self.query_one(RunsPanel).wanted(view), most, self.size.width - side - _CHARTS)
            columns = f"{wide} 1fr {side}" if wide > usual else ""
        if columns != self._columns:
            self._columns = columns
            if columns:
                self.styles.grid_columns = columns
            else:
                self.styles.clear_rule("grid_columns")
            self._after_layout()

    def _show_charts(self) -> None:
        charts = self.query_one(ChartsPanel)
        if charts.display and self._view is not None:
            charts.show(self._view)

    def show_samples(self, view: View) -> None:
        """Draw the samples, and nothing else: more of them has been read."""
        panel = self.query_one(SamplesPanel)
        if panel.display:
            panel.show(view)

    def on_screen_resume(self) -> None:
        """Draw what has changed while another screen was in front."""
        self._again()

    def welcome(self) -> None:
        """Say what the first keys to know are, until some have been pressed."""
        named = {one.id: one for kind in (type(self.app), type(self)) for one in bindings(kind)}
        known = ((keys_of(self.app, named[id]), does) for id, does in _FIRST)
        self.query_one(Hint).say([*known, ("ctrl+p", "everything by name")])
        self._arrange("-welcoming", on=True)

    def on_key(self) -> None:
        """Take the first keys to know away once some have been pressed."""
        if self.has_class("-welcoming") and self.query_one(Hint).pressed():
            self._arrange("-welcoming", on=False)

    def on_resize(self) -> None:
        """Draw panels that have come into sight."""
        self._after_layout()

    def _after_layout(self) -> None:
        """Draw panels that come into sight: which do is known when the stylesheet has been applied."""
        self.call_after_refresh(self._again)

    def _again(self) -> None:
        if self._view is not None:
            self.show(self._view)

    # -- panels ---------------------------------------------------------------------------------------------------

    @property
    def zoomed(self) -> Panel | None:
        """The panel that fills the screen, None where several share it."""
        return next(iter(self.query("Panel.-zoomed").results(Panel)), None)

    def _focused_panel(self) -> Panel | None:
        return next((p for p in (self.focused.ancestors if self.focused else ()) if isinstance(p, Panel)), None)

    def action_next_panel(self, way: int) -> None:
        """Focus the next panel; one that is out of sight fills the screen."""
        current = self.zoomed or self._focused_panel()
        at = (
            self.ORDER.index(current.id) if current is not None and current.id in self.ORDER else (-1 if way > 0 else 0)
        )
        self.action_show_panel(self.ORDER[(at + way) % len(self.ORDER)])

    def action_show_panel(self, name: str) -> None:
        """Bring a panel to the front and give it the focus."""
        panel = self.query_one(f"#{name}", Panel)
        zoomed = self.zoomed is not None
        self._zoom(None)
        if zoomed or not self._in_sight(panel):
            self._zoom(panel)
        self.call_after_refresh(self._focus_in, panel)

    def _in_sight(self, panel: Panel) -> bool:
        return bool(panel.display and panel.size.height > 2)

    def _focus_in(self, panel: Panel) -> None:
        inner = next((widget for widget in panel.query("*") if widget.focusable), None)
        if inner is not None:
            inner.focus(scroll_visible=False)

    def action_zoom(self) -> None:
        """Let the focused panel fill the screen, or give the others their room back."""
        if self.zoomed is not None:
            self._zoom(None)
        else:
            self._zoom(self._focused_panel() or self.query_one(ChartsPanel))

    def _zoom(self, panel: Panel | None) -> None:
        if panel is not self.zoomed:
            for other in self.query(Panel):
                other.set_class(other is panel, "-zoomed", update=False)
            self._arrange("-zoomed", on=panel is not None)
        self._after_layout()

    def _arrange(self, name: str, *, on: bool) -> None:
        """Arrange the panels otherwise by a class: none looks different within, so nothing in them is styled anew."""
        self.set_class(on, name, update=False)
        for node in (self, *self.children):
            self.app.stylesheet.apply(node)

    def action_open(self) -> None:
        """Let what has the focus have the full screen: a chart, another panel, else the chart that matters most.

        Lists that open what is chosen in them have the key before.
        """
        panel = self._focused_panel()
        if panel is not None and not isinstance(panel, ChartsPanel):
            self.action_zoom()
            return
        from verl_tui.tui.screens.zoom import ZoomScreen

        charts = self.query_one(ChartsPanel)
        found = charts.focused_plan()
        if found is not None and self._view is not None:
            zoomed = ZoomScreen(found, charts.look, self._view, charts.plans)

            def left(look: Look | None) -> None:
                charts.take_look(look)
                if zoomed.metric != found.key:
                    self._look_at(zoomed.metric, None)

            self.app.push_screen(zoomed, left)

    def action_back(self) -> None:
        """Undo the last of: filter, zoom, focus."""
        filtered = self.query_one(ChartsPanel).filter or self.query_one(RunsPanel).filter
        if self.has_class("-filtering"):
            self._close_filter()
            self._filter("", *self._filtered)
            if len(self._filtered) == 1:
                self.action_show_panel(*self._filtered)
        elif filtered:
            self._filter("")
        elif self.zoomed is not None:
            self._zoom(None)
        else:
            self.set_focus(None)

    # -- runs -----------------------------------------------------------------------------------------------------

    def action_switch_run(self, way: int) -> None:
        """Show the next or previous run."""
        view = self._view
        runs = self.query_one(RunsPanel).listed(view) if view is not None else []
        if runs and view is not None and view.run is not None:
            at = runs.index(view.run) if view.run in runs else -1 if way > 0 else 0
            self.post_message(RunsPanel.Picked(runs[(at + way) % len(runs)].name))

    @on(RunsPanel.Selected)
    def _selected(self) -> None:
        """Lay the curves of the selected runs over each other."""
        self._again()

    def action_pick_run(self, number: int) -> None:
        """Show the run of that number."""
        names = list(self._view.monitor.runs) if self._view else []
        if number <= len(names):
            self.post_message(RunsPanel.Picked(names[number - 1]))

    # -- looks, findings, filter ----------------------------------------------------------------------------------

    def action_look(self, what: str) -> None:
        """Change how charts are drawn."""
        charts = self.query_one(ChartsPanel)
        if what in ("earlier", "later") and charts.look.span is None:
            self._say("all steps are in sight: + zooms in")
        charts.change_look(what)

    def action_write_table(self) -> None:
        """Write the points of the focused chart, the first if none has the focus, to a file."""
        self.query_one(ChartsPanel).write_table()

    def clip(self) -> str:
        """Return what the chart says, where nothing else has the focus."""
        return self.query_one(ChartsPanel).clip()

    async def action_charts(self, what: str, way: int) -> None:
        """Turn to other charts though none has the focus."""
        await self.app.run_action(f"{what}({way})", self.query_one(ChartsPanel))

    def action_reset(self) -> None:
        """Go back to the usual look, no filter, no zoom, no cursor."""
        self._zoom(None)
        self._close_filter()
        self._filter("")
        self.query_one(ChartsPanel).change_look("reset")
        self.post_message(CursorMoved(None))

    def action_finding(self, way: int) -> None:
        """Choose the next finding and look at its step everywhere."""
        health = self._health()
        finding = health.choose_next(way)
        if finding is None:
            self._say("nothing found")
            return
        if not self._reads(health):
            self._say(f"{finding.id}: {finding.message}")
        self._follow(finding)

    @property
    def chosen_finding(self) -> Finding | None:
        """The finding that the user has chosen."""
        return self._health().chosen

    def _health(self) -> HealthPanel:
        """Return the panel of findings, up to date even where it is out of sight."""
        health = self.query_one(HealthPanel)
        if self._view is not None:
            health.show(self._view)
        return health

    def _reads(self, health: HealthPanel) -> bool:
        """Tell whether the message of the chosen finding can be read in the panel."""
        return bool(health.display and health.size.height > 1)

    def _say(self, sentence: str) -> None:
        """Say something in one line, in place of what was said before: keys may be pressed fast."""
        self.app.clear_notifications()
        mark = "~" if self._view is not None and self._view.ascii else "…"
        self.notify(fit(printable(sentence), max(12, self.size.width - 8), mark), timeout=4, markup=False)

    @on(HealthPanel.Followed)
    def _followed(self, event: HealthPanel.Followed) -> None:
        self._follow(event.finding)

    def _follow(self, finding: Finding) -> None:
        self._look_at(finding.key, finding.since_step if finding.since_step is not None else finding.step)

    def action_acknowledge(self) -> None:
        """Acknowledge the chosen finding wherever the focus is, or take that back; without a choice the first one."""
        health = self._health()
        finding, view = health.choose_shown(), self._view
        if finding is None or view is None or view.run is None:
            self._say("nothing found")
            return
        known = view.attention.toggle(view.run.name, finding)
        if not self._reads(health):
            self._say(f"{'' if known else 'no longer '}acknowledged: {finding.id}")
        self._again()

    def follow_episode(self, episode: Episode | None) -> None:
        """Look at the beginning of what was chosen in the history, if anything was."""
        if episode is not None:
            self._look_at(self._key(episode), episode.since_step)

    def _key(self, episode: Episode) -> str | None:
        """Return the metric of an episode; that of a diagnosis is known while it lasts."""
        found = self._view.verdict.findings if self._view is not None else ()
        same = (one.key for one in found if (one.id, one.since_step) == (episode.id, episode.since_step))
        return episode.key or next(same, None)

    def _look_at(self, key: str | None, step: int | None) -> None:
        """Take the charts and the samples to a step, and the charts to the metric, if one is named."""
        charts, view = self.query_one(ChartsPanel), self._view
        if key is not None and view is not None:
            charts.show(view)  # it may be out of sight
            if not charts.reveal(key) and charts.filter:
                self._filter("", "charts")
                charts.show(view)
                charts.reveal(key)
        if step is not None:
            self.query_one(SamplesPanel).go_to(step)
            self.post_message(CursorMoved(step))

    @on(Chart.CursorMoved)
    def _cursor(self, event: Chart.CursorMoved) -> None:
        step = event.step
        if step is not None:
            step = self.query_one(ChartsPanel).step_at(event.plot, step)
            if step is None:
                return  # nothing tells when its steps were
        self.post_message(CursorMoved(step))

    def action_filter(self) -> None:
        """Ask for a filter of the focused panel, of runs and metrics where neither list has the focus."""
        box, panel = self.query_one("#filter", Box), self._focused_panel()
        charts, runs = self.query_one(ChartsPanel), self.query_one(RunsPanel)
        self._filtered = (panel.id,) if panel is not None and panel.id in _FILTERED else _FILTERED
        what = " and ".join({"runs": "runs", "charts": "metrics"}[name] for name in self._filtered)
        box.hint(f"filter {what} · enter keeps, esc clears")
        with box.prevent(Input.Changed):
            box.value = runs.filter if self._filtered == ("runs",) else charts.filter
        # Shown at once, not when the stylesheet is applied next: whoever types fast loses no key.
        box.display = True
        self._arrange("-filtering", on=True)
        self.set_focus(box, scroll_visible=False)

    @on(Input.Changed, "#filter")
    def _filter_changed(self, event: Input.Changed) -> None:
        if self.has_class("-filtering"):
            self._filter(event.value, *self._filtered)

    @on(Input.Submitted, "#filter")
    def _filter_kept(self, event: Input.Submitted) -> None:
        self._filter(event.value, *self._filtered)
        self._close_filter()
        self.action_show_panel(self._filtered[-1])

    def _close_filter(self) -> None:
        if self.has_class("-filtering"):
            self.query_one("#filter", Input).display = False
            self._arrange("-filtering", on=False)

    def _filter(self, text: str, *names: str) -> None:
        """Filter panels by a text, all that can be where none is named; for several it need not be meant for each."""
        names = names or _FILTERED
        charts = self.query_one(ChartsPanel)
        if "charts" in names:
            charts.filter, charts.lenient = text.strip(), len(names) > 1
        if "runs" in names:
            self.query_one(RunsPanel).filter = text.strip()
        self._again()

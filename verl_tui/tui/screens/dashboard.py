"""The main screen: everything about the shown run at a glance."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from textual import on
from textual.widgets import Input

from verl_tui.rendering.text.search import Matches, filter_label
from verl_tui.tui.keys import actions
from verl_tui.tui.messages import toast
from verl_tui.tui.panels.charts import ChartActions, ChartsPanel
from verl_tui.tui.panels.health import HealthPanel
from verl_tui.tui.panels.runs import RunsPanel
from verl_tui.tui.screens.dashboard_layout import DashboardLayout
from verl_tui.tui.widgets.chart import KEYS, READING, TABLE, Chart, MoveCursor
from verl_tui.words import counted

if TYPE_CHECKING:
    from verl_tui.health.finding import Episode, Finding
    from verl_tui.rendering.charts.plan import ChartLook, PlannedChart

_FILTERED = {"runs": "runs", "charts": "metrics"}
"""Panels that can be filtered, and what of them is."""


class Dashboard(DashboardLayout, ChartActions):
    """Everything about the shown run at a glance, and what keys do with it."""

    FOOTER = """
        panel.next             Panel
        run.previous run.next  Run
        finding.next           Finding
        filter                 Filter
        panel.zoom             Zoom
    """
    """Keys that the last row begins with while no panel has the focus."""
    BINDINGS = actions(
        """
        enter   open                chart.zoom    Full screen: the focused chart or panel
        escape  back                back          Back
        [       app.switch_run(-1)  run.previous  Previous run  COMPARE
        ]       app.switch_run(1)   run.next      Next run  COMPARE
        """,
        "\n".join(
            f"{n}  pick_run({n})  run.{n}  Run {n}  COMPARE" for n in range(1, 10)
        ),
        """
        e  finding(1)   finding.next         Next finding  WHY
        E  finding(-1)  finding.previous     Previous finding  WHY
        !  app.finding_of_all(1)   finding.next_of_all      Next warning of all runs  WHY
        @  app.finding_of_all(-1)  finding.previous_of_all  Previous warning of all runs  WHY
        a  acknowledge  finding.acknowledge  Acknowledge finding (this session)  WHY
        """,
        KEYS,
        TABLE,
        """
        0         reset               look.reset         Reset the view  LEARN
        /         filter              filter             Filter
        v         not_judged          health.not_judged
        j,down    charts('step', 1)   chart.next
        k,up      charts('step', -1)  chart.previous
        pagedown,ctrl+f,ctrl+d,space  charts('page', 1)   chart.page_down
        pageup,ctrl+b,ctrl+u          charts('page', -1)  chart.page_up
        """,
        (replace(one, description="") for one in READING),
    )

    def __init__(self) -> None:
        super().__init__()
        self.charts = self.panel(ChartsPanel)
        self._runs = self.panel(RunsPanel)
        self._lists: dict[str, RunsPanel | ChartsPanel]
        self._lists = {"runs": self._runs, "charts": self.charts}
        self._filtered: tuple[str, ...] = tuple(_FILTERED)
        """Panels that the typed filter is meant for, or the columns that are typed in its place."""

    def action_open(self) -> None:
        """Give the focused chart or panel the full screen, else the chart that matters most.

        Lists that open a chosen row answer the key before.
        """
        panel = self.focused_panel
        if panel and not isinstance(panel, ChartsPanel):
            self.action_zoom()
            return
        from verl_tui.tui.screens.zoom import ZoomScreen

        charts = self.charts
        # what was covered may still plan for a run that is gone
        found = self.plan()
        if found and self.view.run:
            zoomed = ZoomScreen(found, charts, self.view, charts.listed)

            def left(_: object) -> None:
                if zoomed.plan().key != found.key:
                    self._show_at(zoomed.plan().key, None)

            self.app.push_screen(zoomed, left)

    def action_back(self) -> None:
        """Leave the innermost of what is open or set: filter line, cursor and zoom of charts in
        sight, filter, zoomed panel, focus.
        """
        charts, seen = self.charts, self.zoomed in (None, self.charts)
        if self.bar.display:
            self._close_filter()
            self._filter("", *self._filtered)
        elif seen and self.view.cursor is not None:
            self.post_message(MoveCursor(None))
        elif seen and charts.look.span:
            self.set_look(charts.look._replace(span=None))
        elif charts.filter or self._runs.filter:
            self._filter("")
        elif self.zoomed:
            self._zoom(None)
        else:
            self.set_focus(None)

    # -- runs --------------------------------------------------------------------------------------

    @on(RunsPanel.Relisted)
    def _listed(self) -> None:
        """Lay the curves of the selected runs over each other; say the shown run's new place."""
        self.redraw()

    def action_ask(self, what: str) -> None:
        """Ask for the columns of the list of runs, or for those that group the runs."""
        typed = ", ".join(getattr(self.view.listing.kept, what))
        self._ask((what,), f"{what.removeprefix('run_')}: ", typed)

    def _ask(self, names: tuple[str, ...], label: str, typed: str) -> None:
        """Ask for something that panels, or the columns of that name, are to show."""
        self._filtered = names
        self.bar.open(label, typed)
        self._say_matches()
        self.fit_rooms()

    @property
    def _asks(self) -> bool:
        """True if columns are being typed, not a filter."""
        return self._filtered[0] not in _FILTERED

    def action_pick_run(self, number: int) -> None:
        """Show the run of that number in the list."""
        runs = self.view.listed
        if number <= len(runs):
            self.post_message(RunsPanel.Picked(runs[number - 1].name))
        else:
            toast(self.app, f"no run {number}: {counted(len(runs), 'run')} listed")

    # -- looks, findings, filter -------------------------------------------------------------------

    def set_look(self, look: ChartLook) -> None:
        """Draw the charts in this way."""
        self.charts.set_look(look)

    def plan(self) -> PlannedChart | None:
        """Return the focused chart, else the one that matters most."""
        return self.charts.focused_plan()

    async def action_charts(self, what: str, way: int) -> None:
        """Turn to other charts though none has the focus."""
        await self.app.run_action(f"{what}({way})", self.charts)

    def reader(self) -> Chart | None:
        """Return the chart that the cursor's keys mean, with the focus if nothing has it."""
        return self.charts.reader(focus=self.focused is None)

    def action_reset(self) -> None:
        """Go back to the usual look, no filter, no zoom, no cursor."""
        self._zoom(None)
        self._close_filter()
        self._filter("")
        self.charts.reset()
        self.post_message(MoveCursor(None))

    def action_finding(self, way: int) -> None:
        """Choose the next finding; charts and samples go to its step."""
        finding = self._health().found.choose_next(way)
        if not finding:
            toast(self.app, "no finding to go to in this run")
        else:
            self.go_to(finding)

    def go_to(self, finding: Finding) -> None:
        """Choose a finding; charts and samples go to its step."""
        health = self._health()
        health.choose(finding)
        if not self._reads(health):
            toast(self.app, f"{finding.id}: {finding.message}")
        self._follow(finding)

    @property
    def chosen_finding(self) -> Finding | None:
        """The finding that the user has chosen."""
        return self._health().found.chosen

    def _health(self) -> HealthPanel:
        """Return the panel of findings, up to date even where it is out of sight."""
        health = self.panel(HealthPanel)
        health.show(self.view)
        return health

    def _reads(self, health: HealthPanel) -> bool:
        """Return True if the message of the chosen finding can be read in the panel."""
        rows = self.rows_of(health)
        return rows > 1 or (rows > 0 and not health.found.findings)

    @on(HealthPanel.Folded)
    def _folded(self) -> None:
        """Give the panel of findings the rows that it shows now."""
        self._most.pop("health", None)  # it may need fewer than before
        self.redraw()

    @on(HealthPanel.Followed)
    def _followed(self, event: HealthPanel.Followed) -> None:
        self._zoom(None)  # the charts that go there are behind it
        self._follow(event.finding)

    def _follow(self, finding: Finding) -> None:
        step = finding.since_step if finding.since_step is not None else finding.step
        self._show_at(finding.key, step)

    def action_acknowledge(self) -> None:
        """Acknowledge the chosen finding, else the first one, or take that back; wherever the focus
        is.
        """
        health = self._health()
        finding, run = health.chosen_or_first(), self.view.run
        if not finding or not run:
            toast(self.app, "no finding to acknowledge")
            return
        known = self.view.acknowledgements.toggle(run.name, finding)
        if not self._reads(health):
            no_longer = "" if known else "no longer "
            toast(self.app, f"{no_longer}acknowledged: {finding.id}")
        self.redraw()

    def action_not_judged(self) -> None:
        """Show or hide why rules were not judged, wherever the focus is."""
        health = self._health()
        health.action_not_judged()
        self._folded()
        if health.found.reasons and not self._reads(health):
            key = self.view.keys["panel.health"]
            toast(self.app, f"the health panel is out of sight: {key} shows it")

    def follow_episode(self, episode: Episode) -> None:
        """Go to the beginning of an episode that was chosen in the history."""
        begun = episode.id, episode.since_step
        # the metric of a diagnosis is known while it lasts
        found = self.view.verdict.findings
        keys = [one.key for one in found if (one.id, one.since_step) == begun]
        self._show_at(episode.key or next(iter(keys), None), episode.since_step)

    def _show_at(self, key: str | None, step: int | None) -> None:
        """Take the charts and the samples to a step, and the charts to the metric, if one is
        named.
        """
        charts, view = self.charts, self.view
        if key is not None:
            # Then all charts are drawn anyway.
            moves = charts.display and step is not None and step != view.cursor
            if not charts.display:
                charts.show(view)
            if not charts.reveal(key, soon=moves) and charts.filter:
                self._filter("", "charts")
                charts.show(view)
                charts.reveal(key, soon=moves)
        if step is not None:
            self.post_message(MoveCursor(step))

    def action_filter(self) -> None:
        """Ask for a filter of the focused panel, of runs and metrics where neither list has the
        focus.
        """
        name = self.focused_panel.id if self.focused_panel else None
        names = (name,) if name in _FILTERED else tuple(_FILTERED)
        text = self._lists[names[-1]].filter
        self._ask(names, filter_label([_FILTERED[one] for one in names]), text)

    def _say_matches(self) -> None:
        """Say beside the typed filter how much matches it; runs count where they are listed. Of
        columns, say which no run has.
        """
        view = self.view
        if self._asks:
            titles, said = view.columns_of(self.bar.input.value)
            counts = {"columns": Matches(len(titles), len(titles), said)}
        else:
            counts = {
                _FILTERED[name]: one.matches(view)
                for name, one in self._lists.items()
                if name in self._filtered and one.display
            }
        enter = "takes them" if self._asks else "keeps it"
        self.bar.say(counts, enter=enter, escape=view.keys["back"])

    @on(Input.Changed)
    def _filter_changed(self, event: Input.Changed) -> None:
        if self.bar.display:
            self._filter(event.value, *self._filtered)
            self._say_matches()

    @on(Input.Submitted)
    def _filter_kept(self, event: Input.Submitted) -> None:
        self._close_filter()
        name = self._filtered[-1]
        if self._asks:
            self._runs.keep(**{name: self.view.columns_of(event.value)[0]})
        else:
            self._filter(event.value, *self._filtered)
        self.action_show_panel("runs" if self._asks else name)

    def _close_filter(self) -> None:
        self.bar.close()
        self.fit_rooms()

    def _filter(self, text: str, *names: str) -> None:
        """Filter those of the named panels that can be by a text, all where none is named; with
        several, all charts stay where no metric matches.
        """
        names = names or tuple(_FILTERED)
        for name, one in self._lists.items():
            if name in names:
                one.narrow(text, lenient=len(names) > 1)
        self.redraw()

"""The screens that a key opens over the dashboard: a further one is a function here and a line in
`SCREENS`.

Each is imported when it is first asked for: they are half of the app, and most of it is up without
them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from verl_tui.tui.panels.charts import ChartsPanel
from verl_tui.tui.panels.runs import RunsPanel
from verl_tui.tui.panels.samples import SamplesPanel

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.screen import Screen

    from verl_tui.rendering.session.preferences import StateFile
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.tui.screens.dashboard import Dashboard


class Desk(NamedTuple):
    """What a screen may need when it is opened."""

    dashboard: Dashboard
    view: View
    state_file: StateFile


class Opened(NamedTuple):
    """A screen, and who is told what it was left with."""

    screen: Screen[Any]
    left: Callable[[Any], None] | None = None


class Entry(NamedTuple):
    """One screen that a key opens."""

    name: str
    key: str
    id: str
    """Its name in the configuration of keys."""
    words: str
    open: Callable[[Desk], Opened]
    label: str | None = None
    """What the key is called where it is not written as Textual calls it; such a key is shown in
    the last row.
    """


def _samples(desk: Desk) -> Opened:
    from verl_tui.tui.screens.samples import SamplesScreen

    panel = desk.dashboard.query_one(SamplesPanel)
    panel.show(desk.view)  # it may be out of sight
    return Opened(SamplesScreen(desk.view, panel.chosen), panel.go_on)


def _sources(desk: Desk) -> Opened:
    from verl_tui.tui.screens.sources import SourcesScreen

    return Opened(SourcesScreen(desk.view))


def _config(desk: Desk) -> Opened:
    from verl_tui.tui.screens.config import ConfigScreen

    return Opened(ConfigScreen(desk.view))


def _timing(desk: Desk) -> Opened:
    from verl_tui.tui.screens.timing import TimingScreen

    return Opened(TimingScreen(desk.view))


def _compare(desk: Desk) -> Opened:
    from verl_tui.tui.screens.compare import CompareScreen

    return Opened(CompareScreen(desk.dashboard.query_one(RunsPanel).listed, desk.view))


def _metrics(desk: Desk) -> Opened:
    from verl_tui.tui.screens.metrics import MetricsScreen

    return Opened(MetricsScreen(desk.view, desk.dashboard.query_one(ChartsPanel), desk.state_file))


def _log(desk: Desk) -> Opened:
    from verl_tui.rendering.log.target import log_target
    from verl_tui.tui.screens.log import LogScreen

    view = desk.view
    return Opened(LogScreen(view, log_target(view.run, desk.dashboard.chosen_finding, view.cursor)))


def _history(desk: Desk) -> Opened:
    from verl_tui.tui.screens.history import HistoryScreen

    return Opened(HistoryScreen(desk.view), desk.dashboard.follow_episode)


def _help(_: Desk) -> Opened:
    from verl_tui.tui.screens.help import HelpScreen

    return Opened(HelpScreen())


SCREENS = {
    entry.name: entry
    for entry in (
        Entry("help", "question_mark", "help", "Help", _help, "?"),
        Entry("samples", "o", "samples.open", "Samples of this step", _samples),
        Entry("metrics", "m", "metrics", "All metrics", _metrics),
        Entry("log", "l", "log", "Log: the console as text", _log),
        Entry("compare", "C", "compare", "Compare runs side by side", _compare),
        Entry("config", "c", "config", "Configuration, difference to other runs", _config),
        Entry("timing", "t", "timing", "Timing: where a step's time goes", _timing),
        Entry("history", "A", "finding.history", "Finding history", _history),
        Entry("sources", "i", "sources", "Sources", _sources),
    )
}
"""In the order of the help."""

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


class ScreenContext(NamedTuple):
    """What a screen may need when it is opened."""

    dashboard: Dashboard
    view: View
    state_file: StateFile


class ScreenWithCallback(NamedTuple):
    """A screen, and who is told what it was left with."""

    screen: Screen[Any]
    left: Callable[[Any], None] | None = None


class ScreenSpec(NamedTuple):
    """One screen that a key opens."""

    name: str
    key: str
    id: str
    """Its name in the configuration of keys."""
    words: str
    open: Callable[[ScreenContext], ScreenWithCallback]
    label: str | None = None
    """What the key is called where it is not written as Textual calls it; such a key is shown in
    the last row.
    """


def _samples(context: ScreenContext) -> ScreenWithCallback:
    from verl_tui.tui.screens.samples.screen import SamplesScreen

    panel = context.dashboard.query_one(SamplesPanel)
    panel.show(context.view)  # it may be out of sight
    return ScreenWithCallback(SamplesScreen(context.view, panel.chosen), panel.go_on)


def _sources(context: ScreenContext) -> ScreenWithCallback:
    from verl_tui.tui.screens.sources.screen import SourcesScreen

    return ScreenWithCallback(SourcesScreen(context.view))


def _config(context: ScreenContext) -> ScreenWithCallback:
    from verl_tui.tui.screens.config.screen import ConfigScreen

    return ScreenWithCallback(ConfigScreen(context.view))


def _timing(context: ScreenContext) -> ScreenWithCallback:
    from verl_tui.tui.screens.timing.screen import TimingScreen

    return ScreenWithCallback(TimingScreen(context.view))


def _compare(context: ScreenContext) -> ScreenWithCallback:
    from verl_tui.tui.screens.compare.screen import CompareScreen

    return ScreenWithCallback(
        CompareScreen(context.dashboard.query_one(RunsPanel).listed, context.view)
    )


def _metrics(context: ScreenContext) -> ScreenWithCallback:
    from verl_tui.tui.screens.metrics.screen import MetricsScreen

    return ScreenWithCallback(
        MetricsScreen(context.view, context.dashboard.query_one(ChartsPanel), context.state_file)
    )


def _log(context: ScreenContext) -> ScreenWithCallback:
    from verl_tui.rendering.log.target import log_target
    from verl_tui.tui.screens.log.screen import LogScreen

    view = context.view
    return ScreenWithCallback(
        LogScreen(view, log_target(view.run, context.dashboard.chosen_finding, view.cursor))
    )


def _history(context: ScreenContext) -> ScreenWithCallback:
    from verl_tui.tui.screens.history.screen import HistoryScreen

    return ScreenWithCallback(HistoryScreen(context.view), context.dashboard.follow_episode)


def _help(_: ScreenContext) -> ScreenWithCallback:
    from verl_tui.tui.screens.help.screen import HelpScreen

    return ScreenWithCallback(HelpScreen())


SCREENS = {
    entry.name: entry
    for entry in (
        ScreenSpec("help", "question_mark", "help", "Help", _help, "?"),
        ScreenSpec("samples", "o", "samples.open", "Samples of this step", _samples),
        ScreenSpec("metrics", "m", "metrics", "All metrics", _metrics),
        ScreenSpec("log", "l", "log", "Log: the console as text", _log),
        ScreenSpec("compare", "C", "compare", "Compare runs side by side", _compare),
        ScreenSpec("config", "c", "config", "Configuration, difference to other runs", _config),
        ScreenSpec("timing", "t", "timing", "Timing: where a step's time goes", _timing),
        ScreenSpec("history", "A", "finding.history", "Finding history", _history),
        ScreenSpec("sources", "i", "sources", "Sources", _sources),
    )
}
"""In the order of the help."""

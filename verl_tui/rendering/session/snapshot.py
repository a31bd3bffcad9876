"""The state that panels draw."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.health.finding import Verdict
from verl_tui.on_demand.samples import SampleBrowser
from verl_tui.rendering.session.acknowledgements import Acknowledgements
from verl_tui.rendering.session.run_order import RunListing, Selection

if TYPE_CHECKING:
    from collections.abc import Mapping

    from verl_tui.monitor import Monitor
    from verl_tui.replay import ReplayStatus
    from verl_tui.runs.run import Run


class AppTrouble(NamedTuple):
    """A part of verl-tui itself that does not work, in one word and in a few."""

    short: str
    long: str
    over: bool = False
    """True if it works again."""


@dataclass(frozen=True, slots=True)
class View:
    """The state of the app at one tick. Panels draw it and keep no data."""

    monitor: Monitor
    run: Run | None
    """The shown run, None without runs."""
    now: float
    """Seconds since the epoch."""
    cursor: int | None = None
    """Step under the charts' cursor, None without a cursor."""
    loading: bool = False
    """True while the logs found at the start are being read."""
    paused: bool = False
    """True while the user has paused drawing."""
    keys: Mapping[str, str] = field(default_factory=lambda: HINT_KEYS)
    """Names of actions -> the key that a sentence names for them."""
    pins: tuple[str, ...] = ()
    """Keys of the metrics whose charts come first."""
    acknowledgements: Acknowledgements = field(default_factory=Acknowledgements)
    """The acknowledged findings."""
    browser: SampleBrowser = field(default_factory=lambda: SampleBrowser(lambda: None))
    """Reads the samples on the screen."""
    selection: Selection = field(default_factory=Selection)
    """The runs selected for comparison."""
    listing: RunListing = field(default_factory=RunListing)
    """Order and filter of the list of runs."""
    replay: ReplayStatus | None = None
    """State of the replay, None for live runs."""
    troubles: tuple[AppTrouble, ...] = ()
    """Parts of verl-tui itself that do not work."""

    @property
    def selected(self) -> list[Run]:
        """The selected runs, by their places."""
        return [
            self.monitor.runs[name] for name in self.selection.names(self.monitor.runs)
        ]

    @property
    def listed(self) -> list[Run]:
        """The runs as they are listed."""
        return self.listing.runs(self.monitor.runs.values(), self.now)

    def beside(self, way: int) -> Run | None:
        """Return the run after (1) or before (-1) the shown one in the list, in a circle."""
        runs = self.listed
        if not runs or self.run is None:
            return None
        if self.run in runs:
            return runs[(runs.index(self.run) + way) % len(runs)]
        return runs[0 if way > 0 else -1]

    @property
    def verdict(self) -> Verdict:
        """The health of the shown run."""
        if self.run:
            return self.monitor.verdicts.get(self.run.name, Verdict())
        return Verdict()


HINT_KEYS: Mapping[str, str] = {
    "help": "?",
    "quit": "q",
    "pause": "p",
    "reload": "r",
    "back": "esc",
    "config.back": "esc",
    "metrics.back": "esc",
    "samples.back": "esc",
    "sources": "i",
    "samples.open": "o",
    "panel.samples": "f6",
    "samples.follow": "f",
    "samples.unfold": "u",
    "health.not_judged": "v",
    "chart.page_down": "pgdn",
    "chart.page_up": "pgup",
    "look.in": "+",
    "log.back": "esc",
}
"""Names of actions, as the configuration has them -> their key unless the user has given them
another one.
"""

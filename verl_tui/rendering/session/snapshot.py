"""What a panel is given to draw."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from verl_tui.health.finding import Verdict
from verl_tui.on_demand.samples import SampleBrowser
from verl_tui.rendering.session.acknowledgements import Acknowledgements
from verl_tui.rendering.session.selection import Selection

if TYPE_CHECKING:
    from verl_tui.monitor import Monitor
    from verl_tui.replay import ReplayStatus
    from verl_tui.runs.run import Run


@dataclass(frozen=True, slots=True)
class View:
    """The state of everything at one tick. Panels read it and draw; they keep no data."""

    monitor: Monitor
    run: Run | None
    """The run that is shown; None while there is none."""
    now: float
    """Seconds since the epoch."""
    cursor: int | None = None
    """Step under the charts' cursor, None where there is no cursor."""
    ascii: bool = False
    """Whether the terminal cannot show block and braille characters."""
    loading: bool = False
    """Whether what lay on disk at the start is still being read."""
    paused: bool = False
    """Whether the user has stopped the drawing."""
    pause_key: str = "p"
    """Key that goes on with it."""
    pins: tuple[str, ...] = ()
    """Keys of the metrics whose charts come first."""
    acknowledgements: Acknowledgements = field(default_factory=Acknowledgements)
    """What the user has acknowledged."""
    browser: SampleBrowser = field(default_factory=lambda: SampleBrowser(lambda: None))
    """Reads the samples that somebody looks at."""
    selection: Selection = field(default_factory=Selection)
    """The runs that the user has selected to be compared."""
    replay: ReplayStatus | None = None
    """Where the replay is that is shown, None where it is no replay."""

    @property
    def selected(self) -> list[Run]:
        """The selected runs, by their places."""
        return [self.monitor.runs[name] for name in self.selection.names(self.monitor.runs)]

    @property
    def verdict(self) -> Verdict:
        """The health of the shown run."""
        return self.monitor.verdicts.get(self.run.name, Verdict()) if self.run else Verdict()

"""The state that panels draw, and short texts on why there is nothing to show."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.health.finding import Moment, Verdict
from verl_tui.on_demand.samples import SampleBrowser
from verl_tui.rendering.session.acknowledgements import Acknowledgements
from verl_tui.rendering.session.notes import NoteBook
from verl_tui.rendering.session.preferences import DRAWN
from verl_tui.rendering.session.run_order import RunListing, Selection
from verl_tui.rendering.text.piece import short_run_names, size_text
from verl_tui.rendering.text.search import Matches
from verl_tui.runs.views.signs_of_life import two_jobs
from verl_tui.runs.views.state import State, state, unread_form
from verl_tui.text import one_line
from verl_tui.times import age
from verl_tui.words import counted, percent_done

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from verl_tui.monitor import Monitor
    from verl_tui.records import SourceStatus
    from verl_tui.replay import ReplayStatus
    from verl_tui.runs.run import Run


class AppTrouble(NamedTuple):
    """A part of verl-tui itself that does not work, in one word and in a few."""

    short: str
    long: str
    over: bool = False
    """True if it works again."""


class ActionNames(dict[str, str]):
    """The names of actions in place of their keys, where no app has given them any."""

    def __missing__(self, name: str) -> str:
        return name


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
    keys: Mapping[str, str] = field(default_factory=ActionNames)
    """Names of actions -> the key that a sentence names for them."""
    pins: tuple[str, ...] = ()
    """Keys of the metrics whose charts come first."""
    acknowledgements: Acknowledgements = field(default_factory=Acknowledgements)
    """The acknowledged findings."""
    notebook: NoteBook = field(default_factory=NoteBook)
    """The user's notes on steps."""
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
        return self.listing.runs(self.monitor.runs.values(), self.moment)

    @property
    def matches(self) -> Matches:
        """How many of the runs that are not hidden match the filter."""
        runs = self.listing.unhidden(self.monitor.runs.values())
        found, note = self.listing.narrowed(runs, self.moment)
        return Matches(len(found), len(runs), note)

    def columns_of(self, text: str) -> tuple[tuple[str, ...], str]:
        """Return the columns of a list with commas, and a sentence on those that no run has."""
        from verl_tui.comparison.run_columns import parse_columns

        return parse_columns(text, [*self.monitor.runs.values()], self.moment, DRAWN)

    @property
    def moment(self) -> Moment:
        """What is known of all runs."""
        return Moment(self.now, self.monitor.verdicts)

    def name_in(self, cells: int) -> str:
        """Return the name of the shown run, first cut in what it shares with the others."""
        if not self.run:
            return ""
        # it may be gone
        names = tuple(dict.fromkeys((*self.monitor.runs, self.run.name)))
        return short_run_names(names, cells)[self.run.name]

    @property
    def verdict(self) -> Verdict:
        """The health of the shown run."""
        if self.run:
            return self.monitor.verdicts.get(self.run.name, Verdict())
        return Verdict()


# -- a run's sources, and why there is nothing to show ---------------------------------------------

_COMES = (
    "a run appears here as soon as it writes a log; {help} for help, {quit} to quit"
)
_GONE = "no such file or directory"
"""Problem of a file that was there, and has been deleted."""
_MOST_SOURCES = 4
"""Most sources listed where there is nothing else to show."""


def nothing_yet(view: View) -> str:
    """Say why there is no chart, a sentence per line."""
    run = view.run
    if not run:
        sentences = [one_line(sentence, 400) for sentence in view.monitor.sentences]
        comes = [_COMES.format_map(view.keys)] * (not view.loading)
        return "\n".join([why_no_run(view), *sentences, *comes])
    now, statuses = shown_state(view, run), _relevant(run)
    training = now is not State.NO_TRAINING
    shown = statuses[:_MOST_SOURCES]
    lines = [_so_far(status, view, training=training) for status in shown]
    if more := len(statuses) - len(shown):
        lines.append(f"and {counted(more, 'more source')} ({view.keys['sources']})")
    return "\n".join([_why_no_chart(run, now), *lines])


def why_no_run(view: View) -> str:
    """Say that there is no run to show, or how far the search for logs is."""
    if not view.loading:
        return "no run yet"
    return "looking for logs …" if not view.monitor.runs else reading(view, "logs, ")


def reading(view: View, what: str = "") -> str:
    """Say how far logs have been read."""
    return f"reading {what}{percent_done(view.monitor.loaded())}"


def _why_no_chart(run: Run, now: State | Unread) -> str:
    if now is Unread.READING:
        return "no metrics so far: its logs are being read"
    if now is State.CRASHED:
        phase = run.outcome.phase if run.outcome else None
        doing = f" while {phase.words}" if phase else ""
        if run.step is None:
            return f"crashed before the first step{doing}"
        return f"crashed at step {run.step}{doing}; the log has no metrics"
    if run.step is not None:
        return "no metrics: the log only counts steps"
    ended = dict.fromkeys((State.FINISHED, State.ENDED), "no step was logged")
    said = {State.NO_TRAINING: "no training found in it", **ended}
    return unread_form(run) or said.get(now, "no step yet")


def not_shown(view: View) -> Iterator[str]:
    """Count the given or discovered paths that are not shown, and the addresses that do not answer;
    first requests may be pending.
    """
    monitor = view.monitor
    if count := len(monitor.passed) + len(monitor.problems) + len(monitor.waiting):
        yield f"{counted(count, 'path')} not shown ({view.keys['sources']})"
    if count := sum(server.since is not None for server in monitor.unreached):
        words = counted(count, "address", "addresses")
        yield f"{words} not reached ({view.keys['sources']})"


def _relevant(run: Run) -> list[SourceStatus]:
    """Return the sources with content or a problem, without directories that are still empty."""
    return [one for one in run.statuses if one.size or one.problem is not None]


def _so_far(status: SourceStatus, view: View, *, training: bool) -> str:
    """Describe how far a source without steps has been read."""
    name = one_line(PurePath(status.path).name, 80)
    if status.problem is not None:
        return f"{name}: {one_line(status.problem, 200)}"
    format_name = status.title if training else "plain text"
    words = [f"{name}: {format_name}, {size_text(status.bytes_read)} read"]
    if status.bytes_read < status.size:
        words[0] += f" of {size_text(status.size)}"
    if status.unreadable:
        unreadable = counted(status.unreadable, "unreadable line")
        words.append(f"{unreadable} ({view.keys['sources']})")
    if status.modified is not None:
        quiet = age(view.now - status.modified)
        now = quiet == "now"
        words.append("written just now" if now else f"last written {quiet} ago")
    return " · ".join(words)


def source_pieces(run: Run, keys: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with a run's sources as pieces of text with their roles, the worst first.

    Args:
        run: The run.
        keys: Names of actions -> the key to name for them.
    """
    if any(one.problem is not None for one in run.statuses):
        yield _problem(_relevant(run), keys), "critical"
    if run.unreadable:
        words = counted(run.unreadable, "unreadable line")
        yield f"{words} ({keys['sources']})", "warning"
    if two_jobs(run):
        yield f"two trainings write into it ({keys['sources']})", "warning"


def _problem(statuses: Sequence[SourceStatus], keys: Mapping[str, str]) -> str:
    """Describe the problem of the first source that has one, and count the others."""
    down = [status for status in statuses if status.problem is not None]
    if all(status.problem == _GONE for status in statuses):
        return f"deleted from disk; {keys['reload']} drops it"
    name = one_line(PurePath(down[0].path).name, 24)
    more = f", {len(down) - 1} more" if len(down) > 1 else ""
    return f"{name}: {one_line(down[0].problem or '', 40)}{more} ({keys['sources']})"


class Unread(Enum):
    """Takes the place of a state while a run is still being read: an error found so far may turn
    out to be over by the end of its log.
    """

    READING = "reading"


def shown_state(view: View, run: Run) -> State | Unread:
    """Return the state of a run; of a preview the one that the ends of its logs show."""
    if view.loading and not run.preview and not run.read_once:
        return Unread.READING
    return state(run, view.now)

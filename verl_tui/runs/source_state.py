"""The state of one of a run's sources: its steps, its ending, its progress bar, its lines of
trouble, where hundreds of one kind are one entry with its count and its steps; and the signs that
its process lived on after its last training record.

System figures, heartbeats and repainted bars keep a file growing while nothing is trained. Times
that a log states may be of another zone, so they are only subtracted from each other: the time of a
file's last change is that of the newest stamp in it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from math import inf, isnan

from verl_tui.patterns import pattern
from verl_tui.records import (
    ENDS,
    Event,
    EventKind,
    MetricRows,
    Progress,
    Pulse,
    SourceStatus,
    Unreadable,
)
from verl_tui.runs.clock import Clock
from verl_tui.runs.table import KeyGrouping, Table
from verl_tui.times import COMPUTERS, trusted_time

# -- trouble ---------------------------------------------------------------------------------------


_MOST = 300
"""Kinds that are kept: a log with more has random words in its errors."""
_MOST_MARKS = 120
"""Steps whose counts are kept of each kind."""
_VARIES = pattern(
    r"0x[0-9a-f]+|\b[0-9a-f]{4,}(?:-[0-9a-f]{4,})+\b|\b[0-9a-f]{8,}\b|\d+",
    re.IGNORECASE,
)
"""Numbers, addresses and identifiers, which differ between errors of one kind."""


class Trouble:
    """One kind of line."""

    def __init__(self, event: Event, step: int | None, form: str) -> None:
        self.form = form
        """Its text, with blanks for what varies."""
        self.marks: list[tuple[int, int]] = []
        """How many there were up to and with a step that the run had reached; the earlier ones
        are thinned out.
        """
        self.first = self.fresh = self.last = event
        """The first ever, the first since the last step that it followed, and the newest."""
        self.count = 0
        """How often, with what Ray left out as `[repeated 7x across cluster]`."""
        self.since = self.step = step
        """The steps that the run had reached when it was first and last reported."""
        self.ranks: set[int] = set()
        """The ranks that reported it since the last step."""
        self.add(event, step)

    def add(self, event: Event, step: int | None) -> None:
        """Count a line, which the run printed after a step."""
        self.count += event.times
        self.last = event
        if self.step != step:
            self.step = step
            self.fresh = event
            self.ranks = set()
        if event.rank is not None:
            self.ranks.add(event.rank)
        at = -1 if step is None else step
        if self.marks and self.marks[-1][0] == at:
            self.marks.pop()
        elif len(self.marks) >= _MOST_MARKS:
            self.marks[: _MOST_MARKS // 2] = self.marks[: _MOST_MARKS // 2 : 2]
        self.marks.append((at, self.count))

    @property
    def of_worker(self) -> bool:
        """True for the exception of a worker."""
        return bool(self.first.actor) and self.first.raised

    def until(self, step: int) -> int:
        """Return how many there were before a step's own figures."""
        at = bisect_left(self.marks, (step,))
        return self.marks[at - 1][1] if at else 0


class Troubles:
    """The kinds of trouble of one source, in the order of first appearance."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[str, bool, str], Trouble] = {}

    def __iter__(self) -> Iterator[Trouble]:
        return iter(self._kinds.values())

    def add(self, event: Event, step: int | None) -> None:
        """Count a line.

        Args:
            event: The line.
            step: The step that the run had reached, None before the first.
        """
        # A driver's or raylet's place is a node, of which there are few; workers are many.
        form = _form(event.text)
        kind = event.actor or event.where, event.raised, form
        if kind in self._kinds:
            self._kinds[kind].add(event, step)
            return
        if len(self._kinds) >= _MOST:
            # What no step came after is not given up for it.
            known = self._kinds.items()
            past = next((kind for kind, one in known if one.step != step), None)
            if not past:
                return
            del self._kinds[past]
        self._kinds[kind] = Trouble(event, step, form)


@lru_cache(1024)
def _form(text: str) -> str:
    """Return a line with blanks for what varies; thousands may have the same text."""
    return _VARIES.sub("#", text)


# -- signs of life -----------------------------------------------------------------------------

AGREE = 120.0
"""Seconds by which the newest stamp in a log and its file's time may differ and still be of one
moment: heuristic, twice the minute from one heartbeat of verl to the next. A copy has another time.
"""


@dataclass(slots=True)
class Life:
    """The times that one source has shown."""

    arrived: float | None = None
    """When progress arrived while we watched."""
    read: float | None = None
    """When the progress from before we watched was written, by its file's time or its own."""
    first: float | None = None
    """The first time of any kind that the source states."""
    stamp: float = -inf
    """The newest one."""
    since: float | None = None
    """The first time that it states with or after the last progress."""
    grew: float | None = None
    """When it last grew while we watched."""
    orphaned: float = inf
    """When its writer was first seen to be gone."""
    counters: str = ""
    """Counters of the last heartbeat since the last progress."""
    stood: float | None = None
    """When they stopped changing, as the log states it."""
    beats: int = 0
    """Heartbeats with these counters."""
    absolute: bool = False
    """True if the time of its newest progress is one that a record states, counted from the
    epoch.
    """
    idle: float = -inf
    """The newest time of what goes on whether anything is trained or not: system figures, counters
    that stand still.
    """

    def progress(
        self,
        arrival: float | None,
        stated: float | None,
        modified: float | None,
        *,
        absolute: bool = False,
    ) -> None:
        """Note a record of training.

        Args:
            arrival: When it came, None for a record from before we watched.
            stated: When it was written as it states it.
            modified: Time of its file's last change.
            absolute: Whether what it states counts from the epoch.
        """
        stated = None if stated is None or isnan(stated) else stated
        self.absolute = absolute and stated is not None and stated > COMPUTERS
        if arrival is not None:
            self.arrived = arrival
        elif (written := trusted_time(stated, modified, absolute=absolute)) is not None:
            self.read = max(self.read or -inf, written)
        if stated is not None and self.since is not None:
            stated = max(
                stated, self.since
            )  # of rows with other keys, which came first
        self.since = stated
        self.counters, self.stood, self.beats = "", None, 0
        self.note(stated)

    def note(self, stated: float | None) -> None:
        """Note a time that stands in the source."""
        if stated is not None and not isnan(stated):
            self.first = stated if self.first is None else self.first
            self.stamp = max(stated, self.stamp)

    def figures(self, stated: float | None) -> None:
        """Note the time of figures that are logged whether anything is trained or not."""
        self.note(stated)
        self.idle = self.stamp

    def pulse(self, pulse: Pulse) -> None:
        """Note a sign of life."""
        self.note(pulse.time)
        if self.since is None:
            self.since = pulse.time
        if pulse.counters and pulse.counters == self.counters:
            self.beats += 1
            self.idle = self.idle if pulse.time is None else pulse.time
        elif pulse.counters:
            self.counters, self.stood, self.beats = pulse.counters, pulse.time, 1

    def last(self, modified: float | None) -> float | None:
        """Return the time of the newest record of training, None if there is none or it is
        unknown.
        """
        if self.arrived is not None or self.read is None:
            return self.arrived
        if self.since is None:
            return self.read
        if self.agrees(modified):
            return min(self.read, self.since)
        newest = trusted_time(self.stamp, modified, absolute=self.absolute) or inf
        return min(self.read, newest - max(0.0, self.stamp - self.since))

    def agrees(self, modified: float | None) -> bool:
        """Return whether the newest time in the source is that of its file: it is no copy then."""
        return modified is not None and abs(modified - self.stamp) <= AGREE

    def only_idles(self) -> bool:
        """Return whether the source grows only by output that goes on without training."""
        return self.stamp - self.idle <= AGREE

    def until_newest(self, stated: float | None) -> float:
        """Return the seconds from a time that it states to the newest one, 0 if not known."""
        return 0.0 if stated is None else self.stamp - stated

    @property
    def continued(self) -> bool:
        """True if it went on while we watched, or a heartbeat did."""
        return bool(self.grew or self.arrived) or self.counters_stand()

    def counters_stand(self) -> bool:
        """Return whether a heartbeat went on while its counters stood still."""
        return self.beats > 1


# -- source ----------------------------------------------------------------------------------------


_KEPT_UNREADABLE = 1000
_OF_VALIDATION = ("val-", "val/", "test_score")


@dataclass(slots=True)
class SourceState:
    """The state of one of a run's sources."""

    status: SourceStatus
    read_once: bool = False
    """True once all that was there at the time has been read, or nothing can be."""
    segment: int = 0
    rows: int = 0
    """Rows of the current segment so far."""
    step: int | None = None
    """Highest step of the current segment, of its rows or its progress bar."""
    first: int | None = None
    """The first step of its rows, over all segments."""
    top: int | None = None
    """The highest step of its rows, over all segments."""
    before_restart: int | None = None
    """Highest step of the segment before."""
    start: tuple[int, float] | None = None
    """The first step that it showed, and the seconds that it states to have passed until then."""
    began: float | None = None
    """The first time that its rows state."""
    ended: float | None = None
    """The last time that its rows state."""
    metrics: set[str] = field(default_factory=set)
    """Keys of its rows."""
    total: int | None = None
    """Steps of the whole run, as far as this source tells."""
    per_epoch: int | None = None
    """Steps of one pass over the data, as far as this source tells."""
    ending: Event | None = None
    """The event that may have ended the run; dropped when a further step follows."""
    life: Life = field(default_factory=Life)
    """Time of its last training record, and signs that the process lives."""
    stage: Event | None = None
    """The last stage that was printed, until a further step follows."""
    troubles: Troubles = field(default_factory=Troubles)
    """Errors, warnings and other lines of trouble."""
    restarted: str | None = None
    """Why the source started over, until the first row of the new segment shows at which step."""
    tables: dict[tuple[tuple[str, ...], bool, bool], Table] = field(
        default_factory=dict
    )
    """Tables of the current segment."""
    grouping: KeyGrouping = field(default_factory=KeyGrouping)
    """Which keys of its rows share a table."""
    bar: Clock = field(default_factory=Clock)
    """What the progress bar of the current segment has shown."""
    unreadable: deque[Unreadable] = field(
        default_factory=lambda: deque(maxlen=_KEPT_UNREADABLE)
    )

    @property
    def is_starting(self) -> bool:
        """True if it has started over and shown neither a step nor an end since."""
        return self.restarted is not None and self.ending is None

    @property
    def debugged(self) -> bool:
        """True if its process waits in a debugger."""
        return self.stage is not None and self.stage.text.startswith(("(Pdb)", "ipdb>"))

    def note_steps(self, rows: MetricRows) -> None:
        """Note the steps of rows that show progress."""
        top = max(rows.steps)
        # After its last step verl validates once more, and logs that as a step of its own.
        closes = (
            self.ending is not None
            and self.ending.kind is EventKind.FINISHED
            and all(key.startswith(_OF_VALIDATION) for key in rows.keys)
        )
        self.rows += len(rows.steps)
        self.first = rows.steps[0] if self.first is None else self.first
        self.top = top if self.top is None else max(top, self.top)
        if rows.times:
            self.began = min(rows.times[0], self.began or inf)
            self.ended = max(rows.times[-1], self.ended or -inf)
        stated = rows.times[0] if rows.times else None
        self._reach(top, rows.steps[0], stated, still=closes)

    def advance(self, progress: Progress) -> bool:
        """Note how far the run says it is; return whether that is further than before."""
        self.total = progress.total or self.total
        self.per_epoch = progress.per_epoch or self.per_epoch
        if progress.step is None:
            if self.ending and self.ending.kind is EventKind.TRACEBACK:
                self.ending = None  # an optional import failed: the start went on
            return False
        if progress.elapsed is not None:
            # The step's own line may have come before: whether the run is further than before is
            # another matter.
            self.bar.note([progress.step], [progress.elapsed])
        return self._reach(progress.step, progress.step)

    def note_ending(self, event: Event) -> None:
        """Note an event that may have ended the run; of two that are equally informative, the newer
        counts.
        """
        if event.kind is EventKind.STAGE:
            self.stage = event
            self.ending = None if self.debugged else self.ending
        before = self.ending.kind if self.ending else None
        is_trace = event.kind is EventKind.TRACEBACK
        if is_trace and event.actor and not event.actor.startswith("rank"):
            return  # a worker's: the driver may go on in spite of it
        # W&B says goodbye after an exception too.
        is_bye = (event.kind, before) == (EventKind.EXITED, EventKind.TRACEBACK)
        if event.kind in ENDS and not is_bye:
            self.ending = surest(filter(None, (event, self.ending)))

    def begin_anew(self, reason: str) -> None:
        """Begin a further segment: the source has started over."""
        if self.rows:
            self.segment += 1
            self.before_restart = self.step
        if self.rows or self.restarted:
            self.restarted = reason  # the later reason is nearer to the steps
        self.rows = 0
        self.step = self.ending = self.stage = None
        self.tables = {}
        self.bar = Clock()
        self.troubles = Troubles()

    def resume(self, step: int) -> None:
        """Note the step that a new process goes on from."""
        if self.restarted is not None and self.step is None:
            self.step = step

    def _reach(
        self, step: int, first: int, stated: float | None = None, *, still: bool = False
    ) -> bool:
        """Note a step, and how long the source took to show its first one.

        Args:
            step: The step.
            first: The first of those that came together.
            stated: When that states to be written.
            still: Whether an ending belongs to the step; any other is cancelled by a further one.

        Returns:
            Whether it is a further one.
        """
        if not self.start:
            newest = self.life.stamp if stated is None else stated
            self.start = first, max(0.0, newest - (self.life.first or inf))
        if self.step is not None and step <= self.step:
            return False
        self.step, self.stage = step, None
        held = self.ending if still else None
        self.ending = held and held._replace(step=step)
        return True


def surest(endings: Iterable[Event]) -> Event | None:
    """Return the event that says most about how a run ended, None without any; the first among
    equals.
    """
    return min(endings, key=lambda event: ENDS.index(event.kind), default=None)

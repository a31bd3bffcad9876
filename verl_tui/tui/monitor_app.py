"""The app without screens: takes what was read to the monitor, judges, and asks for drawings."""

from __future__ import annotations

import gc
import os
from abc import abstractmethod
from functools import partial
from time import monotonic, time
from typing import TYPE_CHECKING, Any

from textual import on

from verl_tui import debug_log
from verl_tui.health.finding import SEVERITIES
from verl_tui.monitor import Monitor
from verl_tui.reading import NewsSource, ReadingThreads
from verl_tui.records import Batch, GpuReading, Preview
from verl_tui.rendering.charts.plan import unknown_charts
from verl_tui.rendering.session.acknowledgements import Acknowledgements
from verl_tui.rendering.session.snapshot import AppTrouble
from verl_tui.rendering.text.piece import printable
from verl_tui.sources import pipe
from verl_tui.text import one_line
from verl_tui.tui.base_app import TerminalApp
from verl_tui.tui.messages import Once

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from textual.timer import Timer

    from verl_tui.config import Config
    from verl_tui.notify.message import Message
    from verl_tui.notify.notifier import Changes, Notifier


_LONGEST = 200
"""Characters of a notification: terminals and desktops cut longer ones, each in its own way."""
_MOST = 4
"""Notifications at a time: a run that collapses breaks many rules at once."""
_BELL = "\a"
_FORMS = {"osc9": "\x1b]9;{}\a", "osc777": "\x1b]777;notify;verl-tui;{}\a"}


def notices(
    news: Sequence[Message], config: Config, environment: Mapping[str, str]
) -> str:
    """Return the escape sequences that notify of news; empty if the user wants none.

    Args:
        news: Findings, and runs that have finished.
        config: The user's configuration: bell and kind of notifications.
        environment: The process's environment variables: in tmux sequences must be wrapped.
    """
    if not news:
        return ""
    texts = [
        f"{one.subject if one.finding else one.run}: {one.message}" for one in news
    ]
    if len(texts) > _MOST:
        more = len(texts) - _MOST + 1
        texts[_MOST - 1 :] = [f"{more} more, the first of them {texts[_MOST - 1]}"]
    sequences = _BELL * config.bell
    for text in texts:
        # Semicolons separate fields in 777, and make a progress bar in some terminals' 9.
        said = printable(one_line(text, _LONGEST)).replace(";", ",")
        sequence = _FORMS.get(config.desktop, "").format(said)
        if environment.get(
            "TMUX"
        ):  # which passes it on, if its `allow-passthrough` is on
            escaped = sequence.replace("\x1b", "\x1b\x1b")
            sequence = f"\x1bPtmux;{escaped}\x1b\\"
        sequences += sequence
    return sequences


_BUDGET = 0.005
"""Seconds of taking in records at a stretch: the screen answers in between."""
JUDGING = 0.02
"""Seconds of judging runs before the screen answers."""
_REST = 0.08
"""Seconds until it goes on once all have a verdict: two hundred runs that grow would take all of a
core.
"""
_LEAST_WAIT = 0.01
"""Seconds of the shortest wait: Textual drops a timer that is due before its task has begun."""
_TOGETHER = 0.03
"""Seconds in which what a step has written is read: lines of several logs, and its samples. Drawn
one after another they would be judged and drawn twice, the later ones `refresh` seconds later.
"""
_GPUS_LATER = 1.5
"""Seconds after a drawing of records within which GPUs wait for the next one: a run that logs a
step a second would have half as many drawings more.
"""
_LOADING = 2
"""Factor by which drawings are rarer while logs load: each changes every row of every chart."""
_NOTIFYING = "notifications are on, for what is new from now"
_TICK = 10.0
"""Seconds between two judgements where nothing is logged: ages on the screen are this exact, and
rules on silence see it this late.
"""
SWEEP = 60.0
"""Seconds between two searches for garbage among all objects but those that are left out."""


class MonitorApp(TerminalApp):
    """Feeds a monitor with what is read, and draws its newest state at a bounded rate."""

    class News(Once):
        """Something waits to be taken in."""

    _picked: str | None = None
    """Name of the shown run."""
    _paused = False
    _painted = float("-inf")
    """Monotonic seconds of the last drawing of new records."""
    _paint_later: Timer | None = None
    _judge_later: Timer | None = None
    """Judges the next ones of many runs."""

    def __init__(
        self,
        specs: Sequence[str],
        config: Config,
        *,
        monitor: Monitor | None = None,
        clock: Callable[[], float] = time,
        notifier: Notifier | None = None,
        **options: Any,
    ) -> None:
        """Make the app.

        Args:
            specs: Paths, directories and globs to watch.
            config: The user's configuration.
            monitor: A monitor that is already filled, to be shown as it is: nothing is read then.
            clock: Seconds since the epoch.
            notifier: Sends notifications of what is found while the app is open.
            options: As for the app in a terminal.
        """
        super().__init__(config, **options)
        self._specs = tuple(specs)
        self._clock = clock
        self.monitor = monitor or Monitor(config)
        self._reading = None if monitor else self.new_reading()
        self._attention = Acknowledgements()
        self._changes: Changes | None = None
        """Finds out what the user is notified of outside the app; None before the first look."""
        self._notifier = notifier
        self._loading = monitor is None
        self._shown_at = clock()

    def on_mount(self) -> None:
        """Begin to read."""
        self.set_interval(_TICK, self.tick)
        # garbage, which is not collected automatically any more (see `tui.watch`)
        self.set_interval(SWEEP, lambda: gc.collect() and None)
        # after the first frame, which its threads would delay
        if self._reading:
            self.call_after_refresh(self._reading.start)
        if self._notifier:
            self.notify(_NOTIFYING, timeout=8, markup=False)
        # with the user's keys, and still before the first frame
        self.call_next(self.paint)

    def on_unmount(self) -> None:
        """Stop reading."""
        if self._reading:
            self._reading.stop()

    def new_reading(self) -> NewsSource:
        """Return what the logs are read with; another app may read them otherwise."""
        return ReadingThreads(
            self._specs,
            self.config,
            # one that is not there yet would become the first of the list
            shown=lambda: self._picked if self._picked in self.monitor.runs else None,
            clock=self._clock,
            notify=lambda: self.post_message(self.News()),
        )

    # -- from the threads to the monitor -----------------------------------------------------------

    @on(News)
    def _take(self) -> None:
        """Take in what waits, for a few milliseconds at most, and draw it when it is due."""
        if not self._reading:
            return
        now, until = self._clock(), monotonic() + _BUDGET
        taken: set[str] = set()
        for news in self._reading.take():
            taken.add(self._part(news))
            self.attempt(self.monitor.apply, news, now)
            if isinstance(news, Batch) and not news.live:
                self._attention.old(news.run, now)
            if isinstance(news, Preview) and self._picked in (None, news.run):
                taken.add("whole")
            if monotonic() > until:
                break
        self._draw_taken(taken)

    def _part(self, news: object) -> str:
        """Return what is to be drawn of news: logs, GPUs, or nothing yet."""
        if not isinstance(news, GpuReading):
            return "logs"
        is_due = monotonic() > self._painted + _GPUS_LATER
        return "gpus" * (is_due or not self.monitor.gpus)

    def _draw_taken(self, taken: set[str]) -> None:
        """Draw when it is due what there was: logs, a reading of the GPUs, the whole of a log or a
        preview of it.
        """
        if self._reading and self._reading.waiting:
            self.post_message(self.News())
        if "logs" in taken and self._has_loaded():
            taken.add("whole")
        if "whole" in taken and not self._paused:
            # a small log is seen without a wait, and so is the end of a long one
            self.paint()
        elif "logs" in taken:
            self._soon()
        elif "gpus" in taken and not self._paused:
            # the first of several messages takes all there is
            self._show()

    def _has_loaded(self) -> bool:
        """Note how far loading is, from the first news of logs on; return True if it has just
        ended, with something to show.
        """
        was_loading, self._loading = self._loading, self.monitor.is_loading
        if not was_loading or self._loading:
            return False
        gc.freeze()  # what was read stays: a search in it delays a key by 50 ms
        return bool(self.monitor.runs)

    def action_reload(self) -> None:
        """Forget everything and read it again; drawing goes on where it was paused."""
        if not self._reading:
            return
        if any(map(pipe.is_meant, self._specs)):
            self.notify("standard input cannot be read a second time")
            return
        if self._paused:
            self._paused = False
            self.notify("reading everything again: no longer paused", timeout=4)
        self._reading.stop()
        self._forget()
        self._reading = self.new_reading()
        self._reading.start()
        self.paint()

    def _forget(self) -> None:
        """Drop all runs."""
        self._attention.start_over()
        self.monitor = Monitor(self.config)
        gc.unfreeze()
        gc.collect()
        self._loading = True

    # -- from the monitor to the screen ------------------------------------------------------------

    def action_pause(self) -> None:
        """Stop drawing, or go on with it; reading goes on."""
        self._paused = not self._paused
        self.paint()

    def _soon(self) -> None:
        """Draw once the last drawing is long enough ago, and what comes together is there."""
        if self._paint_later or self._paused:
            return
        distance = self.config.refresh * (_LOADING if self._loading else 1)
        wait = self._painted + distance - monotonic()
        self._paint_later = self.set_timer(max(wait, _TOGETHER), self.paint)

    def tick(self) -> None:
        """Judge, and show the newest state unless the screen is paused."""
        if self._paused:
            self._judge(self._clock())  # the screen stands still, notifications go on
        else:
            self._show()

    def paint(self) -> None:
        """Show what the logs have brought; the next such drawing keeps its distance."""
        if self._paint_later:
            # Else it would go off beside the next one, as long as there is news.
            self._paint_later.stop()
            self._paint_later = None
        self._painted = monotonic()
        self._show()

    def _show(self) -> None:
        """Judge, and have every screen in sight show the newest state."""
        now, until = self._clock(), monotonic() + JUDGING
        self.attempt(self._judge, now)
        if monotonic() > until:  # a key is answered in between
            self.set_timer(_LEAST_WAIT, partial(self._frame, now))
        else:
            self._frame(now)

    def _frame(self, now: float) -> None:
        with debug_log.timed("frame"):
            self._draw(now)

    @abstractmethod
    def _draw(self, now: float) -> None:
        """Have the screens show the newest state as it was judged last."""

    def _judge(self, now: float) -> None:
        """Judge the runs, and notify the user of news outside the app where that is wanted; say
        which notifications could not be sent.
        """
        if self._loading:
            return
        monitor = self.monitor
        self._awake(now)
        if self._judge_later:
            self._judge_later.stop()
            self._judge_later = None
        has_ended = bool(monitor.urgent)
        if not monitor.judge(now, monotonic() + JUDGING, self._picked or ""):
            is_first = len(monitor.verdicts) < len(monitor.runs)
            wait = _LEAST_WAIT if is_first else _REST
            self._judge_later = self.set_timer(wait, self._judge_on)
            if has_ended and self._changes:
                self._tell(now)
            return
        self._tell(now)

    def _tell(self, now: float) -> None:
        """Notify of what the verdicts have that is new."""
        monitor, attention = self.monitor, self._attention
        attention.note_judged(monitor.verdicts, now)
        if self._changes is None:
            gc.freeze()  # so do verdicts: of 5,000 runs a search takes a second
            from verl_tui.notify.notifier import Changes
            from verl_tui.notify.notify_settings import Choice, NotifySettings

            least = SEVERITIES[self.config.desktop_from]
            choice = Choice(least, states=frozenset({"finished"}))
            self._changes = Changes(NotifySettings(choice))
            for unknown in unknown_charts(self.config.charts, monitor.runs.values()):
                self.warn(unknown)
        seen = attention.watched, attention.acknowledged
        news = self._changes.messages(monitor, now, *seen)
        self.write_sequence(notices(news, self.config, os.environ))
        if self._notifier:
            self._notifier.send_changes(monitor, now, *seen)
            problem = self._notifier.news()
            if problem:
                self.warn(one_line(problem))
                self.show_troubles()

    def _judge_on(self) -> None:
        """Judge further runs, while no key is at work: of many each takes its time."""
        self._judge_later = None
        if self.handles_key:
            self._judge_later = self.set_timer(_LEAST_WAIT, self._judge_on)
            return
        now = self._clock()
        self.attempt(self._judge, now)
        if not self._judge_later and not self._paused:
            self._draw(now)
        elif len(self.monitor.verdicts) < len(self.monitor.runs):
            self._soon()

    @property
    def troubles(self) -> tuple[AppTrouble, ...]:
        """Errors of our own, and notifications that could not be sent."""
        failing = self._notifier.failing if self._notifier else ""
        return (*super().troubles, *[AppTrouble("unsent", failing)] * bool(failing))

    def show_troubles(self) -> None:
        """Draw what does not work, and what works again."""
        self._soon()

    def _awake(self, now: float) -> None:
        """Note that this host is awake: while it sleeps its runs make no steps."""
        self.monitor.awake(now)

"""The app: takes what was read to the monitor, and the monitor's state to the screen. Wiring
only.
"""

from __future__ import annotations

import gc
import os
from functools import partial
from threading import Thread
from time import monotonic, time
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import SystemCommand
from textual.binding import Binding
from textual.message import Message

from verl_tui.monitor import Monitor
from verl_tui.on_demand.samples import SampleBrowser
from verl_tui.reading import ReadingThreads
from verl_tui.records import Batch, GpuReading
from verl_tui.rendering.charts.plan import unknown_charts
from verl_tui.rendering.session.acknowledgements import Acknowledgements
from verl_tui.rendering.session.selection import Selection
from verl_tui.rendering.session.snapshot import View
from verl_tui.runs.views.state import State, state
from verl_tui.sources import pipe
from verl_tui.tui.base_app import TerminalApp
from verl_tui.tui.export import PICTURES, copy_here, take_picture
from verl_tui.tui.keys.commands import first_keys
from verl_tui.tui.messages import MoveCursor
from verl_tui.tui.notifications import notices
from verl_tui.tui.panels.runs import RunsPanel
from verl_tui.tui.panels.samples import SamplesPanel
from verl_tui.tui.screens.catalog import SCREENS
from verl_tui.tui.screens.dashboard import Dashboard
from verl_tui.tui.screens.spec import ScreenContext
from verl_tui.tui.widgets.zoomed_chart import load_plotext

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from textual.await_complete import AwaitComplete
    from textual.binding import BindingType
    from textual.screen import Screen
    from textual.timer import Timer

    from verl_tui.config import Config
    from verl_tui.reading import NewsSource
    from verl_tui.rendering.session.preferences import StateFile

_BUDGET = 0.005
"""Seconds of taking in records at a stretch: the screen answers in between."""
_LOADING = 2
"""How many times rarer it is painted while logs load: then every painting changes every row of
every chart.
"""
_TICK = 10.0
"""Seconds between looks at the clock: ages on the screen have this grain, and silence may come to
mean something.
"""
_SPARE = 1.0
"""Seconds after loading at which there surely is time for something else."""
_SWEEP = 60.0
"""Seconds from one search for garbage among all objects to the next."""


class VerlApp(TerminalApp):
    """Watches runs in the terminal."""

    TITLE = "verl-tui"
    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012 - Textual declares it otherwise
        (0, "-narrow"),
        (60, "-medium"),
        (120, "-wide"),
        (170, "-huge"),
    ]
    """Columns from which on a layout holds; the dashboard's stylesheet says what it is."""
    VERTICAL_BREAKPOINTS = [  # noqa: RUF012
        (0, "-line"),
        (2, "-pair"),
        (3, "-tiny"),
        (8, "-flat"),
        (18, "-low"),
        (30, "-tall"),
    ]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit", id="quit"),
        *(
            Binding(
                one.key,
                f"look_at('{one.name}')",
                one.words,
                key_display=one.label,
                show=bool(one.label),
                id=one.id,
            )
            for one in SCREENS.values()
        ),
        Binding("p", "pause", "Pause", id="pause"),
        Binding("r", "reload", "Read everything again", show=False, id="reload"),
        # Over every screen, whatever has the focus.
        Binding(
            "ctrl+s",
            "picture",
            "Screenshot (SVG and text)",
            show=False,
            id="picture",
            priority=True,
        ),
        Binding(
            "ctrl+y",
            "copy_here",
            "Copy what the cursor is at",
            show=False,
            id="copy",
            priority=True,
        ),
        Binding("ctrl+l", "redraw", "Redraw the screen", show=False, id="redraw"),
        Binding("ctrl+z", "suspend_process", "Suspend", show=False, id="suspend"),
    ]

    class News(Message):
        """Something waits to be taken in."""

        def can_replace(self, message: Message) -> bool:
            """One is enough: whoever takes, takes all that waits."""
            return isinstance(message, VerlApp.News)

    class Read(Message):
        """Samples that somebody looks at have been read."""

        def can_replace(self, message: Message) -> bool:
            """One is enough: whoever draws, draws all there is."""
            return isinstance(message, VerlApp.Read)

    def __init__(
        self,
        specs: Sequence[str],
        config: Config,
        *,
        monitor: Monitor | None = None,
        clock: Callable[[], float] = time,
        ascii_only: bool = False,
        state_file: StateFile | None = None,
    ) -> None:
        """Make the app.

        Args:
            specs: Paths, directories and globs to watch.
            config: The user's configuration.
            monitor: A monitor that is already filled, to be shown as it is: nothing is read then.
            clock: Seconds since the epoch.
            ascii_only: Whether to keep to ASCII.
            state_file: What is remembered of the user; by default for this session only.
        """
        super().__init__(config, ascii_only=ascii_only, state_file=state_file)
        self._specs = tuple(specs)
        self._clock = clock
        self._monitor = monitor if monitor is not None else Monitor(config)
        self._reading = None if monitor is not None else self._new_reading()
        self.browser = SampleBrowser(lambda: self.post_message(self.Read()))
        self._dashboard = Dashboard()
        self._picked: str | None = None
        self._cursor: int | None = None
        self._attention = Acknowledgements()
        self._selection = Selection()
        self._paused = False
        self._loading = monitor is None
        self._settled = False
        """Whether what waits for the end of loading has been done."""
        self._painted = float("-inf")
        self._shown_at = clock()
        self._paint_later: Timer | None = None
        self._taking = False

    def get_default_screen(self) -> Screen[None]:
        """The dashboard is the screen below all others."""
        return self._dashboard

    def on_mount(self) -> None:
        """Begin to read."""
        self.set_interval(_TICK, self._tick)
        self.set_interval(_SWEEP, self._sweep)
        if self._reading is not None:
            self._reading.start()
        self.call_after_refresh(self._paint)
        if self.state_file.welcome():
            self.call_after_refresh(self._dashboard.welcome)

    def on_unmount(self) -> None:
        """Stop reading."""
        self.browser.stop()
        if self._reading is not None:
            self._reading.stop()

    def _new_reading(self) -> NewsSource:
        return ReadingThreads(
            self._specs,
            gpu_interval=self.config.gpu_interval,
            poll_interval=self.config.poll_interval,
            scrape_engines=self.config.scrape_engines,
            clock=self._clock,
            notify=lambda: self.post_message(self.News()),
        )

    # -- from the threads to the monitor -----------------------------------------------------------

    @on(News)
    def _take(self) -> None:
        """Take in what waits, but not longer than the screen can bear."""
        self._taking = False
        if self._reading is None:
            return
        until = monotonic() + _BUDGET
        now = self._clock()
        logs = gpus = False
        for news in self._reading.take():
            self._monitor.apply(news, now)
            if isinstance(news, Batch) and not news.live:
                self._attention.old(news.run, now)
            if isinstance(news, GpuReading):
                gpus = True
            else:
                logs = True
            if monotonic() > until:
                break
        complete = self._complete()
        if self._reading.waiting and not self._taking:
            self._taking = True
            self.post_message(self.News())
        if complete and self._monitor.runs and not self._paused:
            self._paint()  # what a small log holds is seen without a wait
        elif logs:
            self._soon()
        elif (
            gpus and not self._paused
        ):  # often nothing is left: each delivery sends its message, one takes them all
            self._show()

    def _complete(self) -> bool:
        """Note how far loading is; return whether it has just come to its end."""
        was_loading, self._loading = self._loading, self._monitor.loaded() < 1.0
        if was_loading and not self._loading:
            # What was read stays: with many runs, a search for garbage in it delays a key by 50 ms.
            gc.freeze()
            self.set_timer(_SPARE, self._after_loading)
        return was_loading and not self._loading

    def _after_loading(self) -> None:
        """Do once what could wait until all that was there had been read."""
        if self._settled or self._loading:
            return
        self._settled = True
        # The first large chart would wait for it.
        Thread(target=load_plotext, name="plotext", daemon=True).start()
        for sentence in unknown_charts(self.config.charts, self._monitor.runs.values()):
            self.notify(sentence, severity="warning", timeout=15, markup=False)

    @on(Read)
    def _look(self) -> None:
        """Draw the samples that have been read; nothing else has changed."""
        show = getattr(self.screen, "show_samples", None)
        if show is not None:
            show(self._view(self._clock()))

    # -- from the monitor to the screen ------------------------------------------------------------

    def _soon(self) -> None:
        """Paint at once if the last painting is long enough ago, else as soon as it is."""
        if self._paint_later is not None or self._paused:
            return
        wait = (
            self._painted + self.config.refresh * (_LOADING if self._loading else 1) - monotonic()
        )
        if wait <= 0:
            self._paint()
        else:
            self._paint_later = self.set_timer(wait, self._paint_waiting)

    def _tick(self) -> None:
        if self._paused:
            self._judge(
                self._clock()
            )  # the screen stands still, whoever wants to be called is called
        else:
            self._show()

    def _sweep(self) -> None:
        """Look for garbage, which is not done by itself any more (see `tui.watch`)."""
        gc.collect()

    def _paint_waiting(self) -> None:
        self._paint_later = None
        self._paint()

    def _paint(self) -> None:
        """Show what the logs have brought; the next such painting keeps its distance."""
        if self._paint_later is not None:
            # Else it would go off beside the next one, as long as there is news.
            self._paint_later.stop()
            self._paint_later = None
        self._painted = monotonic()
        self._show()

    def _show(self) -> None:
        """Judge, and have every screen in sight show the newest state."""
        now = self._clock()
        self._judge(now)
        self._draw(now)

    def _draw(self, now: float) -> None:
        """Have the screen in front show the newest state as it was judged last, and the dashboard
        take note of it.

        Where only a key came this is enough, and the time of the last judgement does: of two
        hundred runs none has to be looked at again.
        """
        self._shown_at = now
        view = self._view(now)
        for screen in self.screen_stack:
            show = getattr(screen, "show", None)
            if show is not None and screen in (self.screen, self._dashboard):
                show(view)

    def pop_screen(self) -> AwaitComplete:
        """Close the screen in front; the one below has not been drawn meanwhile."""
        closed = super().pop_screen()
        if not self._paused:
            self.call_later(self._draw, self._shown_at)
        return closed

    def _judge(self, now: float) -> None:
        """Judge the runs, and tell of what is new to whoever does not look, where the user wants
        that.
        """
        if self._loading:
            return
        monitor = self._monitor
        self._awake(now)
        monitor.judge(now)
        found = {name: verdict.primary for name, verdict in monitor.verdicts.items()}
        finished = {name for name, run in monitor.runs.items() if state(run, now) is State.FINISHED}
        news = self._attention.news(found, finished, now)
        said = notices(news, self.config, os.environ, ascii_only=self.ascii_only)
        if said:
            self.write_sequence(said)

    def _awake(self, now: float) -> None:
        """Note that we look: a host that slept has made no steps."""
        self._monitor.awake(now)

    def _view(self, now: float) -> View:
        runs = self._monitor.runs
        if self._picked not in runs:
            self._picked = next(iter(runs), None)
        return View(
            self._monitor,
            runs.get(self._picked) if self._picked is not None else None,
            now,
            cursor=self._cursor,
            ascii=self.ascii_only,
            loading=self._loading,
            paused=self._paused,
            pause_key=first_keys(self, (type(self),), "pause"),
            pins=self.state_file.state.pins,
            acknowledgements=self._attention,
            browser=self.browser,
            selection=self._selection,
        )

    @on(RunsPanel.Picked)
    def _pick(self, event: RunsPanel.Picked) -> None:
        if event.name != self._picked:
            self._picked = event.name
            self._cursor = None
            self._draw(self._shown_at)

    @on(MoveCursor)
    def _move_cursor(self, event: MoveCursor) -> None:
        if event.step != self._cursor:
            self._cursor = event.step
            if event.step is not None:
                self._dashboard.query_one(SamplesPanel).go_to(event.step)
            self._draw(self._shown_at)

    # -- keys --------------------------------------------------------------------------------------

    async def action_quit(self) -> None:
        """End without waiting for threads or a slow terminal."""
        self.exit(0)

    def action_pause(self) -> None:
        """Stop or go on drawing; reading goes on."""
        self._paused = not self._paused
        self._paint()

    def action_reload(self) -> None:
        """Forget everything and read it again."""
        if self._reading is None:
            return
        if any(map(pipe.is_meant, self._specs)):
            self.notify("standard input cannot be read a second time")
            return
        self._reading.stop()
        self._forget()
        self._reading = self._new_reading()
        self._reading.start()
        self._paint()

    def _forget(self) -> None:
        """Know of no run any more."""
        self._attention.start_over()
        gc.unfreeze()
        self._monitor = Monitor(self.config)
        self._loading = True

    @on(SamplesPanel.Opened)
    def _open_samples(self) -> None:
        self.action_look_at("samples")

    def action_look_at(self, name: str) -> None:
        """Open a screen over the one in front, unless that is it."""
        opened = SCREENS[name].open(
            ScreenContext(self._dashboard, self._view(self._clock()), self.state_file)
        )
        if not isinstance(self.screen, type(opened.screen)):
            self.push_screen(opened.screen, opened.left)

    def on_metrics_screen_pinned(self) -> None:
        """Have the dashboard begin with what is pinned now."""
        self._paint()

    def action_picture(self, ending: str = "") -> None:
        """Write what is on the screen into files: as a picture, as text, or both."""
        take_picture(self, self._picked or "", (ending,) if ending else PICTURES)

    def action_copy_here(self) -> None:
        """Copy what the cursor is at, on every screen."""
        copy_here(self)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Offer everything that a key does, and each kind of picture by itself."""
        yield from super().get_system_commands(screen)
        for ending, name in zip(PICTURES, ("SVG", "text"), strict=True):
            take = partial(self.call_later, self.action_picture, ending)
            yield SystemCommand(
                f"Screenshot as {name}", "write it into the current directory", take
            )

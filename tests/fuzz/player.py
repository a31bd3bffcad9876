"""Walks through the app in a world, and what must hold on the way.

The app runs without a terminal; logs are read when something happens to them, in the app's own
thread: the same steps bring about the same.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections import deque
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from fuzz.steps import CHARACTERS
from fuzz.worlds import TEXTS, World
from rich.cells import cell_len
from textual import events

from verl_tui.config import Config
from verl_tui.replay import Playback, Recording
from verl_tui.sources.feed import Feed
from verl_tui.text import safe
from verl_tui.tui.app import VerlApp
from verl_tui.tui.replay_app import ReplayApp
from verl_tui.tui.screens.dashboard import Dashboard
from verl_tui.tui.screens.help import HelpScreen
from verl_tui.tui.terminal.output import screen_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from textual.pilot import Pilot

    from verl_tui.monitor import News
    from verl_tui.reading import NewsSource

PATIENCE = 60
"""Seconds of the processor that the answer to a step may take."""
CHECKED = 10
"""Steps from one look at the screen to the next."""
CALLED_BACK = 150
"""Steps from one way back to the dashboard to the next."""
_ESCAPES = 12
"""Escapes that lead back from anywhere."""
_LOOKS = 300
"""Looks, 10 ms apart, at whether what threads read has come."""


class BrokenError(Exception):
    """Something that must always hold does not."""


class Reading:
    """Reads a world's logs whenever it is told to, in the thread that tells it."""

    def __init__(self, folder: Path, notify: Callable[[], object]) -> None:
        self._feed = Feed([str(folder)])
        self._notify = notify
        self._news: deque[News] = deque()

    def start(self) -> None:
        """Read all that there is."""
        self.look()

    def stop(self) -> None:
        """Do nothing: no thread has to end."""

    def look(self) -> None:
        """Read what is new."""
        found = self._feed.scan()
        self._news += [
            found,
            *self._feed.reread,
            *self._feed.read(),
            *self._feed.finish(),
        ]
        self._news.append(replace(found, read=True))
        self._notify()

    def take(self) -> Iterator[News]:
        """Yield what was read."""
        while self._news:
            yield self._news.popleft()

    @property
    def waiting(self) -> bool:
        """True if something was read that has not been taken."""
        return bool(self._news)


class WatchingApp(VerlApp):
    """The app on the logs of a world."""

    world: World
    reading: Reading

    def new_reading(self) -> NewsSource:
        self.reading = Reading(
            self.world.folder, lambda: self.post_message(self.News())
        )
        return self.reading


class Player:
    """Takes steps in an app in a world of its own."""

    def __init__(self, folder: Path, seed: int) -> None:
        """Make the world, and choose what kind of app is there."""
        self.world = World(folder / "logs", seed)
        self.keys = 0
        """Keys pressed so far."""
        self.steps: list[str] = []
        """All steps taken so far."""
        self._rng = Random(seed)
        self._ascii = self._rng.random() < 0.2
        self._replays = self._rng.random() < 0.15
        self._ends_early = False

    async def play(self, steps: Iterable[str]) -> None:
        """Take steps one by one; an app that was quit is started anew.

        Raises:
            BrokenError: Something does not hold that must.
            Exception: Any error of the app's.
        """
        left = deque(steps)
        while left:
            app = self._app()
            # a walk is to end at an error that users would see in a panel
            app.strict = True
            async with app.run_test(size=(120, 40)) as pilot:
                await pilot.pause()
                while left and app.return_code is None:
                    await self._step(app, pilot, left.popleft())
                if app.return_code is None:
                    await self._come_back(app, pilot)
            if app.return_code:
                raise BrokenError(f"the app ended with {app.return_code}")

    def _app(self) -> VerlApp:
        config = Config(refresh=0.05)
        options: dict[str, Any] = {"ascii_only": self._ascii}
        if self._replays:
            recording = Recording.read([str(self.world.folder)])
            if not recording.empty:
                return ReplayApp(Playback(recording, speed=10.0), config, **options)
        WatchingApp.world = self.world
        return WatchingApp(
            [str(self.world.folder)], config, clock=lambda: self.world.now, **options
        )

    async def _step(self, app: VerlApp, pilot: Pilot[Any], step: str) -> None:
        self.steps.append(step)
        with limited(f"no answer to {step} within {PATIENCE} seconds"):
            await self._take(app, pilot, step)
            if len(self.steps) % CHECKED == 0:
                await pilot.pause()
                self._check(app)
        if len(self.steps) % CALLED_BACK == 0 and app.return_code is None:
            await self._come_back(app, pilot)

    async def _take(self, app: VerlApp, pilot: Pilot[Any], step: str) -> None:
        what, _, how = step.partition(":")
        if not how:
            if what == "quiet":
                await self._quiet(app, pilot)
                return
            self.keys += 1
            press(app, what)
            # Most keys come before the ones before them are done: frames take most of the time.
            if self._rng.random() < 0.3:
                await pilot.pause()
        else:
            await getattr(self, f"_take_{what}")(app, pilot, how)

    # -- steps that are no keys --------------------------------------------------------------------

    async def _take_size(self, app: VerlApp, pilot: Pilot[Any], how: str) -> None:
        await pilot.resize_terminal(*map(int, how.split("x")))

    async def _take_click(self, app: VerlApp, pilot: Pilot[Any], how: str) -> None:
        x, y = _clamped(app, *map(int, how.split(",")))
        for kind in (events.MouseMove, events.MouseDown, events.MouseUp):
            app.post_message(mouse(kind, x, y))
        await pilot.pause()

    async def _take_wheel(self, app: VerlApp, pilot: Pilot[Any], how: str) -> None:
        x, y, way = map(int, how.split(","))
        kind = events.MouseScrollDown if way > 0 else events.MouseScrollUp
        app.post_message(mouse(kind, *_clamped(app, x, y)))
        await pilot.pause()

    async def _take_paste(self, app: VerlApp, pilot: Pilot[Any], how: str) -> None:
        app.post_message(events.Paste(TEXTS[int(how)]))
        await pilot.pause()

    async def _take_world(self, app: VerlApp, pilot: Pilot[Any], how: str) -> None:
        self.world.change(int(how))
        if isinstance(app, WatchingApp):
            app.reading.look()
        await pilot.pause()

    async def _take_clock(self, app: VerlApp, pilot: Pilot[Any], how: str) -> None:
        self.world.now += float(how)
        app.post_message(app.News())
        await pilot.pause()

    async def _take_theme(self, app: VerlApp, pilot: Pilot[Any], how: str) -> None:
        themes = sorted(app.available_themes)
        app.theme = themes[int(how) % len(themes)]
        await pilot.pause()

    async def _take_app(self, app: VerlApp, pilot: Pilot[Any], how: str) -> None:
        app.post_message(events.AppBlur() if how == "blur" else events.AppFocus())
        await pilot.pause()

    async def _quiet(self, app: VerlApp, pilot: Pilot[Any]) -> None:
        for _ in range(_LOOKS):
            await pilot.pause()
            if app.return_code is not None or app.browser.idle:
                return
            await asyncio.sleep(0.01)

    # -- what must hold ----------------------------------------------------------------------------

    def _check(self, app: VerlApp) -> None:
        """Every row is as wide as the screen, and has nothing in it that a terminal would obey."""
        if app.return_code is not None:
            return
        rows = screen_rows(app)
        if len(rows) != app.size.height:
            raise BrokenError(f"{len(rows)} rows on a screen of {app.size.height}")
        for at, row in enumerate(rows):
            if cell_len(row) != app.size.width:
                raise BrokenError(
                    f"row {at} has {cell_len(row)} cells, the screen {app.size.width}: {row!r}"
                )
            if safe(row) != row:
                raise BrokenError(
                    f"row {at} has characters that terminals obey: {row!r}"
                )
            if self._ascii and not row.isascii():
                raise BrokenError(f"row {at} is not ASCII: {row!r}")

    async def _come_back(self, app: VerlApp, pilot: Pilot[Any]) -> None:
        """Escapes lead to the dashboard, whatever is open, and a key is answered there."""
        with limited("no way back to the dashboard"):
            for _ in range(_ESCAPES):
                press(app, "escape")
                await pilot.pause()
            await _leads_to(Dashboard, app, pilot, f"{_ESCAPES} escapes")
            press(app, "question_mark")
            await _leads_to(HelpScreen, app, pilot, "the key of the help")
            self._check(app)
            press(app, "escape")
            await _leads_to(Dashboard, app, pilot, "an escape on the help")


async def _leads_to(kind: type, app: VerlApp, pilot: Pilot[Any], what: str) -> None:
    """Wait until a screen is in front: a key may wait for one before it that was lost."""
    for _ in range(_LOOKS):
        await pilot.pause()
        if app.return_code is not None or isinstance(app.screen, kind):
            return
        await asyncio.sleep(0.01)
    raise BrokenError(f"{what} led to {app.screen}")


def press(app: VerlApp, name: str) -> None:
    """Press a key."""
    character = CHARACTERS.get(name, name if len(name) == 1 else None)
    key = {value: key for key, value in CHARACTERS.items()}.get(name, name)
    app.post_message(events.Key(key, character))


def mouse(kind: type[events.MouseEvent], x: int, y: int) -> events.MouseEvent:
    """Return what the mouse does at a place of the screen."""
    return kind(
        widget=None, x=x, y=y, delta_x=0, delta_y=0, button=1, shift=False, meta=False, ctrl=False, screen_x=x, screen_y=y,
    )  # fmt: skip


def _clamped(app: VerlApp, x: int, y: int) -> tuple[int, int]:
    return min(x, app.size.width - 1), min(y, app.size.height - 1)


@contextmanager
def limited(why: str) -> Iterator[None]:
    """Raise an error where something takes far too long, also in an endless loop."""

    def ring(_signal: int, _frame: object) -> None:
        raise BrokenError(why)

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, PATIENCE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def played(
    folder: Path, seed: int, steps: Sequence[str]
) -> tuple[Player, Exception | None]:
    """Walk through a world in a folder of its own; return the player, and the error if there was
    one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    before = Path.cwd()
    os.chdir(folder)  # pictures and tables go to the current directory
    player = Player(folder, seed)
    try:
        asyncio.run(player.play(steps))
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what is searched for
        return player, error
    finally:
        os.chdir(before)
    return player, None

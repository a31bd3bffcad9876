"""The private parts of Textual, pytest's and asyncio's loop that the tests need; no other test
touches any.

* `textual.app.wait_for_idle`, `textual.pilot.wait_for_idle`: pilots look 50 times a second whether
  the processor rests, which takes most of the time of a test and more of it on a busy machine.
  Here they wait until the loop has nothing to do, and no longer.
* `Pilot._wait_for_screen`: around each key and pause each widget gets two messages, a sixth of a
  test's time. Here the loop is waited for.
* `textual.screen.UPDATE_PERIOD`, `Screen._on_timer_update`: screens are painted 60 times a second,
  in more frames the slower the machine is. Here they are painted once there is nothing else to do.
* `Screen._compositor_refresh`: each layout is painted, five of them before an app has started, and
  nobody looks at a frame of a terminal that is none. Here one frame shows all that a wait brought,
  or all keys that were pressed together.
* `Stylesheet._parse_rules`, `Stylesheet._variables`: each app parses the same stylesheets, and
  works out the same styles from them.
* `App._display`, `App._driver`: what is written, and to which terminal.
* `Screen._compositor`: rows with their styles; `verl_tui.tui.terminal.output.screen_rows` has texts.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import pytest
import textual.app
import textual.pilot
import textual.screen
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual._context import active_app
from textual.app import ScreenStackError
from textual.css.stylesheet import Stylesheet
from textual.pilot import Pilot
from textual.screen import Screen

from verl_tui.tui.terminal.output import TerminalOutput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from textual.app import App
    from textual.driver import Driver
    from textual.strip import Strip

__all__ = ["ChopsUpdate", "LayoutUpdate"]
SOON = 0.02
"""Seconds in which a timer is due that is waited for."""
FRAME = 600.0
"""Seconds in which a screen is painted that nobody waits for: in no test, however slow."""
LOOK = 0.004
"""Seconds in which a thread that works takes a fifth of the processor at least."""
LAYOUTS = 3
"""Layouts at most, in one wait, of screens that shine through the one in front."""
MOST = 10.0
"""Seconds of waiting while something goes on and on."""
ROUNDS = 1000
"""Rounds of the loop at most, in which messages are handed on."""
_THREADS = threading.active_count()
"""Threads that are no test's: the runner's own."""
_PAINT: Any = Screen._compositor_refresh
_PRESS = Pilot.press
_UNPAINTED: WeakSet[Screen[Any]] = WeakSet()
"""Screens that are painted with the end of the wait."""


async def wait_until_idle(_min_sleep: float = 0.0, *, paint: bool = True) -> None:
    """Wait until the loop has nothing to do, no timer is due soon and no thread works; then paint,
    and wait for what follows from it.
    """
    loop: Any = asyncio.get_running_loop()
    end = loop.time() + MOST
    layouts = LAYOUTS
    while loop.time() < end:
        await asyncio.sleep(0)
        await asyncio.sleep(0)  # what other threads asked for is heard of here
        if loop._ready or _laid_out():
            continue
        due = min(
            (one.when() for one in loop._scheduled if not one.cancelled()), default=end
        )
        if due - loop.time() < SOON:
            await asyncio.sleep(max(0.0, due - loop.time()))
        elif not await _threads_work():
            if layouts > 0 and _laid_out_behind():
                layouts -= 1
            elif not (paint and _painted()):
                break


async def _press(pilot: Pilot[Any], *keys: str) -> None:
    """Press keys, and paint what they bring about."""
    await _PRESS(pilot, *keys)
    await wait_until_idle()


async def _wait_for_messages(_pilot: Pilot[Any], _timeout: float = 0.0) -> bool:
    """Wait until no message waits for its widget; where they never end, not for all."""
    loop: Any = asyncio.get_running_loop()
    for _ in range(ROUNDS):
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        if not loop._ready:
            break
    return True


def _laid_out_behind() -> bool:
    """Lay out the screens that shine through the one in front, if any waits for that; return
    whether one did.
    """
    try:
        behind: list[Any] = active_app.get().screen_stack[:-1]
    except (LookupError, ScreenStackError):  # no app is open any more
        return False
    waiting = [one for one in behind if one.is_current and _waits(one)]
    for screen in waiting:
        screen._on_timer_update()
    return bool(waiting)


def _painted() -> bool:
    """Paint the screen in front if any of it has not been painted; return whether it did."""
    screen = _screen_in_front()
    if screen not in _UNPAINTED:
        return False
    _UNPAINTED.discard(screen)
    _PAINT(screen)
    return True


def _paint_later(screen: Any) -> None:
    """Paint a screen with the end of a wait, if no terminal shows it and no test counts frames."""
    app = screen.app
    if app.is_headless and screen is app.screen:
        screen._dirty_widgets.clear()
        app._update_mouse_over(screen)
        _UNPAINTED.add(screen)
    else:
        _PAINT(screen)


def _screen_in_front() -> Any:
    """Return the screen in front of the app that is open, None where none is open any more."""
    try:
        return active_app.get().screen
    except (LookupError, ScreenStackError):
        return None


def _laid_out() -> bool:
    """Lay out the screen in front if it waits for that; return whether it did."""
    screen = _screen_in_front()
    if screen is None:
        return False
    waits = screen._scroll_required or screen._repaint_required or _waits(screen)
    if waits and screen.is_current and screen.is_running:
        screen._on_timer_update()
        return True
    return False


def _waits(screen: Any) -> bool:
    """Return whether a screen waits for its next painting with what it was asked for."""
    return bool(screen._layout_required or screen._dirty_widgets or screen._callbacks)


async def _threads_work() -> bool:
    if threading.active_count() <= _THREADS:
        return False
    before = process_time()
    await asyncio.sleep(LOOK)
    return process_time() - before > LOOK / 5 or _threads_want_to_work()


def _threads_want_to_work() -> bool:
    """Return whether a thread waits for a processor or a disk: on a busy machine it may have had
    neither.
    """
    own = threading.get_native_id()
    for task in Path("/proc/self/task").glob("*/stat"):  # none but on Linux
        try:
            state = task.read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):  # it has ended
            continue
        if state in "RD" and task.parent.name != str(own):
            return True
    return False


_PARSED: dict[object, Any] = {}
"""Rules by the stylesheet that they were read from."""


@contextmanager
def quick_pilots() -> Iterator[None]:
    """Have pilots wait for the app only, and read each stylesheet once, not with every app."""
    parse = Stylesheet._parse_rules

    def parse_once(self: Stylesheet, *source: Any, **options: Any) -> Any:
        key = (tuple(self._variables.items()), source, tuple(options.items()))
        if key not in _PARSED:
            _PARSED[key] = parse(self, *source, **options)
        return _PARSED[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stylesheet, "_parse_rules", parse_once)
        between_keys = partial(wait_until_idle, paint=False)
        patch.setattr(textual.app, "wait_for_idle", between_keys)
        patch.setattr(Pilot, "press", _press)
        patch.setattr(textual.pilot, "wait_for_idle", wait_until_idle)
        patch.setattr(Pilot, "_wait_for_screen", _wait_for_messages)
        patch.setattr(textual.screen, "UPDATE_PERIOD", FRAME)
        patch.setattr(Screen, "_compositor_refresh", _paint_later)
        yield


def notices(app: App[Any]) -> list[str]:
    """Return what an app says in passing at the moment."""
    return [one.message for one in app._notifications]


def screen_strips(app: App[Any]) -> list[Strip]:
    """Return the rows of the screen with their styles."""
    return app.screen._compositor.render_strips()


def driver_of(app: App[Any]) -> Driver | None:
    """Return what connects an app with its terminal, None while it does not run."""
    return app._driver


def on_frame(
    monkeypatch: pytest.MonkeyPatch,
    seen: Callable[[Any, Screen[object], object], object],
) -> None:
    """Call a function with app, screen and frame before a frame is written; None is no frame.

    From now on everything is painted when the app would.
    """
    display = TerminalOutput._display

    def displayed(app: Any, screen: Screen[object], frame: Any) -> None:
        seen(app, screen, frame)
        display(app, screen, frame)

    _painted()  # what has been waiting is no frame that follows
    monkeypatch.setattr(TerminalOutput, "_display", displayed)
    monkeypatch.setattr(Screen, "_compositor_refresh", _PAINT)


def count_frames(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count from now on what would be written to the terminal."""
    counts: Counter[str] = Counter()
    on_frame(
        monkeypatch,
        lambda _app, _screen, frame: counts.update(frames=frame is not None),
    )
    return counts

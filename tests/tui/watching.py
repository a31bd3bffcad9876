"""What the tests of the whole app share: logs to look at, the app on them, and what its screen must
always keep to.
"""

from __future__ import annotations

import json
from itertools import combinations, groupby
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from file_writing import write_file
from inside_textual import wait_until_idle
from rich.cells import cell_len
from textual.events import Paste

from verl_tui.config import Config
from verl_tui.monitor import load
from verl_tui.tui.app import VerlApp
from verl_tui.tui.panels.panel import Panel
from verl_tui.tui.screens.dashboard import Dashboard
from verl_tui.tui.screens.log import LogScreen
from verl_tui.tui.terminal.output import screen_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from textual.app import App
    from textual.pilot import Pilot

    from verl_tui.monitor import Monitor

NOW = 1_800_000_000.0
ROUNDS = 400
"""Looks at a condition that threads bring about, 10 to 50 ms apart at least; a test that needs them
all has failed.
"""


def records(first: int, last: int, **metrics: float) -> str:
    """Return lines of a tutorial log, from one step to another."""
    steps = range(first, last + 1)
    values = [
        {
            "reward_mean": 2.5 + 0.01 * (step % 3),
            "kl_div": 0.02 + 0.001 * (step % 5),
            **metrics,
        }
        for step in steps
    ]
    return "".join(
        json.dumps(
            {"scope": "rollout", "step": step, "timestamp": NOW - 1000 + step, **value}
        )
        + "\n"
        for step, value in zip(steps, values, strict=True)
    )


def write_run(
    directory: Path, name: str, steps: int = 30, *, text: str = "", **metrics: float
) -> Path:
    """Write a run in a directory of its own; return its log."""
    log = directory / name / "verl_logs.jsonl"
    return write_file(log, records(1, steps, **metrics) + text)


def sample(step: int, response: str) -> str:
    """Return a line of a tutorial log with a sample."""
    fields = {
        "scope": "sample",
        "step": step,
        "prompt": "say it",
        "response": response,
        "reward": 1.0,
    }
    return json.dumps(fields) + "\n"


def loaded(
    *paths: Path | str, config: Config | None = None, now: float = NOW, **options: Any
) -> VerlApp:
    """Return the app with everything there is already read, and a clock that stands."""
    config = config or Config()
    specs = [str(path) for path in paths]
    return showing(load(specs, config, now), now, **options)


def showing(monitor: Monitor, now: float = NOW, **options: Any) -> VerlApp:
    """Return the app on a monitor that is already filled; it begins with the first run."""
    options = {"shown": next(iter(monitor.runs), None)} | options
    return VerlApp((), monitor.config, monitor=monitor, clock=lambda: now, **options)


def dashboard(app: App[Any]) -> Dashboard:
    """Return the screen below all others."""
    screen = app.screen_stack[0]
    assert isinstance(screen, Dashboard)
    return screen


def lines(app: App[Any]) -> list[str]:
    """Return the rows of the screen; each is exactly as wide as the screen."""
    rows = screen_rows(app)
    widths = {cell_len(row) for row in rows}
    assert widths == {app.size.width}, f"rows of {sorted(widths)} cells at {app.size}"
    return rows


def text(app: App[Any]) -> str:
    """Return the screen as text."""
    return "\n".join(lines(app))


def check_shown(app: App[Any], *words: str) -> None:
    """All these words are on the screen."""
    shown = text(app)
    for one in words:
        assert one in shown, f"{one!r} is not in\n{shown}"


def in_sight(app: App[Any]) -> set[str]:
    """Return which panels of the dashboard are shown."""
    return {
        panel.id or ""
        for panel in dashboard(app).query(Panel)
        if panel.display and panel.region.area
    }


def check_layout(app: App[Any]) -> None:
    """Nothing overlaps, nothing leaves the screen, the screen does not scroll, nothing scrolls
    sideways.
    """
    lines(app)
    screen = app.screen
    whole = screen.region
    assert (whole.width, whole.height) == tuple(app.size), (
        f"a screen of {whole} at {app.size}"
    )
    assert not screen.show_vertical_scrollbar
    assert not screen.show_horizontal_scrollbar
    assert (screen.max_scroll_x, screen.max_scroll_y) == (0, 0)
    shown = [child for child in screen.children if child.display and child.region.area]
    for child in shown:
        assert whole.contains_region(child.region), child
    for one, other in combinations(shown, 2):
        assert not one.region.overlaps(other.region), (one, other)
    for widget in screen.query("*"):
        assert not (
            widget.show_horizontal_scrollbar and widget.scrollbar_size_horizontal
        ), widget


_UP: WeakSet[Pilot[Any]] = WeakSet()
"""Apps whose panels are there, to hear keys."""


async def until(pilot: Pilot[Any], condition: Callable[[], object]) -> None:
    """Let the app work until a condition holds."""
    for count in range(ROUNDS):
        if condition():
            return
        await pilot.pause(min(0.01 * (1 + count), 0.05))  # to look takes a while, too
    raise AssertionError(f"never came true; the screen shows\n{text(pilot.app)}")


async def shows(pilot: Pilot[Any], *words: str) -> None:
    """Let the app work until all these words are on the screen."""
    await until(pilot, lambda: all(map(text(pilot.app).__contains__, words)))


async def start(pilot: Pilot[Any], *, paint: bool = True) -> None:
    """Wait until the app is up and its panels are there, if that has not been waited for.

    Args:
        pilot: Of the app.
        paint: Whether somebody looks at its first frame, which takes as long as all before it.
    """
    if pilot not in _UP:
        _UP.add(pilot)
        await until(pilot, lambda: dashboard(pilot.app).view is not None)
        await wait_until_idle(paint=paint)


class Typed(str):
    """A word that is typed at once, in place of keys: it is drawn once, and not with each letter."""

    __slots__ = ()


async def press(pilot: Pilot[Any], *keys: str) -> None:
    """Press keys once the app is up, and let it draw what they bring about."""
    await start(pilot, paint=not keys)
    for typed, together in groupby(keys, lambda key: isinstance(key, Typed)):
        if typed:
            for word in together:
                pilot.app.post_message(Paste(word))
                await settle(pilot)
        else:
            await pilot.press(*together)  # which waits for what each brings about


async def settle(pilot: Pilot[Any]) -> None:
    """Wait until what was asked for is drawn: a layout, and what depends on its sizes."""
    await pilot.pause()


def all_read(pilot: Pilot[Any]) -> bool:
    """Return whether all that the screen in front shows has been read."""
    screen = pilot.app.screen
    return pilot.app.browser.idle and (
        not isinstance(screen, LogScreen)
        or (screen.window.reader.idle and not screen.window.progress)
    )


async def quiet(pilot: Pilot[Any]) -> None:
    """Wait until all is read and drawn."""
    await settle(pilot)
    await until(pilot, lambda: all_read(pilot))
    await settle(pilot)


def names(app: VerlApp) -> Sequence[str]:
    """Return the names of all runs."""
    return list(app.monitor.runs)

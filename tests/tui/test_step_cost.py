"""What a training step costs on the way to the terminal, on every screen, and that the terminal
shows it.
"""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pyte
import pytest
from rich.color import ColorSystem
from watching import NOW, lines, loaded, press, settle

from verl_tui.records import Batch, MetricRows
from verl_tui.tui.app import VerlApp

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot

SIZE = (120, 40)
GOAL = 4000
"""Bytes of a step."""
SCREENS: dict[str, tuple[str, ...]] = {
    "dashboard": (),
    "runs": ("f2", "z"),
    "charts": ("f3", "z"),
    "health": ("f4", "z"),
    "gpus": ("f5", "z"),
    "samples of a step": ("f6", "z"),
    "chart": ("enter",),
    "smooth chart": ("enter", "s"),
    "all metrics": ("m",),
    "all metrics, table": ("m", "v"),
    "samples": ("o",),
    "timing": ("t",),
    "compare": ("C",),
    "sources": ("i",),
    "config": ("c",),
    "log": ("l",),
    "history": ("A",),
    "help": ("question_mark",),
}
NAMES = (
    *(
        "critic/score/mean",
        "critic/score/max",
        "critic/score/min",
        "actor/ppo_kl",
        "actor/kl_loss",
        "actor/pg_loss",
    ),
    *(
        "actor/entropy",
        "actor/grad_norm",
        "actor/pg_clipfrac",
        "response_length/mean",
        "perf/throughput",
    ),
    *(
        "timing_s/step",
        *(f"timing_s/part_{n}" for n in range(20)),
        *(f"other/metric_{n}" for n in range(60)),
    ),
)
STEPS = 300


class Terminal:
    """What would be written to the terminal, and what it shows."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.bytes = 0
        self._screen = pyte.Screen(*SIZE)
        self._stream = pyte.Stream(self._screen)
        monkeypatch.setattr(
            VerlApp, "_display", lambda app, _screen, update: self._show(app, update)
        )

    def _show(self, app: VerlApp, update: object) -> None:
        if update is not None:
            app.console._color_system = ColorSystem.TRUECOLOR
            text = app._cells.diffed(update).render_segments(app.console)
            self.bytes += len(text.encode())
            self._stream.feed(text)

    def assert_shows(self, app: VerlApp) -> None:
        """Nothing that has changed was left out."""
        assert self._screen.display == lines(app)


def values(step: int) -> list[float]:
    chance = random.Random(step)
    return [
        round(math.sin(step / 50 + n) * 0.3 + 0.5 + chance.gauss(0, 0.05), 6)
        for n in range(len(NAMES))
    ]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.jsonl"
    lines = (
        json.dumps({"step": n, "data": dict(zip(NAMES, values(n), strict=True))})
        for n in range(1, STEPS + 1)
    )
    path.write_text("\n".join(lines) + "\n")
    return path


async def step(pilot: Pilot[int], terminal: Terminal, number: int) -> None:
    """Have a step arrive."""
    app = pilot.app
    assert isinstance(app, VerlApp)
    (run,) = app._monitor.runs.values()
    source = next(one for one in run.sources.values() if one.step is not None)
    columns = tuple((value,) for value in values(number))
    size = (source.status.size or 0) + 3000
    batch = Batch(
        run.name,
        replace(source.status, modified=NOW, size=size, bytes_read=size),
        (MetricRows(NAMES, (number,), columns, (number,)),),
        live=True,
    )
    app._monitor.apply(batch, NOW)
    app._paint()
    await still(pilot, terminal)


async def still(pilot: Pilot[int], terminal: Terminal) -> None:
    """Wait until nothing is drawn a moment later any more."""
    before = -1
    while before != terminal.bytes:
        before = terminal.bytes
        await pilot.pause(0.02)


async def test_a_step_costs_little_on_every_screen(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal(monkeypatch)
    app, number = loaded(log), STEPS
    costs: dict[str, float] = {}
    async with app.run_test(size=SIZE) as pilot:
        for name, keys in SCREENS.items():
            await press(pilot, *keys)
            await still(pilot, terminal)
            before = terminal.bytes
            app._paint()
            await still(pilot, terminal)
            assert terminal.bytes == before, f"{name}: nothing is new, and yet something is written"
            for _ in range(2):
                number += 1
                await step(pilot, terminal, number)
            costs[name] = (terminal.bytes - before) / 2
            terminal.assert_shows(app)
            while len(app.screen_stack) > 1:
                app.pop_screen()
                await settle(pilot)
            await press(pilot, "0")
            terminal.assert_shows(app)
    assert costs["dashboard"] > 100, "it is drawn at all"
    assert {name: cost for name, cost in costs.items() if cost > GOAL} == {}
    assert all(costs[name] == 0 for name in ("samples", "config", "history", "help"))


async def test_the_whole_screen_is_written_where_the_terminal_was_somebody_elses(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal(monkeypatch)
    app = loaded(log)
    async with app.run_test(size=SIZE) as pilot:
        await still(pilot, terminal)
        for come_back in (app.action_redraw, lambda: app.app_resume_signal.publish(app)):
            before = terminal.bytes
            come_back()
            await still(pilot, terminal)
            assert terminal.bytes - before > SIZE[0] * SIZE[1], "each cell is a byte at least"

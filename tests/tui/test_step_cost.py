"""What a training step costs on the way to the terminal, on every screen, and that the terminal
shows it.
"""

from __future__ import annotations

import math
import random

import pytest
from emulated import check_cells, emulated, emulator
from inside_textual import count_frames
from jsonl import write_jsonl
from watching import NOW, loaded, press, quiet, settle

from verl_tui.records import Batch, MetricRows
from verl_tui.tui.app import VerlApp

# all colours cost bytes
pytestmark = [pytest.mark.long, pytest.mark.usefixtures("true_colour")]
SIZE = (120, 40)
GOAL = 4000
"""Bytes of a step."""
SCREENS: dict[str, tuple[str, ...]] = {
    "dashboard": (),
    "charts": ("f3", "z"),
    "samples of a step": ("f6", "z"),
    "chart": ("f3", "enter"),
    "all metrics": ("m",),
    "all metrics, table": ("m", "v"),
    "samples": ("o",),
    "timing": ("t",),
    "compare": ("C",),
    "config": ("c",),
    "log": ("l",),
    "history": ("A",),
    "help": ("question_mark",),
    "prompts": ("O",),
    "sources": ("i",),
}
STILL = ("samples", "prompts", "config", "history", "help", "log")
"""Screens on which a step changes nothing."""
NAMES = (
    *("critic/score/mean", "critic/score/max", "critic/score/min", "actor/ppo_kl", "actor/kl_loss", "actor/pg_loss"),
    *("actor/entropy", "actor/grad_norm", "actor/pg_clipfrac", "response_length/mean", "perf/throughput"),
    *("timing_s/step", *(f"timing_s/part_{n}" for n in range(20)), *(f"other/metric_{n}" for n in range(60))),
)  # fmt: skip
STEPS = 300


def values(step):
    chance = random.Random(step)
    return [
        round(math.sin(step / 50 + n) * 0.3 + 0.5 + chance.gauss(0, 0.05), 6)
        for n in range(len(NAMES))
    ]


@pytest.fixture
def log(tmp_path):
    rows = [
        {"step": n, "data": dict(zip(NAMES, values(n), strict=True))}
        for n in range(1, STEPS + 1)
    ]
    return write_jsonl(tmp_path / "log.jsonl", rows)


async def step(pilot, number):
    """Have a step arrive."""
    app = pilot.app
    assert isinstance(app, VerlApp)
    (run,) = app.monitor.runs.values()
    source = next(one for one in run.sources.values() if one.step is not None)
    columns = tuple((value,) for value in values(number))
    size = (source.status.size or 0) + 3000
    batch = Batch(
        run.name,
        source.status._replace(modified=NOW, size=size, bytes_read=size),
        (MetricRows(NAMES, (number,), columns, (number,)),),
        live=True,
    )
    app.monitor.apply(batch, NOW)
    app.paint()
    await settle(pilot)


def bytes_written(app):
    """Return how many bytes the terminal has got since one has looked."""
    written = emulator(app).written
    count = len("".join(written).encode())
    written.clear()
    return count


async def test_a_step_costs_little_and_none_nothing_on_every_screen(log, monkeypatch):
    frames = count_frames(monkeypatch)
    app, number = loaded(log), STEPS
    costs: dict[str, int] = {}
    async with emulated(app, SIZE) as pilot:
        for name, keys in SCREENS.items():
            await press(pilot, *keys)
            app.tick()
            await quiet(pilot)
            frames.clear()
            app.tick()
            await settle(pilot)
            assert not frames["frames"], f"{name}: nothing is new, and yet it is drawn"
            bytes_written(app)
            number += 1
            await step(pilot, number)
            costs[name] = bytes_written(app)
            assert frames["frames"] or name in STILL, f"{name} is drawn at all"
            check_cells(app)
            while len(app.screen_stack) > 1:
                app.pop_screen()
                await settle(pilot)
            await press(pilot, "0")
            check_cells(app)
    assert {name: cost for name, cost in costs.items() if cost > GOAL} == {}
    assert {costs[name] for name in STILL} == {0}


async def test_a_frame_that_changes_no_cell_writes_nothing(log):
    app = loaded(log)
    async with emulated(app, SIZE) as pilot:
        for keys in (), ("o",), ("escape", "question_mark"):
            await press(pilot, *keys)
            await quiet(pilot)
            bytes_written(app)
            app.screen.refresh()
            await settle(pilot)
            assert not bytes_written(app), "not even where the cursor is"
            app.cursor_position += (1, 1)
            app.screen.refresh()
            await settle(pilot)
            assert bytes_written(app), "it has moved"


async def test_the_whole_screen_is_written_where_the_terminal_was_somebody_elses(log):
    app = loaded(log)
    async with emulated(app, SIZE) as pilot:
        await press(pilot)
        for come_back in (
            app.action_redraw,
            lambda: app.app_resume_signal.publish(app),
        ):
            bytes_written(app)
            come_back()
            await settle(pilot)
            assert bytes_written(app) > SIZE[0] * SIZE[1], (
                "each cell is a byte at least"
            )

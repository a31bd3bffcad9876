"""Draws the pictures of the README from the real app on the demo's logs, one of them a recording of
its replay.

    python screenshots/make.py            draws them
    python screenshots/make.py --check    tells whether they are stale, by their text (exit code 1)
    ... --stills                          leaves the recording out, which takes a third of the time

The clock, the seed and the time zone are fixed, so that the same program draws the same pictures.
"""

from __future__ import annotations

import asyncio
import html
import os
import re
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recording import Frame, recording

from verl_tui.config import Config
from verl_tui.demo.grpo import Simulation
from verl_tui.monitor import load
from verl_tui.records import Gpu, GpuReading
from verl_tui.replay import Playback, Recording
from verl_tui.runs.views.devices import DeviceHistory
from verl_tui.tui.app import VerlApp
from verl_tui.tui.base_app import PLAIN
from verl_tui.tui.export import screen_picture, settled
from verl_tui.tui.replay_app import ReplayApp

if TYPE_CHECKING:
    from collections.abc import Iterator

    from textual.pilot import Pilot

    from verl_tui.monitor import Monitor

HERE = Path(__file__).parent
NOW = 1_767_312_000.0
"""The moment at which all pictures are taken, seconds since the epoch."""
READINGS = 240
"""Seconds that the GPUs have been looked at."""
STEPS = 42
"""Steps the demo has gone on for: far enough for the collapse to be seen."""


@dataclass(frozen=True)
class Picture:
    """One picture: its size, and the keys that lead to what it shows."""

    name: str
    size: tuple[int, int]
    keys: tuple[str, ...] = ()
    devices: int = 4
    """GPUs of the machine in the picture."""
    theme: str = ""
    """Name of its theme, empty for the usual one."""


PICTURES = (
    Picture("dashboard", (140, 45), ("2",)),
    Picture("medium", (80, 24), ("2",)),
    Picture("narrow", (40, 12), ("2",)),
    Picture("health", (100, 30), ("2", "e", "f4", "z", "space")),
    Picture("zoom", (110, 32), ("2", "enter")),
    Picture("timing", (110, 30), ("1", "t")),
    Picture("samples", (110, 30), ("1", "o")),
    Picture("metrics", (140, 36), ("1", "m")),
    Picture("compare", (110, 30), ("f2", "space", "j", "space", "C")),
    Picture("log", (110, 30), ("1", "l")),
    Picture("sixteen", (100, 30), ("2",), theme=PLAIN),
    Picture("light", (100, 30), ("2",), theme="textual-light"),
    Picture("gpus", (110, 30), ("2", "f5"), devices=8),
)


@dataclass(frozen=True)
class Scene:
    """One picture of the recording: what leads to it, and how long it is seen."""

    seconds: float
    step: int | None = None
    """Step that the replay goes on to, None where it stands."""
    keys: tuple[str, ...] = ()


RUN = "run_grpo_high_lr"
SCENES = (
    *(Scene(0.8, step) for step in (20, 50, 80, 110, 130)),
    *(Scene(1.2, step) for step in (144, 146, 150)),
    Scene(2.0, 158),
    Scene(2.5, keys=("e",)),
    Scene(3.5, keys=("f4", "z", "space")),
    Scene(3.0, keys=("z", "f3", "enter")),
    Scene(3.0, keys=("escape", "l")),
)
"""The recording: a run collapses, what is found, and the evidence."""


def main() -> int:
    """Draw the pictures, or compare them."""
    os.environ["TZ"] = "UTC"
    time.tzset()
    stale = []
    with tempfile.TemporaryDirectory() as directory:
        write_logs(Path(directory))
        for name, svg in drawn(Path(directory)):
            path = HERE / f"{name}.svg"
            if "--check" not in sys.argv:
                path.write_text(svg, encoding="utf-8")
            elif not path.exists() or words(path.read_text(encoding="utf-8")) != words(
                svg
            ):
                stale.append(path.name)
    if stale:
        print(f"stale, draw them with python screenshots/make.py: {', '.join(stale)}")
    return 1 if stale else 0


def drawn(directory: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and the SVG of each picture that is asked for."""
    yield from draw(directory)
    if "--stills" not in sys.argv:
        yield "demo", play(directory)


def write_logs(directory: Path) -> None:
    """Write the demo's logs as they are some time after its start."""
    moment = NOW - STEPS
    simulation = Simulation(directory, seed=7, now=lambda: moment)
    simulation.prepare()
    for _ in range(STEPS):
        moment += 1
        simulation.advance()
    for path in directory.rglob("*"):
        os.utime(path, (NOW - 2, NOW - 2))


def draw(directory: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and the SVG of each picture."""
    specs = [f"{directory}/run_*"]
    monitor = read_held_open(directory, specs)
    for devices, pictures in groupby(PICTURES, key=lambda picture: picture.devices):
        monitor.gpu_history = DeviceHistory()
        for ago in range(READINGS, -1, -1):
            monitor.apply(GpuReading(NOW - ago, gpus(devices, ago)), NOW - ago)
        for picture in pictures:
            app = VerlApp(specs, Config(), monitor=monitor, clock=lambda: NOW)
            yield picture.name, asyncio.run(_frame(app, picture))


def read_held_open(directory: Path, specs: list[str]) -> Monitor:
    """Read the logs while they are held open, as whoever trains holds them."""
    with ExitStack() as held:
        for path in directory.rglob("*"):
            if path.is_file():
                held.enter_context(path.open("ab"))
        return load(specs, Config(), NOW)


def play(directory: Path) -> str:
    """Return the recording of a replay of the demo."""
    recorded = Recording.read([f"{directory}/{RUN}"])
    playback = Playback(recorded, speed=2.0, wall=lambda: 0.0)
    app = ReplayApp(playback, Config(refresh=0.01))
    return recording(asyncio.run(_frames(app, playback)), poster=9)


async def _frames(app: ReplayApp, playback: Playback) -> list[Frame]:
    frames = []
    async with app.run_test(size=(100, 30)) as pilot:
        for scene in SCENES:
            if (
                scene.step is not None
                and (moment := playback.recording.when(scene.step)) is not None
            ):
                playback.go(moment)
            for key in scene.keys:
                await settled(pilot, app.browser)
                await pilot.press(key)
            frames.append(Frame(await _still(app, pilot), scene.seconds))
    return frames


async def _still(app: ReplayApp, pilot: Pilot[Any]) -> str:
    """Return the screen as it stays: on a busy machine one that has settled may be drawn again."""
    before, svg = None, ""
    while before != svg:
        before = svg
        await settled(pilot, app.browser)
        svg = screen_picture(app, ".svg", f"verl-tui replay logs/{RUN}")
    return svg


async def _frame(app: VerlApp, picture: Picture) -> str:
    async with app.run_test(size=picture.size) as pilot:
        await pilot.pause()
        app.theme = picture.theme or app.theme
        for key in picture.keys:
            await settled(pilot, app.browser)
            await pilot.press(key)
        await settled(pilot, app.browser)
        return screen_picture(app, ".svg")


def gpus(count: int, ago: int) -> tuple[Gpu, ...]:
    """Return devices for the pictures, as they were some seconds ago: most machines that draw them
    have none.
    """
    gib = 2**30
    busy = [92.0 - 3 * i - 30 * ((ago // 6 + i // 4) % 5 == 0) for i in range(count)]
    return tuple(
        Gpu(
            str(i),
            "NVIDIA H100 80GB HBM3",
            share,
            (58 + i) * gib,
            80 * gib,
            58 + i + share / 20,
            90 + 5 * share,
            700.0,
        )
        for i, share in enumerate(busy)
    )


def words(svg: str) -> list[str]:
    """Return the text of a picture: colours and positions may change with the libraries that draw
    it.
    """
    text = "".join(
        html.unescape(found) for found in re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    )
    return text.replace("\xa0", " ").replace("\u2800", " ").split()


if __name__ == "__main__":
    sys.exit(main())

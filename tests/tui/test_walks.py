"""Random keys and sizes: nothing that somebody types ends the app.

`VERL_TUI_WALKS=20` has twenty long walks on each kind of log in a terminal of their own, a key each
8 ms.
"""

from __future__ import annotations

import os
from random import Random
from typing import TYPE_CHECKING

import pytest
from textual.events import Key
from walks import Resized, any_size, end_of_walk, usual_size, walk, write_worst
from watching import NOW, showing, start

from verl_tui.config import Config
from verl_tui.monitor import load

if TYPE_CHECKING:
    from pathlib import Path

    from verl_tui.monitor import Monitor

pytestmark = pytest.mark.pty

WALKS = int(os.environ.get("VERL_TUI_WALKS", "0"))
LENGTH = 400
SIZED = {"usual sizes": usual_size, "any size": any_size}


@pytest.fixture(scope="module", params=["healthy", "worst"])
def kind(request: pytest.FixtureRequest) -> str:
    """A kind of logs."""
    return str(request.param)


@pytest.fixture(scope="module")
def world(kind: str, simulated: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Logs of a kind."""
    if kind == "healthy":
        return simulated
    folder = tmp_path_factory.mktemp(kind)
    write_worst(folder)
    return folder


@pytest.fixture(scope="module")
def runs(kind: str, world: Path, demo: Monitor) -> Monitor:
    """The logs, read once."""
    return demo if kind == "healthy" else load([str(world)], Config(), NOW)


@pytest.mark.parametrize(
    "sized", [pytest.param("usual sizes", marks=pytest.mark.thorough), "any size"]
)
async def test_a_short_walk(sized: str, runs: Monitor) -> None:
    app = showing(runs)
    async with app.run_test(size=(120, 40)) as pilot:
        await start(pilot)
        for at, step in enumerate(walk(5, 60, SIZED[sized])):
            if isinstance(step, Resized):
                await pilot.resize_terminal(*step)
            else:
                app.post_message(Key(step, step if len(step) == 1 else None))
            if at % 5 == 0:
                await pilot.pause()
            if app.return_code is not None:
                break  # a command of the palette ends the app, too
        await pilot.resize_terminal(120, 40)
        await pilot.pause()
    assert not app.return_code  # an error would have come up by itself


@pytest.mark.timeout(0)
@pytest.mark.skipif(not WALKS, reason="VERL_TUI_WALKS is not set")
@pytest.mark.parametrize("seed", range(WALKS))
@pytest.mark.parametrize("sized", SIZED)
def test_a_long_walk(seed: int, sized: str, world: Path, tmp_path: Path) -> None:
    size = usual_size(Random(seed))
    status, last = end_of_walk(walk(seed, LENGTH, SIZED[sized]), size, world, tmp_path)
    assert status == 0, last

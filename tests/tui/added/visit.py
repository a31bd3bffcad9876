"""Visits the app that has been added to, and prints as JSON what it saw."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from inside_textual import quick_pilots
from watching import in_sight, loaded, press, text, write_run

from verl_tui.tui.keys import usual_keys
from verl_tui.tui.screens.palette import matching
from verl_tui.tui.widgets.rows import Rows


def palette(app, words):
    every = [*app.get_system_commands(app.screen)]
    return [one.title for one in matching(every, words)]


async def helped(app, pilot):
    """Return the help as it is opened here, and close it."""
    await press(pilot, "question_mark")
    rows = app.screen.query_one("#list", Rows).plain
    await press(pilot, "escape")
    return rows


async def visit(log):
    seen = {"names": sorted(usual_keys())}
    app = loaded(log)
    async with app.run_test(size=(100, 30)) as pilot:
        await press(pilot)
        seen["help"] = await helped(app, pilot)
        seen["palette"] = palette(app, "notes") + palette(app, "weather")
        await press(pilot, "f12")
        seen["screen"], seen["screen's help"] = text(app), await helped(app, pilot)
        await press(pilot, "escape", "f10")
        seen["panel's help"] = await helped(app, pilot)
    app = loaded(log)
    async with app.run_test(size=(200, 50)) as pilot:
        await press(pilot)
        seen["wide"], seen["wide in sight"] = text(app), sorted(in_sight(app))
    return seen


with quick_pilots():
    print(json.dumps(asyncio.run(visit(write_run(Path(sys.argv[1]), "run")))))

"""The command palette finds actions by what people call them, and the keys that are named are those
in force.
"""

from __future__ import annotations

import pytest
from watching import loaded, press, text, until, write_run

from verl_tui.config import Config
from verl_tui.tui.screens.palette import ALSO, matching

SAID = {
    "export": {"Write the points in sight to a CSV file", "Screenshot (SVG and text)"},
    "picture": {"Screenshot (SVG and text)"},
    "error": {"Next finding", "Log: the console as text", "Sources"},
    "quit": {"Quit"},
    "exit": {"Quit"},
    "copy": {"Copy what the cursor is at"},
    "save": {"Write the points in sight to a CSV file", "Screenshot (SVG and text)"},
    "csv": {"Write the points in sight to a CSV file"},
    "theme": {"Theme"},
    "colo": {"Theme"},
    "smooth": {"Smoother", "Less smooth, then raw values"},
    "log scale": {"Log scale"},
    "filter": {"Filter"},
    "Search": {"Filter"},
}


def found(app, typed):
    """Return the titles of what the palette offers, best first."""
    every = [*app.get_system_commands(app.screen)]
    return [one.title for one in matching(every, typed)]


async def test_what_people_say_finds_what_they_mean(tmp_path):
    app = loaded(write_run(tmp_path, "run", 3))
    async with app.run_test(size=(100, 30)) as pilot:
        await press(pilot)
        for said, titles in SAID.items():
            assert titles <= set(found(app, said)[: len(titles) + 4]), said
        every = " | ".join(
            command.title.lower() for command in app.get_system_commands(app.screen)
        )
        for said, words in ALSO.items():
            assert any(word in every for word in words), said
        assert found(app, "xyzzy") == []
        # The palette itself searches so.
        await press(pilot, "ctrl+p", *"picture")
        await until(pilot, lambda: "Screenshot (SVG and text)" in text(app))


@pytest.mark.parametrize(
    "size", [pytest.param((140, 45), marks=pytest.mark.thorough), (80, 24), (40, 20)]
)
async def test_a_command_has_a_row_of_the_palette_with_its_key(tmp_path, size):
    app = loaded(write_run(tmp_path, "run", 3), config=Config(keys={"timing": "f12"}))
    async with app.run_test(size=size) as pilot:
        await press(pilot, "ctrl+p", *"timing")
        await until(pilot, lambda: "Timing: " in text(app))
        (row,) = (line for line in text(app).splitlines() if "Timing: " in line)
        assert "f12" in row.split()[-2:]  # a wide screen goes on beside the palette
        await press(pilot, *["backspace"] * 6)
        await until(pilot, lambda: "Acknowledge" in text(app))
        rows = [line for line in text(app).splitlines() if line.strip()]
        at = next(i for i, line in enumerate(rows) if "Acknowledge finding" in line)
        assert "All metrics" in rows[at + 1]


@pytest.mark.parametrize(
    ("keys", "said"), [({}, "q quits"), ({"quit": "f10"}, "f10 quits")]
)
async def test_ctrl_c_names_the_key_that_quits(tmp_path, keys, said):
    app = loaded(write_run(tmp_path, "run", 3), config=Config(keys=keys))
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        await press(pilot, "ctrl+c")
        assert said in text(app)

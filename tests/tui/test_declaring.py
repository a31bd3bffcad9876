"""A screen, a panel, a command and an export are added by their own files alone: those in `added`,
put into a copy of the package, are found in help, palette, keys, last row and on their keys.
"""

from __future__ import annotations

import json
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from command_line import copy_package, python_with_copy

from verl_tui.tui.app import SCREENS
from verl_tui.tui.screens.dashboard_layout import PANELS

HERE = Path(__file__).parent
Seen = dict[str, Any]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Return what runs Python with a copy of the package that the files were put into."""
    folder = tmp_path_factory.mktemp("added")
    copy = copy_package(folder)
    for path in (HERE / "added").rglob("*/*.py"):
        target = copy / path.relative_to(HERE / "added")
        assert not target.exists(), "nothing that is there is changed"
        target.parent.mkdir(exist_ok=True)
        shutil.copy(path, target)
    places = (HERE, HERE / "terminal", HERE.parent)
    return partial(python_with_copy, folder, places=places)


@pytest.fixture(scope="module")
def seen(run, tmp_path_factory):
    """What was seen in the app."""
    found: Seen = json.loads(
        run(HERE / "added" / "visit.py", tmp_path_factory.mktemp("log"))
    )
    return found


def test_a_screen_opens_on_its_key(seen):
    assert "notes of run" in seen["screen"]
    assert "learning rate halved" in seen["screen"]
    assert "f12 Notes" in seen["wide"].splitlines()[-1]


def test_a_screen_is_in_help_palette_and_keys(seen):
    assert "  f12               Notes about the run" in seen["help"]
    assert "Notes about the run" in seen["palette"]
    assert {"notes.open", "notes.close", "notes.write"} <= set(seen["names"])
    assert "\nmove and look · notes\n" in seen["help"], "behind the others"
    assert seen["screen's help"].startswith("move and look · notes\n"), (
        "in front it comes first"
    )
    section = seen["screen's help"].split("\n\n")[0]
    assert "Write a note" in section
    assert "Previous run" in section, "which every such screen has"
    assert section.rstrip().endswith("a note is a line of text")


def test_a_panel_is_in_help_palette_and_keys(seen):
    assert "f10               Weather" in seen["help"]
    assert "Weather" in seen["palette"]
    assert "Weather: celsius or Fahrenheit" in seen["palette"]
    assert {"panel.weather", "weather.unit"} <= set(seen["names"])
    assert seen["panel's help"].startswith("move and look · weather, with the focus\n")


def test_a_panel_says_its_place_in_a_layout(seen):
    assert "weather" in seen["wide in sight"]
    assert "hot and windy" in seen["wide"]
    assert len(seen["wide in sight"]) == len(PANELS) - 1, (
        "one run needs no list, health adds nothing to the verdict, and it takes nobody's place"
    )


SAYS = """
import json, sys, verl_tui.tui.app
imported = [*sys.modules]
from contextlib import redirect_stdout, suppress
from io import StringIO
from verl_tui.__main__ import main
said = []
for words in ("--help", "hello --loud", "export --help", "export postcard"):
    with redirect_stdout(StringIO()) as out, suppress(SystemExit):
        main(words.split())
    said.append(out.getvalue())
print(json.dumps([imported, *said]))
"""
"""Prints what the app's start imports, and what commands write, all in one process."""


def test_a_command_and_an_export_are_in_help_and_run(run):
    imported, usage, hello, exports, postcard = json.loads(run("-c", SAYS))
    assert "verl_tui.tui.screens.notes" in imported
    # A command and an export are in the help, and run.
    assert "greets whoever reads this" in usage
    assert hello == "HELLO\n"
    assert "writes a postcard" in exports
    assert postcard == "dear all\n"


def test_each_key_and_name_is_declared_once():
    declared = [*PANELS, *SCREENS.values()]
    assert len({one.key for one in declared}) == len(declared)
    assert len({one.name for one in PANELS}) == len(PANELS)
    assert len({one.id for one in SCREENS.values()}) == len(SCREENS)

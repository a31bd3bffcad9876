"""What is imported before the first frame: starting is mostly importing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from command_line import python
from watching import write_run

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
import sys
from verl_tui.cli import main
from verl_tui.tui import app

class Reading:
    waiting = False
    def __init__(self, app):
        self.app = app
    def start(self):  # once the first frame is there
        print(*sys.modules)
        self.app.exit()
    def stop(self):
        pass

app.VerlApp.new_reading = lambda app: Reading(app)
main(sys.argv[1:])
"""
LATER = [
    *("verl_tui.sources.feed", "verl_tui.sources.preview", "verl_tui.sources.pool"),
    *("verl_tui.health.guide", "verl_tui.health.judge", "verl_tui.health.diagnoses"),
    *("verl_tui.comparison", "verl_tui.replay", "verl_tui.report", "verl_tui.bundle"),
    *("verl_tui.notify.notifier", "plotext"),
    "numpy",
]
"""What comes later by `verl_tui/README.md`."""


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    """The modules that the app has imported by its first frame."""
    folder: Path = tmp_path_factory.mktemp("start")
    log = write_run(folder, "run")
    headless = "textual.drivers.headless_driver:HeadlessDriver"
    environment = {
        **os.environ,
        "TEXTUAL_DRIVER": headless,
        "XDG_CONFIG_HOME": str(folder),
    }
    done = python("-c", PROGRAM, log, env=environment)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_what_the_first_frame_does_not_need_is_imported_after_it(imported):
    assert "verl_tui.tui.screens.dashboard" in imported
    assert not [name for name in imported if name.startswith(tuple(LATER))]

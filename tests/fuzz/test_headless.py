"""Every command without a screen answers whatever the logs hold: with an exit code it may have, in
plain text, and never by a traceback. Each is asked of one run, of the next in turn; with
--thorough of all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from fuzz.extremes import EXTREMES
from fuzz.headless import COMMANDS, asked

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(
    scope="module",
    params=[one if one == "mixed" else pytest.param(one, marks=pytest.mark.thorough) for one in EXTREMES],
)  # fmt: skip
def folder(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Hold hostile runs."""
    path = tmp_path_factory.mktemp("hostile")
    EXTREMES[request.param](path)
    return path


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_answers(command, folder, tmp_path, pytestconfig, monkeypatch):
    monkeypatch.setenv("VERL_TUI_STATE", "")
    runs = sorted(folder.iterdir())
    each = pytestconfig.getoption("thorough") and "RUN" in command and len(runs) < 5
    if not each:
        runs = [runs[COMMANDS.index(command) % len(runs)]]
    for number, run in enumerate(runs):
        scratch = tmp_path / f"{number}"
        scratch.mkdir()
        asked(command, folder, run, scratch)

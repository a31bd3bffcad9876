"""Every command without a screen answers whatever the logs hold: with an exit code it may have, in
plain text, and never by a traceback. With options it is asked of one run, of the next in turn.
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
def test_a_command_answers(
    command: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VERL_TUI_STATE", "")
    runs = sorted(folder.iterdir())
    if not command.endswith("RUN") or len(runs) > 4:
        runs = [runs[COMMANDS.index(command) % len(runs)]]
    for number, run in enumerate(runs):
        scratch = tmp_path / f"{number}"
        scratch.mkdir()
        asked(command, folder, run, scratch)

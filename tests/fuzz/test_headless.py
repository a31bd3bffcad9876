"""Every command without a screen answers whatever the logs hold: with an exit code it may have, in
plain text, and never by a traceback.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from fuzz.extremes import EXTREMES
from fuzz.headless import COMMANDS, asked

if TYPE_CHECKING:
    from pathlib import Path

SLOW = ("bundle", "replay", "guard")
"""Commands that are asked of one run only."""


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
    each = "RUN" in command and len(runs) < 5 and not command.startswith(SLOW)
    for number, run in enumerate(runs if each else runs[:1]):
        scratch = tmp_path / f"{number}"
        scratch.mkdir()
        asked(command, folder, run, scratch)

"""The app works on a Textual whose private parts have other names."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import textual
from watching import write_run

import verl_tui

if TYPE_CHECKING:
    import pytest

PRIVATE = [
    "_auto_restart",
    "_compositor",
    "_compositor_refresh",
    "_disable_mouse_support",
    "_disable_tooltips",
    "_display",
    "_driver",
    "_full_map",
    "_must_signal_resume",
    "_on_timer_update",
    "_post_register",
    "_prune",
    "_refresh_layout",
    "_repaint_required",
    "_screen_resized",
    "_scroll_update",
    "_sigcont_application",
    "_xterm_parser",
]
"""What the docstring of `verl_tui.tui.terminal` lists."""
NAME = re.compile(rf"(?<![A-Za-z0-9_])({'|'.join(PRIVATE)})\b")


def rename_private_parts(package: Path) -> None:
    for path in package.rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        renamed = NAME.sub(r"_other\1", source)
        if renamed != source:
            path.write_text(renamed, encoding="utf-8")
    for name in ("_compositor", "_xterm_parser"):
        (package / f"{name}.py").rename(package / f"_other{name}.py")


def snapshot(log: Path, picture: Path, *paths: Path) -> str:
    """Return the screen that a process of its own draws, with packages of these paths first."""
    root = Path(verl_tui.__file__).parent.parent
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, (*paths, root))),
    }
    command = [
        sys.executable,
        "-m",
        "verl_tui",
        "--snapshot",
        picture,
        "--size",
        "80x24",
        log,
    ]
    subprocess.run(command, check=True, env=environment, timeout=120)
    # ages stand in the first row
    return picture.read_text(encoding="utf-8").partition("\n")[2]


def test_the_app_draws_the_same_without_any_private_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = write_run(tmp_path, "grpo", 30)
    other = tmp_path / "other"
    here = Path(textual.__file__).parent
    shutil.copytree(
        here, other / "textual", ignore=shutil.ignore_patterns("__pycache__")
    )
    rename_private_parts(other / "textual")
    plain = snapshot(log, tmp_path / "plain.txt", other)
    assert "reward" in plain
    assert plain == snapshot(log, tmp_path / "usual.txt")

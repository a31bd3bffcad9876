"""The machine and the terminal that verl-tui runs on, as far as it depends on them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from verl_tui.given_files import is_there
from verl_tui.rendering.text.ascii_table import keeps_to_ascii
from verl_tui.sources.host.gpus import HANGS, GpuSource, in_time
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from verl_tui.config import Config
    from verl_tui.plain_data import Data

_INOTIFY = Path("/proc/sys/fs/inotify")
_LIMITS = ("max_user_watches", "max_user_instances", "max_queued_events")
_VARIABLES = ("TERM", "COLORTERM", "TERM_PROGRAM", "NO_COLOR", "LANG", "LC_ALL")
_COLOURS: Mapping[str | None, str] = {
    None: "none",
    "standard": "16",
    "256": "256",
    "truecolor": "16 million",
    "windows": "16",
}


def terminal(config: Config, environment: Mapping[str, str] = os.environ) -> Data:
    """Return what the terminal can show, and what it is asked to."""
    from rich.console import Console

    size = shutil.get_terminal_size()
    system = Console(
        force_terminal=True, legacy_windows=False, _environ=environment
    ).color_system
    dumb = environment.get("TERM") in ("dumb", "unknown")
    return {
        "is_terminal": bool(sys.stdin) and sys.stdin.isatty() and sys.stdout.isatty(),
        "columns": size.columns,
        "rows": size.lines,
        "colours": "none" if dumb or environment.get("NO_COLOR") else _COLOURS[system],
        "characters": "ASCII"
        if keeps_to_ascii(config.ascii, environment)
        else "Unicode, braille",
        "mouse": "reported" if config.mouse and not dumb else "left to the terminal",
        "inside": _inside(environment),
        "variables": {
            name: environment[name] for name in _VARIABLES if name in environment
        },
    }


def _inside(environment: Mapping[str, str]) -> str | None:
    """Return the multiplexer in which it runs, and whether that lets notifications through."""
    if environment.get("TMUX"):
        passes = _tmux("allow-passthrough")
        return "tmux" + (f", allow-passthrough {passes}" if passes else "")
    return "screen" if environment.get("STY") else None


def _tmux(option: str) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - fixed words, and no shell
            ["tmux", "show", "-gv", option],  # noqa: S607 - the tmux that the user has started
            capture_output=True,
            timeout=2,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return one_line(done.stdout.decode("utf-8", "replace"), 40)


def nvml(now: float) -> Data:
    """Return the NVIDIA driver and devices, or why there are none."""
    return in_time(lambda: _nvml(now)) or {
        "problem": HANGS,
        "driver": None,
        "devices": [],
    }


def _nvml(now: float) -> Data:
    import pynvml

    source = GpuSource()
    reading = source.read(now)
    driver = None
    if reading.problem is None:
        with suppress(pynvml.NVMLError):
            driver = one_line(str(pynvml.nvmlSystemGetDriverVersion()), 40)
    source.close()
    devices = [
        {"index": gpu.index, "name": gpu.name, "fault": gpu.fault or None}
        for gpu in reading.gpus
    ]
    return {"problem": reading.problem, "driver": driver, "devices": devices}


def notices_folder(paths: Sequence[str]) -> Path:
    """Return the directory in which change notices are tested: the first of the paths that is one,
    or its parent.
    """
    path = next(filter(is_there, map(Path, paths)), Path())
    return path if path.is_dir() else path.parent


def change_notices(folder: Path) -> Data:
    """Return whether the file system tells of changes in a directory, and the limits on that."""
    import watchfiles

    limits: dict[str, int] = {}
    for name in _LIMITS:
        with suppress(OSError, ValueError):
            limits[name] = int((_INOTIFY / name).read_text())
    problem = None
    try:
        watching = watchfiles.watch(
            folder,
            rust_timeout=1,
            yield_on_timeout=True,
            debounce=1,
            step=1,
            recursive=False,
        )
        next(watching)
    except (OSError, RuntimeError, ValueError) as error:
        problem = (
            f"{one_line(str(error), 200)}; files are looked at once a second instead"
        )
    return {"problem": problem, "limits": limits}

"""What further cores are worth: large logs, all of them on the screen, on one core and on all."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from made_logs import write_console, write_file_log
from measuring import APP, Row, has_read, medians, on_screen, seconds

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from measuring import Effort

SIZE = (140, 45)


def measure(folder: Path, effort: Effort) -> Iterator[Row]:
    """A single log of FileLogger, a single console, and many files."""
    one = effort.size(400, 4)
    some = effort.size(200, 2)
    many = effort.size(20, 2)
    single, console, files = (folder / name for name in ("single", "console", "files"))
    for run in (
        single,
        console,
        *(files / f"run-{number:02}" for number in range(many)),
    ):
        run.mkdir(parents=True)
    step = write_file_log(single / "train.jsonl", one)
    yield _row(f"FileLogger, {one} MB in a file", single, step, effort)
    step = write_console(console / "train.log", some)
    yield _row(f"console, {some} MB in a file", console, step, effort)
    for run in files.iterdir():
        step = write_file_log(run / "train.jsonl", many)
    yield _row(f"FileLogger, {many} files of {many} MB", files, step, effort)


def _row(words: str, logs: Path, step: int, effort: Effort) -> Row:
    cores = os.sched_getaffinity(0)
    words = f"{words}, all on the screen: one core ÷ {len(cores)}"
    taskset = shutil.which("taskset")
    if taskset is None or len(cores) < 2:
        return Row(words, "skipped: there is no second core, or no taskset")
    app = (*APP, logs)
    alone, together = medians(
        effort.tries(5),
        lambda: on_screen([taskset, "-c", str(min(cores)), *app], SIZE, has_read(step)),
        lambda: on_screen(app, SIZE, has_read(step)),
    )
    return Row(
        words, seconds(together), seconds(alone), alone.wall / together.wall, "≥ 1.6"
    )

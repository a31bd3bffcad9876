"""What further cores are worth: many logs, all of them on the screen, on one core and on all."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from made_logs import write_file_log
from measuring import APP, Row, has_read, medians, on_screen, seconds

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from measuring import Effort

SIZE = (140, 45)


def measure(folder: Path, effort: Effort) -> Iterator[Row]:
    """Many files of FileLogger; one file is decoded by one worker."""
    many = effort.size(20, 2)
    for number in range(many):
        run = folder / f"run-{number:02}"
        run.mkdir(parents=True)
        step = write_file_log(run / "train.jsonl", many)
    cores = os.sched_getaffinity(0)
    words = f"FileLogger, {many} files of {many} MB, all on the screen: one core ÷ {len(cores)}"
    taskset = shutil.which("taskset")
    if taskset is None or len(cores) < 2:
        yield Row(words, "skipped: there is no second core, or no taskset")
        return
    app = (*APP, folder)
    alone, together = medians(
        effort.tries(5),
        lambda: on_screen([taskset, "-c", str(min(cores)), *app], SIZE, has_read(step)),
        lambda: on_screen(app, SIZE, has_read(step)),
    )
    times = alone.wall / together.wall
    yield Row(words, seconds(together), seconds(alone), times, "≥ 1.6")

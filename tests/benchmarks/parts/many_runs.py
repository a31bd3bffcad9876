"""How soon many runs are all there, and what they hold; beside `orjson.loads` alone over the same
lines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from made_logs import write_file_log, write_runs
from measuring import (
    APP,
    Cost,
    Row,
    has_read,
    in_process,
    medians,
    of_command,
    on_screen,
    seconds,
)

from parts.loading import parsed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from measuring import Effort

SIZE = (140, 45)
_CRITICAL = 2
"""The highest status with which `check` ends when it has judged."""


def small_runs(folder: Path, effort: Effort) -> Iterator[Row]:
    """200 runs of 100 metrics on the screen."""
    runs = effort.size(200, 10)
    steps = effort.size(500, 50)
    metrics = 100
    paths = write_runs(folder, runs, steps, metrics)
    ours, alone = medians(
        effort.tries(3),
        lambda: on_screen([*APP, folder], SIZE, has_read(steps)),
        lambda: _alone(paths),
    )
    yield Row(
        f"{runs} runs × {steps} steps × {metrics} metrics, all on the screen ÷ orjson",
        seconds(ours),
        f"`orjson.loads` alone: {seconds(alone)}",
        ours.wall / alone.wall,
        "≤ 2.5 s, ≤ 200 MiB",
    )


def long_runs(folder: Path, effort: Effort) -> Iterator[Row]:
    """50 runs of 40 MB, judged by `check`."""
    runs, megabytes = effort.size(50, 4), effort.size(40, 2)
    paths = [folder / f"run-{number:02}" / "train.jsonl" for number in range(runs)]
    for path in paths:
        path.parent.mkdir()
        write_file_log(path, megabytes)
    ours, alone = medians(
        effort.tries(3),
        lambda: of_command([*APP, "check", folder], _CRITICAL),
        lambda: _alone(paths),
    )
    yield Row(
        f"`check` of {runs} runs × {megabytes} MB ÷ orjson",
        seconds(ours),
        f"`orjson.loads` alone: {seconds(alone)}",
        ours.wall / alone.wall,
        "≤ 8 s, ≤ 400 MiB",
    )


def _alone(paths: list[Path]) -> Cost:
    """Return what parsing takes, file by file; reading the bytes counts as well."""

    def read() -> None:
        for path in paths:
            parsed(path.read_bytes().splitlines())

    return in_process(read)

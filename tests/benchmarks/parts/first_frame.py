"""How much later the last step of a gigabyte is on the screen than that of a megabyte."""

from __future__ import annotations

from typing import TYPE_CHECKING

from made_logs import write_console, write_file_log, write_wordy_console
from measuring import APP, Cost, Row, medians, on_screen, seconds, shows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from measuring import Effort

SIZE = (140, 45)
GOAL = "≤ 1.3"


LOGS: dict[str, tuple[str, Callable[[Path, float], int]]] = {
    "FileLogger": ("train.jsonl", write_file_log),
    "console": ("train.log", write_console),
    "console with printed samples": ("train.log", write_wordy_console),
}
"""What there is: the name of the file, and what writes so many MB and returns the last step."""


def measure(folder: Path, effort: Effort) -> Iterator[Row]:
    """Yield a row for each kind of log."""
    sizes = (effort.size(1000, 20), 1)
    for kind, (name, write) in LOGS.items():
        works = []
        for megabytes in sizes:
            path = folder / f"{megabytes}" / name
            path.parent.mkdir(exist_ok=True)
            works.append(_until_step(path, write(path, megabytes)))
        big, small = medians(effort.tries(3), *works)
        (folder / f"{sizes[0]}" / name).unlink()
        yield Row(
            f"the last step of {sizes[0]} MB on the screen ÷ of {sizes[1]} MB: {kind}",
            seconds(big),
            seconds(small),
            big.wall / small.wall,
            GOAL,
        )


def _until_step(path: Path, last: int) -> Callable[[], Cost]:
    return lambda: on_screen([*APP, path], SIZE, shows(f"step {last}"))

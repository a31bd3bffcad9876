"""How soon the screen answers a key with many runs loaded, beside the same with two runs.

`runs.py` beside this package has the figures of each key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from measuring import Row, percentile
from runs import KEYS, LIST_KEYS, measure_keys, undisturbed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from measuring import Effort
    from terminal import Answer

_FEW = 2
"""Runs beside it."""


def measure(folder: Path, effort: Effort) -> Iterator[Row]:
    """A row for each group of keys: those of the dashboard, those of the list, those that open or
    close a screen.
    """
    runs, times = effort.size(200, 45), effort.size(20, 4)
    worst, work = {}, {}
    for count, presses in ((_FEW, times // 2), (runs, times)):
        place = folder / f"{count}"
        place.mkdir()
        answers, work[count] = measure_keys(place, count, presses)
        worst[count] = _by_group(answers)
    for group, (least, most) in worst[runs].items():
        few = worst[_FEW].get(group)
        yield Row(
            f"{group}, {runs} runs ÷ {_FEW}: p95, from the fastest key to the slowest",
            f"{least:.0f}–{most:.0f} ms",
            f"{few[0]:.0f}–{few[1]:.0f} ms" if few else "",
            most / few[1] if few else None,
            "≤ 50 ms",
        )
    yield Row(
        f"`]`, the next run, {runs} runs ÷ {_FEW}: processor time of a key",
        f"{work[runs]:.0f} ms",
        f"{work[_FEW]:.0f} ms",
        work[runs] / work[_FEW],
    )


def _by_group(answers: dict[str, list[Answer]]) -> dict[str, tuple[float, float]]:
    """Return the least and the highest p95 of each group of keys; keys of which too few answers
    were undisturbed are left out.
    """
    found: dict[str, list[float]] = {}
    for key, taken in answers.items():
        if len(counted := undisturbed(taken)) > 1:
            found.setdefault(_group(key), []).append(percentile(counted, 95))
    return {group: (min(times), max(times)) for group, times in found.items()}


def _group(key: str) -> str:
    if key in LIST_KEYS:
        return "keys of the list"
    return (
        "keys of the dashboard"
        if key in KEYS or key.startswith("]")
        else "keys between screens"
    )

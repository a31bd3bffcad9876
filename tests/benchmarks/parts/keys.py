"""How soon the screen answers a key with many runs loaded, beside the same with two runs: from a key to
the changed frame, on a real pty.

The first frame that shows something new counts; what takes longer, as the curves of another run,
comes in the next one. Answers while the machine was not there do not count (see `terminal.stolen`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from made_logs import write_runs
from measuring import APP, Row, percentile
from terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from measuring import Effort
    from terminal import Answer

SIZE = (140, 45)
_FEW = 2
"""Runs beside it."""
_PATIENCE = 3
"""How many times as often a key is pressed at most, until so many answers are undisturbed."""
_LIST, _CHARTS = b"\x1bOQ", b"\x1bOR"
"""f2, f3: the list of runs has the focus, the charts have it."""
_OF_LIST, _OF_DASHBOARD, _OF_SCREENS = (
    "keys of the list",
    "keys of the dashboard",
    "keys between screens",
)
DASHBOARD = ([b"y"], [b"x"], [b"s", b"S"], [b"\x1b[D", b"\x1b[D", b"\x1b[C"], [b"+", b"+", b"-", b"-"], [b"e"], [b"\t"], [b"z", b"z"])  # fmt: skip
"""Keys of the dashboard that are pressed in turn."""
LIST = ([b"j"], [b"s"], [b" ", b"j"])
"""Keys while the list of runs has the focus: to the next, to sort, to select."""
SCREENS = (b"\r", b"m", b"l", b"C", b"?")
"""Keys that open a screen."""
_BACK = b"\x1b"
"""Esc; for 15 ms it may be the beginning of another key, which counts."""
_IN_FRONT = "verl-tui run-"
"""Begins the line at the top of the dashboard, and of no other screen."""


def measure(folder: Path, effort: Effort) -> Iterator[Row]:
    """A row for each group of keys: those of the dashboard, those of the list, those that open or
    close a screen.
    """
    runs, times = effort.size(200, 45), effort.size(20, 4)
    worst, work = {}, {}
    for count, presses in ((_FEW, times // 2), (runs, times)):
        place = folder / f"{count}"
        place.mkdir()
        worst[count], work[count] = _measured(place, count, presses)
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


def _measured(
    folder: Path, count: int, times: int
) -> tuple[dict[str, tuple[float, float]], float]:
    """Return the least and the highest p95 of each group of keys with so many runs loaded, and the
    processor time that a key costs; keys of which too few answers were undisturbed are left out.
    """
    names = [path.parent.name for path in write_runs(folder, count, 150, 42)]
    terminal = Terminal([*APP, folder], SIZE)
    assert terminal.read(60, lambda: terminal.shows("step "))
    terminal.read(120, lambda: not terminal.shows("reading"))
    terminal.read(2)
    found: dict[str, list[float]] = {}
    for group, taken in _answers(terminal, names, times):
        counted = [answer.first for answer in taken if not answer.disturbed]
        if len(counted) > 1:
            found.setdefault(group, []).append(percentile(counted, 95))
    work = _at_work(terminal, b"]" * times)
    terminal.close()
    return {group: (min(p95), max(p95)) for group, p95 in found.items()}, work


def _answers(
    terminal: Terminal, names: list[str], times: int
) -> Iterator[tuple[str, list[Answer]]]:
    """Yield the group of each key, and all answers to it."""
    switched: list[Answer] = []
    while not _is_enough(switched, times):
        name = names[(len(switched) + 1) % len(names)]
        switched.append(_timed(terminal, b"]", f"verl-tui {name} "))
    yield _OF_DASHBOARD, switched
    for keys in DASHBOARD:
        yield _OF_DASHBOARD, _pressed(terminal, keys, times)
    terminal.press(_CHARTS)
    terminal.read(1)
    for taken in _opened(terminal, times // 2):
        yield _OF_SCREENS, taken
    if len(names) > _FEW:
        terminal.press(_LIST)
        terminal.read(1)
        for keys in LIST:
            yield _OF_LIST, _pressed(terminal, keys, times)


def _timed(terminal: Terminal, key: bytes, expected: str = "") -> Answer:
    """Press a key; return how soon the screen shows a text, or, without one, anything new."""
    return terminal.answer(
        key, lambda: terminal.shows(expected) if expected else terminal.changed
    )


def _is_enough(answers: list[Answer], wanted: int) -> bool:
    """Tell whether a key has been pressed often enough."""
    undisturbed = sum(not answer.disturbed for answer in answers)
    return undisturbed >= wanted or len(answers) >= wanted * _PATIENCE


def _pressed(terminal: Terminal, keys: list[bytes], times: int) -> list[Answer]:
    """Press keys in turn; return the answers."""
    taken: list[Answer] = []
    while not _is_enough(taken, times) or len(taken) % len(keys):
        taken.append(_timed(terminal, keys[len(taken) % len(keys)]))
    return taken


def _opened(terminal: Terminal, times: int) -> Iterator[list[Answer]]:
    """Yield the answers to keys that open a screen, and to the one that closes it."""
    back: list[Answer] = []
    for key in SCREENS:
        taken: list[Answer] = []
        while not _is_enough(taken, times):
            taken.append(_timed(terminal, key))
            # A busy app takes a key that comes now for one of the screen that it is about to leave.
            left = terminal.read(10, lambda: not terminal.shows(_IN_FRONT))
            assert left, f"{key!r}: no screen"
            back.append(_timed(terminal, _BACK))
            _go_back(terminal)
        yield taken
    yield back


def _go_back(terminal: Terminal) -> None:
    """Wait until the dashboard is in front again: the first esc may only have cleared a cursor."""
    for _ in range(4):
        if terminal.read(3, lambda: terminal.shows(_IN_FRONT)):
            return
        terminal.press(_BACK)
    raise AssertionError(f"no way back to the dashboard\n{terminal.text}")


def _at_work(terminal: Terminal, keys: bytes) -> float:
    """Return the ms of processor time that each key costs: on a busy machine it says more than the
    clock.
    """
    before = terminal.cpu
    for at in range(len(keys)):
        terminal.press(keys[at : at + 1])
        terminal.read(0.3)
    return (terminal.cpu - before) * 1e3 / len(keys)

"""Rows on the time of a step by its parts: their means, and the newest steps one by one."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from verl_tui.rendering.text.hues import PARTS
from verl_tui.rendering.text.printable import cut, printable, wrapped
from verl_tui.rendering.text.table import FittedTable, TextColumn
from verl_tui.rendering.text.wrap import ELLIPSIS, fit
from verl_tui.rendering.timing.progress import (
    NARROW,
    WIDE,
    heading,
    no_step,
    progress,
    short_time,
    speed_rows,
    wrapped_rows,
)
from verl_tui.runs.time.forecast import pace, steps_per_minute
from verl_tui.runs.time.step_timing import (
    breakdown,
    generation_latency,
    newest_steps,
    throughput,
    waiting,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.rendering.session.snapshot import View
    from verl_tui.rendering.text.piece import Piece, Pieces
    from verl_tui.runs.run import Run
    from verl_tui.runs.time.step_timing import Breakdown, StepPart


SOLID = "▆"
"""Sign of every part where colours distinguish them: bars with a gap between the rows."""
_SMALL = 0.005
"""Share of the step below which a part shares a row with others."""
_SLOWER, _QUICKER = 1.15, 0.87
"""Ratios of a trend from which on it is shown."""
_STEPS = 8
"""Newest steps that are drawn one by one."""
_CALLS = "profiling/"


class _PartRow(NamedTuple):
    """One row of the table of parts."""

    sign: str
    name: str
    seconds: float
    share: float
    trend: float | None
    note: str
    role: str


def step_parts(
    run: Run, found: Breakdown | None, view: View, width: int, signs: str
) -> Iterator[Pieces]:
    """Yield the table of a step's parts, or why there is none."""
    if found is None or not (found.parts or found.key):
        yield heading("where a step's time goes")
        yield from wrapped_rows(_untimed(run, view), "dim", width)
        return
    where = "where a step's time goes: " if width >= WIDE else ""
    title = f"{where}mean of steps {found.steps[0]}-{found.steps[-1]}"
    yield heading(fit(title, width))
    yield from _table(list(_lines(found, signs)), width)
    if found.overlaps:
        more = short_time(-found.rest)
        words = (
            f"Some parts run in parallel: together they take {more} more than the step."
        )
        yield from wrapped_rows(words, "warning", width)
    if not found.parts:
        yield from wrapped_rows(f"{_no_parts(run)}.", "dim", width)


def _table(lines: Sequence[_PartRow], width: int) -> Iterator[Pieces]:
    longest = max(cell_len(line.name) for line in lines)
    most = max((line.share for line in lines[1:]), default=1.0)
    columns: list[TextColumn[_PartRow]] = [
        TextColumn("", lambda line, _: [(line.sign, line.role)], 1, 8),
        TextColumn("", _part_name, min(longest, 14), 9, most=longest, gap=1),
        TextColumn("", lambda line, _: [_seconds(line)], 8, 5, right=True),
        TextColumn("", lambda line, _: [_share(line)], 4, 7, right=True, gap=1),
        TextColumn("", lambda line, n: [_bar(line, most, n)], 4, 4, most=24),
        TextColumn("", lambda line, _: [_trend(line.trend)], 7, 6, gap=1),
        TextColumn("", lambda line, n: [(fit(line.note, n), "dim")], 12, 1, most=width),
    ]
    table = FittedTable(columns, width)
    return map(table.row, lines)


def _part_name(line: _PartRow, cells: int) -> Pieces:
    role = "label" if line.role.startswith("part") else line.role
    return [(fit(line.name, cells), role)]


def _seconds(line: _PartRow) -> Piece:
    return short_time(line.seconds), "value"


def _share(line: _PartRow) -> Piece:
    return f"{line.share:.0%}", "value"


def _bar(line: _PartRow, most: float, cells: int) -> Piece:
    filled = min(cells, max(1, round(line.share / most * cells)))
    return (line.sign * filled, line.role) if line.sign.strip() else ("", "")


def _no_parts(run: Run) -> str:
    """Say that the log has no timers, or none that parts of a step could be made of: TRL's are of
    single calls, several in a step, within each other.
    """
    if any(key.startswith(_CALLS) for key in run.keys):
        return f"The log times single calls ({_CALLS}…), no parts of a step"
    return "The log times no parts of a step"


def _untimed(run: Run, view: View) -> str:
    """Describe the time of a step whose parts are not timed."""
    known = pace(run)
    if known is not None:
        seconds = short_time(known.seconds)
        return f"{_no_parts(run)}; by the {known.origin} a step takes {seconds}."
    if run.step is None:
        return no_step(run, view)
    return "Nothing in the log says how long a step takes."


def _lines(found: Breakdown, signs: str) -> Iterator[_PartRow]:
    shown = [part for part in found.parts if part.share >= _SMALL][: len(signs)]
    note = (
        f"{printable(found.key)} {short_time(found.step)}"
        if found.step < found.whole
        else ""
    )
    yield _PartRow(" ", "step", found.whole, 1.0, found.trend, note, "label")
    for at, (sign, part) in enumerate(zip(signs, shown, strict=False)):
        note = _note(part, found)
        yield _PartRow(
            sign, _name(part), part.seconds, part.share, part.trend, note, PARTS[at]
        )
    small = found.parts[len(shown) :]
    whole = found.whole if found.whole > 0 else 1.0
    if small:
        seconds = sum(part.seconds for part in small)
        names = ", ".join(map(_name, small))
        yield _PartRow(
            " ", f"{len(small)} more", seconds, seconds / whole, None, names, "dim"
        )
    if not found.overlaps and _is_partly_timed(found):
        rest = max(0.0, found.rest)
        yield _PartRow(" ", "unaccounted", rest, rest / whole, None, "no timer", "dim")


def _is_partly_timed(found: Breakdown) -> bool:
    return bool(found.key and found.parts)


def _name(part: StepPart) -> str:
    return printable(part.name.replace("_", " "))


def _note(part: StepPart, found: Breakdown) -> str:
    words = []
    if part.times < len(found.steps):
        words.append(
            f"{short_time(part.each)} on {part.times} of {len(found.steps)} steps"
        )
    if not part.inside:
        words.append(f"beside {printable(found.key)}")
    return ", ".join(words)


def _trend(ratio: float | None) -> tuple[str, str]:
    if ratio is None or _QUICKER < ratio < _SLOWER:
        return "", "dim"
    up, down = "↑", "↓"
    return (
        f"{up if ratio > 1 else down} {ratio:.1f}×",
        "warning" if ratio > 1 else "good",
    )


def step_by_step(
    run: Run, found: Breakdown | None, width: int, signs: str
) -> Iterator[Pieces]:
    """Draw the newest steps one by one, each part as long as it took."""
    if found is None or len(found.parts) < 2 or width < NARROW:
        return
    steps = newest_steps(run, found, _STEPS)
    longest = max((sum(seconds) for _, seconds in steps), default=0.0)
    if not 0 < longest < inf:
        return
    yield heading("step by step")
    small = (SOLID if signs[0] == SOLID else ".", "dim")
    looks = zip(signs, PARTS, found.parts, strict=False)
    drawn = [
        (sign, role) if part.share >= _SMALL else small for sign, role, part in looks
    ]
    size = len(str(steps[-1][0]))
    room = width - size - 11
    for step, seconds in steps:
        bar = _stacked(seconds, longest, room, [*drawn, small])
        total = f" {short_time(sum(seconds))}"
        yield [(f"{str(step).rjust(size)} ", "dim"), *bar, (total, "value")]


def _stacked(
    seconds: Sequence[float],
    longest: float,
    room: int,
    signs: Sequence[tuple[str, str]],
) -> list[tuple[str, str]]:
    """Draw the parts of a step side by side, those behind the last sign with that; the longest step
    fills the room.
    """
    row: list[tuple[str, str]] = []
    drawn = 0
    taken = 0.0
    for at, part in enumerate(seconds):
        taken += part
        cells = round(taken / longest * room) - drawn
        drawn += cells
        sign, role = signs[min(at, len(signs) - 1)]
        row.append((sign * cells, role))
    return row


_SIGNS = "█▓▄▒▌░"
"""Signs of the parts where colours do not distinguish them."""


def timing_rows(view: View, width: int, *, solid: bool = False) -> list[Pieces]:
    """Return the rows of the screen.

    Args:
        view: The state to show.
        width: Most cells a row may take.
        solid: Whether colours alone distinguish the parts of a step.
    """
    run = view.run
    if run is None:
        return [
            [(line, "dim")]
            for line in wrapped("No run yet, so nothing has taken any time.", width)
        ]
    found = breakdown(run)
    rates = [*filter(None, (steps_per_minute(run), generation_latency(run)))]
    signs = SOLID * len(_SIGNS) if solid else _SIGNS
    parts = (
        step_parts(run, found, view, width, signs),
        progress(run, view, width),
        speed_rows("throughput", [*rates, *throughput(run, found)], width),
        speed_rows("generating and waiting", [*waiting(run, found)], width),
        step_by_step(run, found, width, signs),
    )
    rows: list[Pieces] = []
    for part in filter(None, map(list, parts)):
        if rows:
            rows.append([])
        rows += part
    return [cut(row, width, ELLIPSIS) for row in rows]

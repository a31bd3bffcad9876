"""One run in one row, from 20 columns to 200: what matters least gives way first, nothing is cut in
the middle.

Each part knows several ways to write itself, from the longest to none at all, and what each is
worth.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from verl_tui.health.finding import Severity
from verl_tui.rendering.charts.downsample import TREND_POINTS, trend
from verl_tui.rendering.charts.labels import ASCII, UNICODE
from verl_tui.rendering.charts.sparkline import sparkline
from verl_tui.rendering.session.source_status import not_reached, passed_over, source_pieces
from verl_tui.rendering.text.numbers import compact, exact_step, percent_done
from verl_tui.rendering.text.printable import middle
from verl_tui.runs.time.rates import steps_per_minute
from verl_tui.runs.views.state import State, remaining, silence, state
from verl_tui.times import age, duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.rendering.session.snapshot import View
    from verl_tui.rendering.text.piece import Piece
    from verl_tui.runs.run import Run

STATE_ROLES = {
    State.RUNNING: "good",
    State.FINISHED: "accent",
    State.STALLED: "warning",
    State.CRASHED: "critical",
}
"""Roles of states; others are dim."""
_STATE_WORTHS = {State.RUNNING: 34, State.STALLED: 84, State.CRASHED: 84}
_MARKS = {Severity.CRITICAL: "✖X", Severity.WARNING: "▲!", Severity.INFO: "•i"}
_ROLES = {Severity.CRITICAL: "critical", Severity.WARNING: "warning", Severity.INFO: "accent"}
_GAP = 2
_KL = ("policy_kl", "reference_kl")


class Form(NamedTuple):
    """One way to write a part of the row."""

    worth: int
    """What it is worth over the next shorter one: the least goes first."""
    pieces: tuple[Piece, ...]

    @property
    def cells(self) -> int:
        """How wide it is."""
        return sum(cell_len(text) for text, _ in self.pieces)


Forms = list[Form]
"""From the longest form on; it may be left out when none is left."""


def one_row(view: View, width: int, *, alone: bool) -> list[Piece]:
    """Return the shown run in one row.

    Args:
        view: What there is; it shows a run.
        width: Cells there are.
        alone: Whether nothing else is in sight: the row then says of everything the most important.
    """
    run = view.run
    assert run is not None
    parts = [*_identity(view, run), *(_figures(view, run) if alone else ()), *_rest(view, run)]
    return fitting([part for part in parts if part], width)


def fitting(parts: Sequence[Forms], width: int) -> list[Piece]:
    """Return as much of the parts as fits, a gap between any two; the most worthy is there whatever
    the width.
    """
    at = [0] * len(parts)
    """Index of the form that each part has; beyond the last it has none."""
    shortened: list[int] = []
    while _cells(parts, at) > width:
        rest = [
            (part[i].worth, n)
            for n, (part, i) in enumerate(zip(parts, at, strict=True))
            if i < len(part)
        ]
        if len(rest) == 1 and at[rest[0][1]] == len(parts[rest[0][1]]) - 1:
            break
        _, least = min(rest)
        at[least] += 1
        shortened.append(least)
    for n in reversed(shortened):  # what gave way in vain: something longer did after it
        at[n] -= 1
        if _cells(parts, at) > width:
            at[n] += 1
    row: list[Piece] = []
    for form in _shown(parts, at):
        row += [(" " * _GAP, "")] if row else []
        row += form.pieces
    return row


def _shown(parts: Sequence[Forms], at: Sequence[int]) -> list[Form]:
    return [part[i] for part, i in zip(parts, at, strict=True) if i < len(part)]


def _cells(parts: Sequence[Forms], at: Sequence[int]) -> int:
    forms = _shown(parts, at)
    return sum(form.cells for form in forms) + _GAP * (len(forms) - 1)


def _identity(view: View, run: Run) -> Iterator[Forms]:
    """Yield which run it is, how it is, and how far."""
    short = {cells: middle(run.name, cells, ascii_only=view.ascii) for cells in (99, 24, 16, 11, 7)}
    yield [
        Form(worth, ((short[cells], "strong"),))
        for cells, worth in zip(short, (22, 42, 66, 78, 100), strict=True)
    ]
    runs = list(view.monitor.runs)
    yield [Form(30, ((f"{runs.index(run.name) + 1}/{len(runs)}", "dim"),))] if len(runs) > 1 else []
    current = state(run, view.now)
    yield [
        Form(_STATE_WORTHS.get(current, 56), ((current.value, STATE_ROLES.get(current, "dim")),))
    ]
    if run.step is not None:
        total = run.total_steps
        part = [Form(72, ((f"{exact_step(run.step)}/{exact_step(total)}", ""),))] if total else []
        whole = f"{run.step}/{total} {percent_done(run.step / total)}" if total else str(run.step)
        yield [Form(24, ((f"step {whole}", ""),)), Form(48, ((whole, ""),)), *part,
               Form(90, ((exact_step(run.step), ""),))]  # fmt: skip


def _figures(view: View, run: Run) -> Iterator[Forms]:
    """Yield reward, KL, the worst finding and the GPUs."""
    yield _metric(view, run, "reward", "reward", "r", (70, 58, 54))
    found = next((name for name in _KL if name in run.indicators), None)
    yield _metric(view, run, found, "KL", "KL", (60, 52, 46)) if found else []
    yield _finding(view, run)
    yield _devices(view)


def _rest(view: View, run: Run) -> Iterator[Forms]:
    """Yield when it is done, when it was heard of last, and what the user should know of the
    reading.
    """
    if view.paused:
        yield [
            Form(16, ((f"PAUSED, {view.pause_key} goes on", "warning"),)),
            Form(88, (("PAUSED", "warning"),)),
        ]
    if view.loading:
        yield [Form(86, ((f"reading {view.monitor.loaded():.0%}", "dim"),))]
    if (left := remaining(run, view.now)) is not None:
        yield [Form(38, ((f"ETA {duration(left)}", ""),))]
        if (rate := steps_per_minute(run)) is not None:
            yield [Form(9, ((f"{compact(rate.value)} {rate.unit}", "dim"),))]
    if (quiet := silence(run, view.now)) is not None:
        yield [Form(10, ((f"last record {age(quiet)}" + (" ago" if quiet >= 10 else ""), "dim"),)),
               Form(14, ((age(quiet), "dim"),))]  # fmt: skip
    if passed := passed_over(view):
        yield [Form(52, ((passed, "warning"),))]
    if silent := not_reached(view):
        yield [Form(52, ((silent, "warning"),))]
    if told := list(source_pieces(run)):
        fine = all(role == "dim" for _, role in told)
        yield [Form(8 if fine else 62, tuple((words.strip(), role) for words, role in told))]


def _metric(
    view: View, run: Run, name: str, label: str, short: str, worths: tuple[int, int, int]
) -> Forms:
    """Write the last value of an indicator with its trend, the longest form with a sparkline before
    it.
    """
    series = run.present(run.indicators.get(name))
    if series is None:
        return []
    symbols = ASCII if view.ascii else UNICODE
    turn, value = trend(series.values[-TREND_POINTS:]), series.values[-1]
    arrow = "" if turn is None else f" {(symbols.flat, symbols.rising, symbols.falling)[turn]}"
    role = "strong" if isfinite(value) else "critical"
    least, usual, arrowed = worths
    sparks = ((cells, sparkline(series, cells, ascii_only=view.ascii)) for cells in (24, 12))
    written, figure, direction = (f"{label} ", ""), (compact(value), role), (arrow, "")
    return [
        *(
            Form(20 - cells // 4, (written, (f"{line} ", "accent"), figure, direction))
            for cells, line in sparks
        ),
        Form(arrowed, (written, figure, direction)),
        Form(usual, (written, figure)),
        Form(least, ((f"{short} ", ""), figure)),
    ]


def _finding(view: View, run: Run) -> Forms:
    """Write the worst finding that the user does not know of yet, and how many more there are."""
    found = sorted(
        view.acknowledgements.open(run.name, view.verdict.primary), key=lambda one: -one.severity
    )
    if view.loading or run.name not in view.monitor.verdicts:
        return []
    if not found:
        mark = "+" if view.ascii else "✓"
        quiet = f"{mark} nothing found" if not view.verdict.findings else f"{mark} nothing new"
        return [Form(26, ((quiet, "good"),)), Form(44, ((mark, "good"),))]
    worst, more = found[0], f" +{len(found) - 1}" if len(found) > 1 else ""
    mark, role = _MARKS[worst.severity][view.ascii], _ROLES[worst.severity]
    since = "" if worst.since_step is None else f" since {exact_step(worst.since_step)}"
    return [
        Form(36, ((f"{mark} {worst.id}{since}{more}", role),)),
        Form(76, ((f"{mark} {worst.id}{more}", role),)),
        Form(80, ((f"{mark} {middle(worst.id, 12, ascii_only=view.ascii)}{more}", role),)),
        Form(95, ((f"{mark}{len(found)}", role),)),
    ]


def _devices(view: View) -> Forms:
    """Write how busy the GPUs of this host are."""
    gpus = view.monitor.gpus.gpus if view.monitor.gpus is not None else ()
    busy = [gpu.utilization for gpu in gpus if gpu.utilization is not None]
    if not busy:
        return []
    share = f"{sum(busy) / len(busy):.0f}%"
    many = f"{len(gpus)} GPUs {share}" if len(gpus) > 1 else f"GPU {share}"
    return [Form(32, ((many, ""),)), Form(50, ((f"GPU {share}", ""),))]

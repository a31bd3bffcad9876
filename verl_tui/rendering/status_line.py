"""The first line of the screen: the shown run in a row of 20 to 200 columns, made of parts that
shorten and go, the least important first; and what does not work.
"""

from __future__ import annotations

from math import isfinite
from operator import itemgetter
from typing import TYPE_CHECKING

from verl_tui.rendering.charts.chart_data import ARROWS
from verl_tui.rendering.charts.downsample import whole_trend
from verl_tui.rendering.charts.plan import newest_and_best
from verl_tui.rendering.charts.sparkline import gauge, sparkline
from verl_tui.rendering.gpus.places import busy_percent, device_places, first_devices
from verl_tui.rendering.session.snapshot import (
    Unread,
    View,
    not_shown,
    shown_state,
    source_pieces,
    why_no_run,
)
from verl_tui.rendering.text.hues import family_role
from verl_tui.rendering.text.numbers import compact
from verl_tui.rendering.text.piece import Piece, Pieces, cells_of, middle, text_of
from verl_tui.rendering.verdict_row import headline, state_piece
from verl_tui.runs.time.forecast import steps_per_minute
from verl_tui.runs.views.provenance import has_estimated_steps, shown_kl
from verl_tui.runs.views.state import State, ahead, silence, time_left
from verl_tui.text import one_line
from verl_tui.times import age, clock_time, duration
from verl_tui.words import percent_done

if TYPE_CHECKING:
    from collections.abc import Iterator

    from verl_tui.runs.run import Run

_STATES: dict[State | Unread, int] = {
    State.RUNNING: 57,
    State.STALLED: 84,
    State.CRASHED: 84,
}
"""Priorities of states; that of others is 72."""
_NAMES = ((99, 22), (24, 42), (16, 66), (11, 78), (7, 100))
"""Most cells of a variant of the name, and its priority."""
_GOES_ON = (State.WAITING, State.RUNNING, State.STALLED)
"""States of runs whose end is still awaited."""
_ENDED = 30
"""Priority of when a run ended: before the step of its best validation."""
_GAP = 2
_BAR = 24
"""Cells of the bar of progress."""
_AGE, _RATE, _VALUE = len("59m ago"), len("0.0123 steps/min"), len("-0.0123 ↑")
"""Cells of what changes its width while it stands there."""


RowPart = list[tuple[int, "Pieces"]]
"""The ways to write a part of the row: what each is worth over the next shorter one, and its
pieces.
"""


def one_row(view: View, width: int, *, alone: bool) -> Pieces:
    """Return the shown run in one row: what is worth most first, each part then as long as it can
    be.

    Args:
        view: The state of the app; it shows a run.
        width: Cells of the row.
        alone: True if nothing else is in sight: the row then has the most important of everything.
    """
    parts = enumerate(_parts(view, alone=alone))
    ways = [(-worth, n, words) for n, part in parts for worth, words in part]
    chosen: dict[int, Pieces] = {}
    cells: dict[int, int] = {}
    for _, n, words in sorted(ways, key=itemgetter(0)):
        tried = {**cells, n: cells_of(words) + _GAP}
        if sum(tried.values()) - _GAP <= width:
            chosen[n], cells = words, tried
    row: Pieces = []
    for n in sorted(chosen):
        row += [*[(" " * _GAP, "")] * bool(row), *chosen[n]]
    return row


def _parts(view: View, *, alone: bool) -> Iterator[RowPart]:
    """Yield the parts of the row from left to right."""
    run = view.run
    assert run
    yield from _identity(view, run)
    if alone:
        one = headline(view)
        short = f"{one.mark} {middle(one.cause, 16)}"
        yield _ways(one.role, (36, one.head), (80, short), (95, one.mark))
    if view.paused:
        words = f"PAUSED, {view.keys['pause']} goes on"
        yield _ways("warning", (16, words), (88, "PAUSED"))
    yield from _forecast(view, run)
    yield from _figures(run, alone=alone)
    if alone:
        yield _host(view)
    for warning in not_shown(view):
        yield _ways("warning", (52, warning))
    if found := [*source_pieces(run, view.keys)]:
        yield [(62, found)]
    yield from _newest(view, run)


def _ways(role: str, *ways: tuple[int, str]) -> RowPart:
    """Return the ways to write a part in one role."""
    return [(worth, [(text, role)]) for worth, text in ways]


def _identity(view: View, run: Run) -> Iterator[RowPart]:
    """Yield name, number, state and progress of the run."""
    yield _ways("strong", *((worth, view.name_in(cells)) for cells, worth in _NAMES))
    runs = view.listed
    if len(view.monitor.runs) > 1 and run in runs:
        yield _ways("dim", (82, f"{runs.index(run) + 1}/{len(runs)}"))
    current = shown_state(view, run)
    word, worth = state_piece(view, run), _STATES.get(current, 72)
    aside = ": no ETA" * (current is State.STALLED)
    aside += " no end marker" * (current is State.ENDED and not run.outcome)
    yield [(worth, [word]), (18, [word, (aside, "dim")])]
    if run.step is not None:
        yield _ways("", *_steps(run.step, run.total_steps, current))
    if has_estimated_steps(run):
        yield _ways("dim", (8, "steps estimated"))


def _steps(
    step: int, total: int | None, current: State | Unread
) -> Iterator[tuple[int, str]]:
    """Yield how far a run is, in long variants of how many steps."""
    yield 90, str(step)
    if not total:
        yield 24, f"step {step}"
    elif current is State.FINISHED and step >= total:
        yield 24, f"all {total} steps"
    else:
        done = percent_done(step / total)
        bar = text_of(gauge(step / total, _BAR, ""))
        yield 72, f"{step}/{total}"
        yield 50, f"{step}/{total} {done}"
        yield 12, f"step {step}/{total} {bar} {done}"


def _figures(run: Run, *, alone: bool) -> Iterator[RowPart]:
    """Yield reward and validation; where nothing else is in sight, also their course and KL."""
    label = "loss" if run.loss_alone else "reward"
    learned = run.loss_alone or run.indicators.get("reward")
    yield _metric(run, learned, label, (70, 58, 54), alone=alone)
    score = newest_and_best(run)
    yield _ways("", (28, score), (53, score.partition(",")[0])) if score else []
    if alone:
        kl = run.indicators.get(shown_kl(run))
        yield _metric(run, kl, "KL", (60, 52, 46), alone=alone)


def _host(view: View) -> RowPart:
    """Return the utilisation of the GPUs in use."""
    busy = busy_percent(first_devices(device_places(view)))
    return [] if busy is None else _ways("", (50, f"GPU {busy:.0f}%"))


def _forecast(view: View, run: Run) -> Iterator[RowPart]:
    """Yield when the run is done, the time left and the speed."""
    left = time_left(run, view.now)
    if left is not None and shown_state(view, run) is not Unread.READING:
        way = f"ends {clock_time(view.now + left, view.now)}"
        yield _ways("", (11, f"{way}, {duration(left)} left"), (59, way))
        rate = steps_per_minute(run)
        if rate:
            yield _ways("dim", (9, f"{compact(rate.value)} {rate.unit}".ljust(_RATE)))


def _newest(view: View, run: Run) -> Iterator[RowPart]:
    """Yield the age of the newest record, of a run that is over its date; as wide as it may become,
    so that it moves nothing.
    """
    quiet, early = silence(run, view.now), ahead(run, view.now)
    if early is not None:
        yield _ways("warning", (4, f"last record dated {age(early)} ahead"))
    elif quiet is not None and run.last_record is not None:
        current = shown_state(view, run)
        date = clock_time(run.last_record, view.now)
        if current in _GOES_ON:
            words = (age(quiet) + " ago" * (quiet >= 10)).ljust(_AGE)
            yield _ways("dim", (4, f"last record {words}"))
        elif current in (State.FINISHED, State.CRASHED):
            yield _ways("dim", (_ENDED, f"ended {date}"))
        else:
            yield _ways("dim", (4, f"last record {date}"))


def _metric(
    run: Run, key: str | None, label: str, worth: tuple[int, int, int], *, alone: bool
) -> RowPart:
    """Return the last value of a metric, in long variants with a trend and, where nothing else is
    in sight, a sparkline.
    """
    series = run.present(key)
    if key is None or not series:
        return []
    way = whole_trend(series)
    arrow = ("" if way is None else f" {ARROWS[way]}", "")
    value = series.values[-1]
    figure = (compact(value), "strong" if isfinite(value) else "critical")
    named = [(f"{label} ", ""), figure]
    pad = (" " * (_VALUE - cells_of([figure, arrow])), "")
    short = (f"{label.removesuffix('eward')} ", "")
    ways = [[*named, arrow, pad], named, [short, figure]]
    found = [*zip(reversed(worth), ways, strict=True)]
    if alone:
        hue = family_role(series.key, run.meanings.get(key))
        line = [*sparkline(series, 24, hue), (" ", "")]
        found.append((14, [named[0], *line, figure, arrow, pad]))
    return found


# -- the whole line --------------------------------------------------------------------------------

_BRANDED = 100
"""Width from which there is room for more than the run, in cells."""
_ROOMY = 70
"""Width from which there is room for a few words on what does not work, in cells."""


def status(view: View, width: int, *, alone: bool = False) -> tuple[Pieces, Pieces]:
    """Return the first line of the screen: the shown run at a glance.

    Args:
        view: The state of the app.
        width: Cells of the line.
        alone: True if nothing else is in sight.
    """
    right = [
        (
            f" {one.long if width >= _ROOMY else one.short}",
            "dim" if one.over else "warning",
        )
        for one in view.troubles
    ]
    if view.replay:
        role = "warning" if view.replay.paused else "accent"
        right.append((f" {view.replay.words(width)} ", role))
    left: Pieces = []
    if width >= _BRANDED and not alone:
        left.append(("verl-tui ", "dim"))
        right.append((f" {view.keys['help']} help", "dim"))
    room = width - cells_of((*left, *right)) - bool(right)
    if view.run:
        left += one_row(view, room, alone=alone)
    else:
        left.append(_no_run(view, room, alone=alone))
        if view.paused:
            right.append((f" PAUSED, {view.keys['pause']} goes on ", "warning"))
    return left, right


def _no_run(view: View, room: int, *, alone: bool) -> Piece:
    """Say that there is no run, and why where nothing else in sight does."""
    if alone and view.monitor.sentences:
        sentence = one_line("; ".join(view.monitor.sentences), 400)
        return middle(sentence, max(8, room)), "warning"
    return why_no_run(view), "dim"

"""The first line of the screen: the shown run in a row of 20 to 200 columns, each part of which has
variants, the least important of which go first; and what does not work.
"""

from __future__ import annotations

from math import isfinite
from operator import itemgetter
from typing import TYPE_CHECKING

from verl_tui.health.finding import Severity, coverage_of
from verl_tui.rendering.charts.chart_data import ARROWS
from verl_tui.rendering.charts.downsample import TREND_POINTS, trend
from verl_tui.rendering.charts.plan import newest_and_best
from verl_tui.rendering.charts.sparkline import sparkline
from verl_tui.rendering.health_rows import MARKS
from verl_tui.rendering.session.snapshot import (
    Unread,
    looking,
    not_reached,
    passed_over,
    shown_state,
    source_pieces,
)
from verl_tui.rendering.text.hues import family_role
from verl_tui.rendering.text.numbers import compact, exact_step, percent_done
from verl_tui.rendering.text.piece import cells_of
from verl_tui.rendering.text.printable import middle, short_names
from verl_tui.runs.time.throughput import steps_per_minute
from verl_tui.runs.views.provenance import has_estimated_steps, shown_kl
from verl_tui.runs.views.state import State, ahead, is_evaluation, remaining, silence
from verl_tui.text import one_line
from verl_tui.times import age, duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.rendering.session.snapshot import View
    from verl_tui.rendering.text.piece import Piece
    from verl_tui.runs.run import Run

_STATES: dict[State | Unread, tuple[str, int]] = {
    State.RUNNING: ("good", 34),
    State.FINISHED: ("good", 56),
    State.STALLED: ("warning", 84),
    State.CRASHED: ("critical", 84),
}
"""Roles and priorities of states; others are dim."""
_NAMES = ((99, 22), (24, 42), (16, 66), (11, 78), (7, 100))
"""Most cells of a variant of the name, and its priority."""
_GOES_ON = (State.WAITING, State.RUNNING, State.STALLED)
"""States of runs whose end is still awaited."""
_GAP = 2


Variant = tuple[int, list["Piece"]]
"""One way to write a part of the row: its value over the next shorter one, and its pieces."""
RowPart = list[Variant]
"""The ways to write a part, the longer the less they are worth."""


def one_row(view: View, width: int, *, alone: bool) -> list[Piece]:
    """Return the shown run in one row.

    Args:
        view: The state of the app; it shows a run.
        width: Cells of the row.
        alone: True if nothing else is in sight: the row then has the most important of everything.
    """
    run = view.run
    assert run is not None
    parts = list(_identity(view, run))
    parts += _figures(view, run) if alone else [_critical(view, run), _scores(run)]
    parts += _reading(view)
    parts += _forecast(view, run)
    parts += _sources(view, run)
    return _fitting(parts, width)


def _fitting(parts: Sequence[RowPart], width: int) -> list[Piece]:
    """Return as much of the parts as fits, with gaps: what is worth most first, each part then as
    long as it can be.
    """
    ways = [(-worth, n, words) for n, part in enumerate(parts) for worth, words in part]
    chosen: dict[int, list[Piece]] = {}
    for _, n, words in sorted(ways, key=itemgetter(0)):
        tried = {**chosen, n: words}
        if sum(cells_of(one) + _GAP for one in tried.values()) - _GAP <= width:
            chosen = tried
    row: list[Piece] = []
    for n in sorted(chosen):
        row += [*[(" " * _GAP, "")] * bool(row), *chosen[n]]
    return row


def _text(priority: int, text: str, role: str = "") -> Variant:
    return priority, [(text, role)]


def _identity(view: View, run: Run) -> Iterator[RowPart]:
    """Yield name, number, state and progress of the run."""
    names = tuple(dict.fromkeys((*view.monitor.runs, run.name)))  # it may be gone
    variants: RowPart = []
    for cells, priority in _NAMES:
        short = short_names(names, cells)
        variants.append(_text(priority, short[run.name], "strong"))
    yield variants
    runs = view.listed
    if len(view.monitor.runs) > 1 and run in runs:
        yield [_text(82, f"{runs.index(run) + 1}/{len(runs)}", "dim")]
    current = shown_state(view, run)
    role, priority = _STATES.get(current, ("dim", 56))
    if role == "good" and not _is_good(view):
        role = ""
    words = [_text(priority, current.value, role)]
    if current is State.STALLED and run.total_steps:
        words.append((18, [(current.value, role), (": no ETA", "dim")]))
    yield words
    if run.step is not None:
        yield _step(run.step, run.total_steps, current)
    if has_estimated_steps(run):
        yield [_text(8, "steps estimated", "dim")]


def _step(step: int, total: int | None, current: State | Unread) -> RowPart:
    """Return how far a run is, in long variants of how many steps."""
    shortest = _text(90, exact_step(step))
    if not total:
        unknown = _text(12, f"step {step}; total unknown")
        return [shortest, _text(24, f"step {step}"), *[unknown] * (current in _GOES_ON)]
    if current is State.FINISHED and step >= total:
        return [shortest, _text(24, f"all {total} steps")]
    return [
        shortest,
        _text(72, f"{exact_step(step)}/{exact_step(total)}"),
        _text(24, f"step {step} of {total} ({percent_done(step / total)})"),
    ]


def _figures(view: View, run: Run) -> Iterator[RowPart]:
    """Yield reward, validation, KL, the worst finding and the GPUs."""
    label = "loss" if run.loss_alone is not None else "reward"
    learned = run.loss_alone or run.indicators.get("reward")
    yield _metric(run, learned, label, label.removesuffix("eward"), (70, 58, 54))
    score = newest_and_best(run)
    newest = score.partition(",")[0]
    yield [_text(28, score), _text(53, newest)] if score else []
    kl = run.indicators.get(shown_kl(run))
    yield _metric(run, kl, "KL", "KL", (60, 52, 46))
    yield _finding(view, run)
    yield _devices(view)


def _scores(run: Run) -> RowPart:
    """Return the reward and the validation score beside it, of runs that have both."""
    reward = run.present(run.indicators.get("reward"))
    score = newest_and_best(run)
    if reward is None or not score:
        return []
    newest = score.partition(",")[0]
    figure = f"reward {compact(reward.values[-1])} · "
    return [_text(19, figure + score), _text(21, figure + newest), _text(23, newest)]


def _reading(view: View) -> Iterator[RowPart]:
    """Yield why the screen is not up to date."""
    if view.paused:
        yield [
            _text(16, f"PAUSED, {view.keys['pause']} goes on", "warning"),
            _text(88, "PAUSED", "warning"),
        ]
    if view.loading:
        words = f"reading {view.monitor.loaded():.0%}"
        before = "preview, " if view.run is not None and view.run.preview else ""
        yield [_text(60, f"{before}{words}", "dim"), _text(86, words, "dim")]


def _forecast(view: View, run: Run) -> Iterator[RowPart]:
    """Yield the time left with the speed, and the age of the last record."""
    left = remaining(run, view.now)
    if left is not None and shown_state(view, run) is not Unread.READING:
        yield [_text(38, f"ETA {duration(left)}")]
        rate = steps_per_minute(run)
        if rate is not None:
            yield [_text(9, f"{compact(rate.value)} {rate.unit}", "dim")]
    quiet = silence(run, view.now)
    if quiet is not None:
        ago = " ago" if quiet >= 10 else ""
        yield _last_record(f"{age(quiet)}{ago}", "dim")
    early = ahead(run, view.now)
    if early is not None:
        yield _last_record(f"dated {age(early)} ahead", "warning")


def _last_record(words: str, role: str) -> RowPart:
    """Return when the last record was written."""
    return [_text(10, f"last record {words}", role), _text(14, words, role)]


def _sources(view: View, run: Run) -> Iterator[RowPart]:
    """Yield the state of the sources."""
    for warning in filter(None, (passed_over(view), not_reached(view))):
        yield [_text(52, warning, "warning")]
    found = source_pieces(run, view.keys)
    pieces = [(words.strip(), role) for words, role in found]
    if pieces:
        fine = all(role == "dim" for _, role in pieces)
        yield [(8 if fine else 62, pieces)]


def _metric(
    run: Run,
    key: str | None,
    label: str,
    short: str,
    priorities: tuple[int, int, int],
) -> RowPart:
    """Return the last value of a metric, in long variants with a sparkline and a trend."""
    series = run.present(key)
    if key is None or series is None:
        return []
    drawn = series.pyramid.bounds(series.steps[0], series.steps[-1])
    turn = trend(series.values[-TREND_POINTS:], drawn)
    value = series.values[-1]
    arrow = ""
    if turn is not None:
        arrow = f" {ARROWS[turn]}"
    role = "strong" if isfinite(value) else "critical"
    shortest, plain, with_arrow = priorities
    figure = (compact(value), role)
    named = [(f"{label} ", ""), figure, (arrow, "")]
    hue = family_role(series.key, run.meanings.get(key))
    line = [*sparkline(series, 24, hue), (" ", "")]
    return [
        (14, [named[0], *line, *named[1:]]),
        (with_arrow, named),
        (plain, named[:2]),
        (shortest, [(f"{short} ", ""), figure]),
    ]


def _finding(view: View, run: Run) -> RowPart:
    """Return the worst finding that is not acknowledged, and the number of others."""
    if (view.loading and not run.preview) or run.name not in view.monitor.verdicts:
        return []
    unseen = view.acknowledgements.open(run.name, view.verdict.primary)
    found = sorted(unseen, key=lambda finding: -finding.severity)
    if not found:
        if run.preview or is_evaluation(run):
            return []
        return _nothing(view)
    worst = found[0]
    more = f" +{len(found) - 1}" if len(found) > 1 else ""
    mark = MARKS[worst.severity]
    role = "accent" if worst.severity is Severity.INFO else worst.severity.word
    since = worst.since_step
    words = "" if since is None else f" since {exact_step(since)}"
    return [
        _text(13, f"{mark} {one_line(worst.message, 200)}{more}", role),
        _text(36, f"{mark} {worst.id}{words}{more}", role),
        _text(80, f"{mark} {middle(worst.id, 16)}{more}", role),
        _text(95, f"{mark}{len(found)}", role),
    ]


def _critical(view: View, run: Run) -> RowPart:
    """Return a critical finding by its name: what it says stands in the panel below."""
    is_critical = view.verdict.severity is Severity.CRITICAL
    return _finding(view, run)[1:] if is_critical else []


def _nothing(view: View) -> RowPart:
    """Return that there is no finding that is not acknowledged; not as good where not all was
    judged.
    """
    mark, role = ("✓", "good") if _is_good(view) else ("○", "dim")
    nothing = "nothing new" if view.verdict.findings else "nothing found"
    if view.run is not None and not view.run.indicators:
        nothing = "nothing to judge"
    return [_text(26, f"{mark} {nothing}", role), _text(44, mark, role)]


def _is_good(view: View) -> bool:
    """Return whether all that a training is judged by was, without a warning."""
    worst = view.verdict.severity or Severity.INFO
    covered = view.run is not None and coverage_of(view.run, view.verdict).complete
    return covered and worst is Severity.INFO


def _devices(view: View) -> RowPart:
    """Return the utilisation of this host's GPUs."""
    gpus = view.monitor.gpus.gpus if view.monitor.gpus is not None else ()
    busy = [gpu.utilization for gpu in gpus if gpu.utilization is not None]
    if not busy:
        return []
    share = f"{sum(busy) / len(busy):.0f}%"
    count = f"{len(gpus)} GPUs" if len(gpus) > 1 else "GPU"
    return [_text(32, f"{count} {share}"), _text(50, f"GPU {share}")]


# -- the whole line --------------------------------------------------------------------------------

_BRANDED = 100
"""Width from which on there is room for more than the run, in cells."""
_ROOMY = 70
"""Width from which on there is room for a few words on what does not work, in cells."""


def status(
    view: View, width: int, *, alone: bool = False
) -> tuple[list[Piece], list[Piece]]:
    """Return the first line of the screen: the shown run at a glance.

    Args:
        view: The state of the app.
        width: Cells of the line.
        alone: True if nothing else is in sight.
    """
    right = [*_troubles(view, width), *_replay_pieces(view, width)]
    left: list[Piece] = []
    if width >= _BRANDED and not alone:
        left.append(("verl-tui ", "dim"))
        right.append((f" {view.keys['help']} help", "dim"))
    room = width - cells_of((*left, *right)) - (1 if right else 0)
    if view.run is not None:
        left += one_row(view, room, alone=alone)
    else:
        left.append(_no_run(view, room, alone=alone))
    if view.run is None and view.paused:
        right.append((f" PAUSED, {view.keys['pause']} goes on ", "warning"))
    return left, right


def _no_run(view: View, room: int, *, alone: bool) -> Piece:
    """Say that there is no run, and why where nothing else in sight does."""
    if alone and view.monitor.sentences:
        sentence = one_line("; ".join(view.monitor.sentences), 400)
        return middle(sentence, max(8, room)), "warning"
    return looking(view) if view.loading else "no run yet", "dim"


def _troubles(view: View, width: int) -> Iterator[Piece]:
    for trouble in view.troubles:
        words = trouble.long if width >= _ROOMY else trouble.short
        yield f" {words}", "dim" if trouble.over else "warning"


def _replay_pieces(view: View, width: int) -> Iterator[Piece]:
    if view.replay is not None:
        yield (
            f" {view.replay.words(width)} ",
            "warning" if view.replay.paused else "accent",
        )

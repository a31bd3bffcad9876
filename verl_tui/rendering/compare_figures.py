"""Content of the comparison screen: figures and settings of several runs, a cell for each run."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.comparison.outcomes import (
    MeasuredRun,
    best_figure,
    better_low,
    final,
    highest,
    last,
    one_scale,
    step_time,
    usual_last,
    weighty,
)
from verl_tui.comparison.setting_differences import ABSENT, differing_settings
from verl_tui.indicators import INDICATORS
from verl_tui.rendering.session.shown_state import shown_state
from verl_tui.rendering.text.numbers import compact, exact_step
from verl_tui.runs.views.alignment import Alignment, stops
from verl_tui.runs.views.identity import short
from verl_tui.runs.views.measures import differing
from verl_tui.runs.views.state import remaining
from verl_tui.times import duration

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from verl_tui.comparison.outcomes import Figure
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.runs.run import Run

UNKNOWN = "–"


class ComparedCell(NamedTuple):
    """A value of one run."""

    text: str = UNKNOWN
    number: float | None = None
    """The number compared with the baseline's, None if there is none."""
    unit: str = ""
    outside: bool | None = None
    """True beyond the healthy band, None where no band applies."""


class ComparisonRow(NamedTuple):
    """One row of the table."""

    label: str
    cells: tuple[ComparedCell, ...]
    """One for each run in sight."""
    better: int = 0
    """1 where more is better, -1 where less is, 0 where neither is, or only the band decides."""
    is_count: bool = False
    """True for small counts, for which percentages mean nothing."""
    is_setting: bool = False
    """True for settings; those unlike the baseline's are marked."""


class ComparisonSection(NamedTuple):
    """Rows below one heading, or a sentence in their place."""

    heading: str
    lines: tuple[ComparisonRow, ...]
    otherwise: str = ""


def sections(
    view: View, runs: Sequence[Run], alignment: Alignment, seen: Sequence[int]
) -> list[ComparisonSection]:
    """Return the comparison of runs for the columns in sight.

    Args:
        view: The state of the app.
        runs: All compared runs, the baseline first.
        alignment: The point up to which each run counts.
        seen: Indices of the runs in sight.
    """
    ends = stops(runs, alignment)
    count = usual_last(runs, ends)
    found = [MeasuredRun(runs[at], ends[at], count, view.monitor.guide) for at in seen]
    now = "" if alignment is Alignment.END else ", now"
    lines = _figures(view, found, now)
    known = (line for line in lines if any(cell.text != UNKNOWN for cell in line.cells))
    otherwise = [
        ComparisonSection("measured differently", (), sentence)
        for sentence in differing(runs)
    ]
    return [
        ComparisonSection("figures", tuple(known)),
        *otherwise,
        _settings(runs, seen),
    ]


def where(runs: Sequence[Run], alignment: Alignment) -> str:
    """Describe the point up to which the runs are compared."""
    if alignment is Alignment.END:
        return str(alignment.value)
    found = stops(runs, alignment)
    if alignment is Alignment.STEP:
        step = next((stop.step for stop in found if stop.step is not None), None)
        return str(alignment.value) if step is None else f"at step {step}"
    lasted = [stop.elapsed for stop in found if stop.elapsed is not None]
    return (
        f"{duration(max(lasted))} after their start" if lasted else "no times are known"
    )


def _figures(
    view: View, found: Sequence[MeasuredRun], now: str
) -> Iterator[ComparisonRow]:
    """Yield the rows.

    Args:
        view: The state of the app.
        found: The runs in sight.
        now: Words that follow the labels of values at each run's end.
    """

    def line(
        label: str, make: Callable[[MeasuredRun], ComparedCell], better: int = 0
    ) -> ComparisonRow:
        return ComparisonRow(label, tuple(map(make, found)), better)

    runs = [one.run for one in found]
    yield line(
        f"state{now}", lambda one: ComparedCell(shown_state(view, one.run).value)
    )
    yield line("step", _steps)
    yield line("time so far", lambda one: ComparedCell(duration(one.stop.elapsed)))
    for indicator in ("reward", "validation"):
        better = -1 if better_low(runs, indicator) else 1
        if indicator == "reward" and not one_scale(runs):
            better = 0
        yield line(f"{indicator}, last", _cells(last, indicator), better)
        yield line(f"{indicator}, best", _cells(best_figure, indicator), better)
        yield line(f"{indicator}, best at step", partial(_best_step, indicator))
    for indicator in ("policy_kl", "reference_kl"):
        label = f"highest {INDICATORS[indicator].label}"
        yield line(label, _cells(highest, indicator))
    yield line("throughput, mean", _cells(final, "throughput"), 1)
    yield line("step time", _cells(step_time, "step_time"), -1)
    yield line(
        f"ETA{now}", lambda one: ComparedCell(duration(remaining(one.run, view.now)))
    )
    findings = line(f"findings{now}", lambda one: _findings(view, one.run), -1)
    yield findings._replace(is_count=True)


def _cells(
    measure: Callable[[MeasuredRun, str], Figure], indicator: str
) -> Callable[[MeasuredRun], ComparedCell]:
    """Write what is measured as a cell."""

    def cell(one: MeasuredRun) -> ComparedCell:
        figure = measure(one, indicator)
        if figure.value is None:
            return ComparedCell()
        return ComparedCell(
            compact(figure.value), figure.value, figure.unit, figure.outside
        )

    return cell


def _steps(one: MeasuredRun) -> ComparedCell:
    if one.stop.step is None:
        return ComparedCell()
    total = one.run.total_steps
    shown = f"/{exact_step(total)}" if total and one.stop.step == one.run.step else ""
    return ComparedCell(exact_step(one.stop.step) + shown)


def _best_step(indicator: str, one: MeasuredRun) -> ComparedCell:
    step = best_figure(one, indicator).step
    return ComparedCell() if step is None else ComparedCell(exact_step(step))


def _findings(view: View, run: Run) -> ComparedCell:
    verdict = view.monitor.verdicts.get(run.name)
    if verdict is None:
        return ComparedCell()
    count = len(weighty(view.acknowledgements.open(run.name, verdict.primary)))
    return ComparedCell(str(count), float(count))


def _settings(runs: Sequence[Run], seen: Sequence[int]) -> ComparisonSection:
    heading = "settings that differ"
    if len(runs) == 1:
        return ComparisonSection(
            heading, (), "There is only one run, so nothing differs."
        )
    lines = []
    for setting in differing_settings(runs):
        cells = tuple(ComparedCell(_shown(setting.values[at])) for at in seen)
        lines.append(ComparisonRow(setting.label, cells, is_setting=True))
    known = sum(bool(run.settings) for run in runs)
    otherwise = (
        "All known settings are the same." if known > 1 else "No settings are known."
    )
    return ComparisonSection(heading, tuple(lines), otherwise)


def _shown(setting: object) -> str:
    if setting is ABSENT:
        return UNKNOWN
    return "null" if setting is None else short(setting)

"""Content of the comparison screen: figures and settings of several runs, a cell for each run."""

from __future__ import annotations

from functools import lru_cache, partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_tui.health.applicability.scales import bounded
from verl_tui.health.finding import Severity
from verl_tui.indicators import INDICATORS, factor
from verl_tui.metrics import describe
from verl_tui.rendering.config_rows import differing_facts
from verl_tui.rendering.text.numbers import compact, exact_step
from verl_tui.runs.cached import cached_by_revision
from verl_tui.runs.views.alignment import Alignment, extreme, recent, seconds_per_step, stops, value
from verl_tui.runs.views.best import is_better_low
from verl_tui.runs.views.facts import short
from verl_tui.runs.views.identity import identity
from verl_tui.runs.views.measures import differing
from verl_tui.runs.views.settings_diff import ABSENT, difference
from verl_tui.runs.views.state import remaining, state
from verl_tui.times import duration

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from verl_tui.rendering.session.snapshot import View
    from verl_tui.runs.run import Run
    from verl_tui.runs.series import Point, Series
    from verl_tui.runs.views.alignment import Stop

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
    """True for settings, of which those unlike the baseline's are marked."""


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
    found = [(runs[at], ends[at]) for at in seen]
    lines = _figures(view, found, "" if alignment is Alignment.END else ", now")
    known = (line for line in lines if any(cell.text != UNKNOWN for cell in line.cells))
    otherwise = [
        ComparisonSection("measured differently", (), sentence) for sentence in differing(runs)
    ]
    return [ComparisonSection("figures", tuple(known)), *otherwise, _settings(runs, seen)]


def where(runs: Sequence[Run], alignment: Alignment) -> str:
    """Describe the point up to which the runs are compared."""
    if alignment is Alignment.END:
        return str(alignment.value)
    found = stops(runs, alignment)
    if alignment is Alignment.STEP:
        step = next((stop.step for stop in found if stop.step is not None), None)
        return str(alignment.value) if step is None else f"at step {step}"
    lasted = [stop.elapsed for stop in found if stop.elapsed is not None]
    return f"{duration(max(lasted))} after their start" if lasted else "no times are known"


def _figures(view: View, found: Sequence[tuple[Run, Stop]], now: str) -> Iterator[ComparisonRow]:
    """Yield the rows; `now` is appended to labels of values that hold at each run's end."""

    def line(
        label: str,
        make: Callable[[Run, Stop], ComparedCell],
        better: int = 0,
        *,
        is_count: bool = False,
    ) -> ComparisonRow:
        return ComparisonRow(label, tuple(make(run, stop) for run, stop in found), better, is_count)

    yield line(f"state{now}", lambda run, _: ComparedCell(state(run, view.now).value))
    yield line("step", _steps)
    yield line("time so far", lambda _, stop: ComparedCell(duration(stop.elapsed)))
    for indicator in ("reward", "validation"):
        better = -1 if _lowest(found, indicator) else 1
        if indicator == "reward" and not _one_scale(found):
            better = 0
        yield line(f"{indicator}, last", partial(_last, indicator), better)
        yield line(f"{indicator}, best", partial(_best, indicator), better)
        yield line(f"{indicator}, best at step", partial(_best_step, indicator))
    for indicator in ("policy_kl", "reference_kl"):
        label = f"highest {INDICATORS[indicator].label}"
        yield line(label, partial(_peak, view, indicator))
    yield line("throughput, mean", partial(_mean, "throughput"), 1)
    yield line("step time", _step_time, -1)
    yield line(f"ETA{now}", lambda run, _: ComparedCell(duration(remaining(run, view.now))))
    yield line(f"findings{now}", lambda run, _: _findings(view, run), -1, is_count=True)


def _lowest(found: Sequence[tuple[Run, Stop]], indicator: str) -> bool:
    """True if less of an indicator is better, judged by the first run that logs it."""
    keys = (run.indicators.get(indicator) for run, _ in found)
    key = next((key for key in keys if key is not None), None)
    return key is not None and is_better_low(indicator, key)


def _one_scale(found: Sequence[tuple[Run, Stop]]) -> bool:
    """True if rewards are comparable: a score from 0 to 1 is not with one on an open scale."""
    return len({_is_bounded(run) for run, _ in found if run.indicator("reward") is not None}) < 2


@cached_by_revision
def _is_bounded(run: Run) -> bool:
    return bounded(run) is not None


def _steps(run: Run, stop: Stop) -> ComparedCell:
    if stop.step is None:
        return ComparedCell()
    total = run.total_steps
    return ComparedCell(
        exact_step(stop.step) + (f"/{exact_step(total)}" if total and stop.step == run.step else "")
    )


def _cell(series: Series | None, number: float | None, indicator: str) -> ComparedCell:
    if series is None or number is None:
        return ComparedCell()
    number *= factor(indicator, series.key)
    return ComparedCell(compact(number), number, describe(series.key).unit)


def _last(indicator: str, run: Run, stop: Stop) -> ComparedCell:
    series = run.indicator(indicator)
    return _cell(series, value(series, stop), indicator)


def _top(indicator: str, run: Run, stop: Stop) -> tuple[Series, Point] | None:
    """Return the best point of an indicator, with its series."""
    series = run.indicator(indicator)
    if series is None:
        return None
    # Of a negated series the lowest is the highest.
    lowest = is_better_low(indicator, series.key) is (factor(indicator, series.key) > 0)
    point = extreme(series, stop, lowest=lowest)
    return (series, point) if point is not None else None


def _best(indicator: str, run: Run, stop: Stop) -> ComparedCell:
    found = _top(indicator, run, stop)
    return _cell(found[0], found[1].value, indicator) if found is not None else ComparedCell()


def _best_step(indicator: str, run: Run, stop: Stop) -> ComparedCell:
    found = _top(indicator, run, stop)
    return ComparedCell(exact_step(found[1].step)) if found is not None else ComparedCell()


def _peak(view: View, indicator: str, run: Run, stop: Stop) -> ComparedCell:
    series = run.indicator(indicator)
    point = extreme(series, stop)
    cell = _cell(series, None if point is None else point.value, indicator)
    _, high = view.monitor.guide.band(indicator, run.dialect) or (None, None)
    if cell.number is None or high is None:
        return cell
    return cell._replace(outside=cell.number > high)


def _mean(indicator: str, run: Run, stop: Stop) -> ComparedCell:
    series = run.indicator(indicator)
    return _cell(series, recent(series, stop), indicator)


def _step_time(run: Run, stop: Stop) -> ComparedCell:
    known = _mean("step_time", run, stop)
    seconds = seconds_per_step(run, stop) if known.number is None else None
    return known if seconds is None else ComparedCell(compact(seconds), seconds, "s")


def _findings(view: View, run: Run) -> ComparedCell:
    verdict = view.monitor.verdicts.get(run.name)
    if verdict is None:
        return ComparedCell()
    count = sum(
        finding.severity > Severity.INFO
        for finding in view.acknowledgements.open(run.name, verdict.primary)
    )
    return ComparedCell(str(count), float(count))


def _settings(runs: Sequence[Run], seen: Sequence[int]) -> ComparisonSection:
    heading = "settings that differ"
    if len(runs) == 1:
        return ComparisonSection(heading, (), "A single run has no differences.")
    lines = []
    for label, values in _differing(_Configs(runs)):
        cells = tuple(ComparedCell(_shown(values[at])) for at in seen)
        lines.append(ComparisonRow(label, cells, is_setting=True))
    known = sum(bool(run.settings) for run in runs)
    otherwise = (
        "All settings that are known are the same." if known > 1 else "No settings are known."
    )
    return ComparisonSection(heading, tuple(lines), otherwise)


class _Configs:
    """Runs as a cache key, equal until a setting of one of them changes."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs = runs
        self._key = tuple((id(run), run.config.revision) for run in runs)

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Configs) and self._key == other._key


@lru_cache(4)
def _differing(configs: _Configs) -> list[tuple[str, tuple[Any, ...]]]:
    """Return label and values of the facts that differ, then of the settings all runs state."""
    facts = chain.from_iterable(identity(run).facts for run in configs.runs)
    stated = set(chain.from_iterable(fact.key.split(", ") for fact in facts))
    found = [entry[:2] for entry in differing_facts(configs.runs)]
    rows = difference([run.settings for run in configs.runs])
    settings = (row for row in rows if not (row.naming or row.silent or row.key in stated))
    found.extend((row.key, row.values) for row in settings)
    return found


def _shown(setting: object) -> str:
    if setting is ABSENT:
        return UNKNOWN
    return "null" if setting is None else short(setting)

"""Series are forgotten where nobody looks at them any more, and come back as they were."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from verl_tui.config import Config
from verl_tui.monitor import Monitor
from verl_tui.records import Batch, MetricRows, SourceStatus
from verl_tui.runs.run import Run

NOW = 1_800_000_000.0
STATUS = SourceStatus(path="x", format="f", modified=NOW)
POINTS = st.lists(st.tuples(st.integers(1, 12), st.floats(-9, 9)), max_size=12)


def rows(points: list[tuple[int, float]], first: int = 0, key: str = "x") -> Batch:
    steps, values = zip(*points, strict=True)
    orders = range(first, first + len(points))
    return Batch("r", STATUS, (MetricRows((key,), steps, (values,), orders),))


@given(before=POINTS, after=POINTS)
def test_a_series_made_anew_has_the_same_points_and_says_that_it_is_another(
    before: list[tuple[int, float]], after: list[tuple[int, float]]
) -> None:
    kept, forgotten = Run("kept"), Run("forgotten")
    revisions = []
    for first, part in ((0, [(1, 0.5), *before]), (100, after)):
        for run in (kept, forgotten):
            if part:
                run.apply(rows(part, first), NOW)
            assert run.series("x") is run.series("x")
        one, other = kept.series("x"), forgotten.series("x")
        assert one is not None
        assert other is not None
        assert (one.steps, one.values) == (other.steps, other.values)
        revisions.append(other.revision)
        forgotten.forget_series()
    assert revisions[1] > revisions[0]


def test_a_run_whose_files_change_is_not_quiet_although_it_makes_no_step() -> None:
    monitor = Monitor(Config())
    monitor.apply(rows([(1, 0.5)], key="actor/grad_norm"), NOW)
    run = monitor.runs["r"]
    monitor.judge(NOW)
    series = run.series("actor/grad_norm")
    for later in range(0, 3600, 300):
        monitor.apply(Batch("r", STATUS), NOW + later)
        monitor.judge(NOW + later)
    assert run.series("actor/grad_norm") is series

"""Series of a run: questions that cost only what is new, metrics of one value, and what is forgotten
where nobody looks any more.
"""

from __future__ import annotations

import math
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st
from run_views import make_run

from verl_tui.config import Config
from verl_tui.monitor import Monitor
from verl_tui.records import Batch, Event, EventKind, MetricRows, SourceStatus, Writer
from verl_tui.runs.run import Run
from verl_tui.sources.discovery.finder import Discovery

NOW = 1_800_000_000.0
STATUS = SourceStatus(path="x", format="f", modified=NOW)
POINTS = st.lists(st.tuples(st.integers(1, 12), st.floats(-9, 9)), max_size=12)


def rows(
    points: list[tuple[int, float]], first: int = 0, key: str = "x", run: str = "r"
) -> Batch:
    steps, values = zip(*points, strict=True)
    orders = range(first, first + len(points))
    return Batch(run, STATUS, (MetricRows((key,), steps, (values,), orders),))


@given(before=POINTS, after=POINTS)
def test_a_series_made_anew_has_the_same_points_and_says_that_it_is_another(
    before, after
):
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


def test_a_run_whose_files_change_is_not_quiet_although_it_makes_no_step():
    monitor = Monitor(Config())
    monitor.apply(rows([(1, 0.5)], key="actor/grad_norm"), NOW)
    run = monitor.runs["r"]
    monitor.judge(NOW)
    series = run.series("actor/grad_norm")
    for later in range(0, 3600, 300):
        monitor.apply(Batch("r", STATUS), NOW + later)
        monitor.judge(NOW + later)
    assert run.series("actor/grad_norm") is series


def test_the_highest_and_the_first_beyond_a_value_as_points_come_and_change():
    run = Run("r")
    points = [
        (0.5, 0.5, None),
        (math.nan, 0.5, None),
        (1.5, 1.5, 3),
        (0.2, 1.5, 3),
        (2.0, 2.0, 3),
    ]
    for step, (value, highest, first) in enumerate(points, 1):
        run.apply(rows([(step, value)], step), NOW)
        series = run.series("x")
        assert series is not None
        assert series.highest == highest
        found = series.first_beyond(1.0)
        assert (found.step if found else None) == first
    assert series.first_beyond(0.3, down=True) == (4, 0.2)
    run.apply(rows([(5, 0.4)], 6), NOW)  # the newest point is replaced
    run.series("x")
    assert series.highest == 1.5
    run.apply(rows([(3, 0.1)], 7), NOW)  # an earlier one is
    run.series("x")
    assert series.highest == 0.5
    assert series.first_beyond(1.0) is None
    assert series.first_beyond(0.3, down=True) == (3, 0.1)


def constant(*logs: list[float]) -> bool:
    run = Run("r")
    for number, values in enumerate(logs):
        said = rows([*enumerate(values)])
        run.apply(said._replace(status=STATUS._replace(path=f"{number}.log")), NOW)
    return "x" in run.constants


def test_a_log_that_rounds_to_24_bits_says_the_same():
    rounded = array("f", [1e-6])[0]
    assert rounded != 1e-6
    assert constant([1e-6] * 9, [rounded] * 9)
    assert not constant([1e-6] * 9, [1.1e-6] * 9)


def test_a_run_knows_its_constants():
    run = make_run(steps=20, columns={"actor/lr": [1e-6] * 20})
    assert run.constants == {"actor/lr"}
    assert run.is_constant("actor/lr")
    assert not run.is_constant("critic/score/mean")


@pytest.mark.parametrize(
    ("records", "writer"),
    [
        ([Event(EventKind.TRACEBACK, "RuntimeError: no", 9)], None),
        ([], Writer(1, "python", gone=True)),
    ],
)
def test_of_many_runs_one_that_has_news_of_its_end_is_judged_first(records, writer):
    monitor = Monitor(Config())
    monitor.apply(Discovery((), (), (), read=True), NOW)
    for name in "abcd":
        monitor.apply(rows([(1, 0.5)], 1, run=name), NOW)
    monitor.judge(NOW)
    for name in "abcd":
        monitor.apply(rows([(2, 0.5)], 2, run=name), NOW)
    status = monitor.runs["d"].statuses[0]._replace(writer=writer)
    monitor.apply(Batch("d", status, tuple(records), live=True), NOW)
    before = {**monitor.verdicts}
    assert not monitor.judge(NOW, -math.inf)
    new = [name for name in before if monitor.verdicts[name] is not before[name]]
    assert new == ["d"]
    assert [one.id for one in monitor.verdicts["d"].findings] == ["crash"]


def test_many_runs_that_grow_are_judged_in_turn_and_the_shown_one_each_time():
    monitor, step = Monitor(Config()), 0

    def judged() -> tuple[str, bool]:
        nonlocal step
        step += 1
        for name in "abcd":
            monitor.apply(rows([(step, 0.5)], step, run=name), NOW)
        before = {**monitor.verdicts}
        is_whole = monitor.judge(NOW, -math.inf, "c")
        after = monitor.verdicts
        new = (name for name in after if after[name] is not before.get(name))
        return "".join(sorted(new)), is_whole

    turns = [("ac", False), ("bc", False), ("cd", True), ("ac", False)]
    assert [judged() for _ in turns] == turns
    monitor.judge(NOW)
    before = {**monitor.verdicts}
    monitor.judge(NOW + 1)
    assert all(before[name] is one for name, one in monitor.verdicts.items())

"""When the steps of a run were reached that somebody opened midway: what was watched, and what lay
there before.
"""

from __future__ import annotations

from verl_tui.records import Batch, MetricRows, Progress, SourceStatus
from verl_tui.runs.run import Run
from verl_tui.runs.time.step_clocks import Alignment, clocks, stops

NOW = 1_700_000_000.0
KEY = "critic/score/mean"


def row(*steps, key=KEY, value=0.5):
    return MetricRows((key,), list(steps), [[value] * len(steps)], range(len(steps)))


def take(run, *records, now=NOW, live=True, path="train.log", modified=NOW, unread=0):
    status = SourceStatus(
        path=path,
        format="verl console",
        modified=modified,
        bytes_read=10,
        size=10 + unread,
    )
    run.apply(Batch(run.name, status, records, live), now)


def opened(*records):
    """Return a run of which that much lay there when somebody began to watch."""
    run = Run("r")
    take(run, *records, live=False)
    return run


def elapsed(run):
    return stops([run], Alignment.END)[0].elapsed


def bars(*steps, each=10.0):
    return [Progress(step, 300, each * step) for step in steps]


def test_what_lay_there_is_counted_back_by_the_bar_from_the_first_arrival():
    run = opened(row(*range(1, 151)), *bars(*range(151)))
    take(run, row(151), now=NOW + 12)
    take(run, row(152), now=NOW + 25)
    clock = clocks(run)[0]
    # the bar's own clock ends at the file's last change: it has nothing to add
    assert len(clocks(run)) == 1
    assert clock.origin == "arrival while we watched, before that the progress bar"
    assert [at - NOW for at in clock.at_each([0, 150, 151, 152])] == [
        12 - 1510,
        2,
        12,
        25,
    ]
    assert elapsed(run) == 1523


def test_lines_that_a_buffer_kept_back_tell_nothing():
    run = opened(row(*range(1, 151)), *bars(*range(210)))
    take(run, row(151, 152))
    take(run, row(153), now=NOW + 500)
    assert elapsed(run) == 2090
    assert clocks(run)[0].origin == "progress bar and the file's last change"


def test_without_a_bar_the_step_timers_are_summed():
    run = opened(row(*range(1, 11), key="timing_s/step", value=7.0))
    assert clocks(run)[0].origin == "step timers and the file's last change"
    assert elapsed(run) == 70  # from the beginning of the first step
    take(run, row(11, key="timing_s/step", value=7.0), now=NOW + 8)
    take(run, row(12, key="timing_s/step", value=7.0), now=NOW + 16)
    assert (
        clocks(run)[0].origin == "arrival while we watched, before that the step timers"
    )
    assert elapsed(run) == 77 + 8


def test_the_bar_of_the_first_arrival_follows_it():
    run = opened(row(1, 2, 3), *bars(0, 1, 2, 3))
    take(run, row(4), now=NOW + 14)
    before = clocks(run)[0].times[0]
    take(run, Progress(4, 300, 44.0), now=NOW + 14)
    assert clocks(run)[0].times[0] == before - 4

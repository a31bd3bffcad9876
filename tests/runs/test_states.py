"""States by what the process does: evidence of life, ends, and what is only a file's time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from verl_tui.config import Config
from verl_tui.health.finding import Severity
from verl_tui.health.guide_settings import load_guide
from verl_tui.health.judge import Judge
from verl_tui.monitor import Monitor
from verl_tui.records import (
    Batch,
    Event,
    EventKind,
    Gpu,
    GpuReading,
    MetricRows,
    Progress,
    Pulse,
    Record,
    SourceStatus,
    Writer,
)
from verl_tui.rendering.session.snapshot import source_pieces
from verl_tui.runs.run import Run
from verl_tui.runs.views.checkpoints import best
from verl_tui.runs.views.signs_of_life import two_jobs
from verl_tui.runs.views.state import State, remaining, state, time_left

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.health.finding import Verdict

T = 1_800_000_000.0
STATUS = SourceStatus("logs/train.log", "console", rank=3, modified=T)
ALIVE = Writer(4711, "python train.py")
HOUR = 3600.0


def steps(
    count: int,
    first: int = 1,
    times: Sequence[float] = (),
    *,
    key: str = "actor/entropy",
    **more: Any,
) -> MetricRows:
    at = list(range(first, first + count))
    columns = [[0.5] * count, [3.0] * count]
    return MetricRows((key, "timing_s/step"), at, columns, at, times, **more)


def run_of(
    *records: Record, status: SourceStatus = STATUS, live: bool = False, now: float = T
) -> Run:
    run = Run("r")
    take(run, *records, status=status, live=live, now=now)
    return run


def take(
    run: Run,
    *records: Record,
    status: SourceStatus = STATUS,
    live: bool = False,
    now: float = T,
) -> None:
    run.apply(Batch("r", status, records, live), now)


def verdict(run: Run, now: float) -> Verdict:
    return Judge(load_guide(), run).verdict(now)


def found(run: Run, now: float) -> dict[str, Severity]:
    return {
        one.id: one.severity
        for one in verdict(run, now).findings
        if one.id in ("hang", "crash", "worker-errors")
    }


CRITICAL, WARNING = Severity.CRITICAL, Severity.WARNING
TOTAL = Progress(total=100)
AGREEING = [T - 60 + 3 * at for at in range(20)]
BEATS = [Pulse(T + 60 * minute, "pending: 0, running: 8") for minute in range(1, 7)]
ERROR = Event(EventKind.TRACEBACK, "RuntimeError: judge endpoint returned 503", 42)
CAUGHT = Event(EventKind.TRACEBACK, "ValueError: x", 5, actor="RewardLoopWorker")
EXITED = Event(EventKind.EXITED, "W&B: the run exited with code 0", 9)
DONE = Event(EventKind.FINISHED, "Final validation metrics: {}", 9)
STARTED = Event(EventKind.STARTED, "Started a local Ray instance", 12)
CTRL_C = Event(EventKind.STOPPED, "KeyboardInterrupt", 42)
SIGTERM = Event(EventKind.STOPPED, "*** SIGTERM received at time=1 on cpu 1 ***", 42)
EXIT_255 = Event(EventKind.FATAL, "W&B: the run exited with code 255", 9, bare=True)
WORKERS = [
    CAUGHT._replace(text=f"RuntimeError: {at}", line=at, raised=True)
    for at in range(46)
]
DEBUGGED = Event(EventKind.STAGE, "(Pdb)", 10)
GONE = STATUS._replace(writer=ALIVE._replace(gone=True))
UNHELD = STATUS._replace(unheld=True)
SHUT = STATUS._replace(problem="permission denied")
EVENTS = SourceStatus(
    "tb/events.out.tfevents.1.h.4711.0", "tensorboard events", rank=6, modified=T
)
AGAIN = STATUS._replace(writer=Writer(4712, "python train.py", began=T + 300))
BEGAN = Writer(4711, "", by_name=True)
BEGAN_GONE = Writer(4711, "", gone=True, by_name=True)
LOST = EVENTS._replace(writer=BEGAN_GONE)
CPU = MetricRows(("system/cpu",), [20], [[0.5]], [20], [T + 400], progress=False)
WANDB = STATUS._replace(path="run.wandb", format="W&B run", modified=T + 400)
AGREED = steps(20, times=AGREEING)


def read(*records: Record, status: SourceStatus = STATUS) -> tuple[Any, ...]:
    """Return what a source had when somebody began to look."""
    return status, records, False, T


def live(
    *records: Record, at: float = 0, status: SourceStatus = STATUS
) -> tuple[Any, ...]:
    """Return what came so many seconds later, while somebody watched."""
    return status._replace(bytes_read=9), records, True, T + at


@pytest.mark.parametrize(
    ("batches", "after", "expected", "findings"),
    [
        # a file's time alone is that of a copy, and clocks of hosts differ by minutes
        ([read(steps(20), TOTAL)], 600, State.ENDED, {}),
        ([read(steps(20), TOTAL)], 365 * 86400, State.ENDED, {}),
        ([read(steps(20), TOTAL)], -600, State.RUNNING, {}),
        # steps that come while we watch are evidence for a while
        ([read(steps(20), TOTAL), live(steps(1, 21))], 600, State.STALLED, {"hang": CRITICAL}),
        ([read(steps(20), TOTAL), live(steps(1, 21))], 5 * HOUR, State.ENDED, {}),
        # the silence of a log that may not be read any more proves nothing
        ([read(steps(20), TOTAL), live(steps(1, 21)), live(status=SHUT)], 600, State.UNKNOWN, {}),
        ([read(AGREED, status=SHUT), live(steps(1, 21), status=EVENTS)], 600, State.STALLED, {"hang": CRITICAL}),
        # so are times in the log that agree with the file's, unless nobody holds it
        ([read(AGREED)], 600, State.STALLED, {"hang": CRITICAL}),
        ([read(AGREED, status=STATUS._replace(modified=T + 700))], 1400, State.ENDED, {}),
        ([read(AGREED, status=UNHELD)], 600, State.ENDED, {}),
        # a heartbeat goes on in a log that is brought over, and is over where it stops
        ([read(steps(20), *BEATS, status=UNHELD._replace(modified=T + 361))], 365, State.STALLED, {"hang": CRITICAL}),
        ([read(steps(20), *BEATS, status=UNHELD._replace(modified=T + 361))], 600, State.ENDED, {}),
        # the process is gone, and has said something or nothing
        ([read(steps(20), TOTAL, status=GONE)], 1, State.ENDED, {"crash": WARNING}),
        ([read(steps(99), Progress(99, 100), status=GONE)], 1, State.FINISHED, {}),
        ([read(steps(20), ERROR, status=GONE)], 1, State.CRASHED, {"crash": CRITICAL}),
        ([read(steps(20), TOTAL, status=LOST)], 10, State.ENDED, {"crash": WARNING}),
        ([read(steps(20), TOTAL, status=UNHELD)], 1, State.ENDED, {}),
        # steps that come after its end are another's; a last one may be late
        (
            [read(steps(20), TOTAL, status=GONE), live(steps(1, 21), at=9, status=GONE)],
            10, State.RUNNING, {},
        ),
        (
            [read(steps(20), TOTAL, status=GONE), live(steps(1, 21), at=1, status=GONE)],
            10, State.ENDED, {"crash": WARNING},
        ),
        (
            [read(steps(20), TOTAL, status=LOST), read(steps(20), status=GONE), live(steps(1, 1), at=9, status=GONE)],
            10, State.RUNNING, {},
        ),
        # another process that has it open starts, until its first step in any file
        ([read(steps(20), TOTAL, status=GONE), live(at=310, status=AGAIN)], 320, State.WAITING, {}),
        ([read(steps(20), TOTAL, status=LOST), read(steps(20), status=AGAIN)], 600, State.WAITING, {}),
        ([read(steps(20), TOTAL, status=STATUS._replace(modified=T - HOUR)), read(status=AGAIN._replace(modified=T - HOUR))], 310, State.WAITING, {}),
        ([read(steps(20), TOTAL, status=GONE), live(at=310, status=AGAIN)], 3 * HOUR, State.WAITING, {"hang": WARNING}),
        ([read(steps(20), TOTAL, status=GONE), live(steps(1, 21), at=330, status=AGAIN)], 340, State.RUNNING, {}),
        (
            [read(steps(20), TOTAL, status=GONE), live(at=310, status=AGAIN), live(steps(1, 21), at=330, status=EVENTS)],
            340, State.RUNNING, {},
        ),
        # an error is reported at once, and withdrawn when steps go on
        ([read(steps(20), TOTAL, ERROR)], 1, State.RUNNING, {"crash": WARNING}),
        ([read(steps(20), TOTAL, ERROR)], 90, State.CRASHED, {"crash": CRITICAL}),
        ([read(steps(20), TOTAL, ERROR), live(steps(1, 21))], 1, State.RUNNING, {}),
        ([read(steps(11), *WORKERS)], 1, State.RUNNING, {"worker-errors": WARNING}),
        # ctrl+c is the user's, a signal is not; W&B's exit code leaves the reason to the console
        ([read(steps(20), CTRL_C)], 1, State.ENDED, {"crash": Severity.INFO}),
        ([read(steps(20), SIGTERM)], 1, State.CRASHED, None),
        ([read(steps(11), CTRL_C), read(steps(15), EXIT_255, status=WANDB)], 1, State.ENDED, None),
        ([read(steps(11), ERROR), read(steps(15), EXIT_255, status=WANDB)], 1, State.CRASHED, None),
        # what a source said of the end before a start is of another process
        (
            [
                read(steps(20), TOTAL), read(steps(20), EXIT_255, status=WANDB._replace(modified=T)),
                live(STARTED, at=300, status=STATUS._replace(modified=T + 300, writer=ALIVE)),
            ],
            301, State.WAITING, {},
        ),
        # system figures are no progress
        (
            [read(AGREED, CPU, status=WANDB._replace(modified=T + 400, writer=ALIVE))],
            600, State.STALLED, {"hang": CRITICAL},
        ),
        ([read(Event(EventKind.STAGE, "Capturing CUDA graph", 40), status=STATUS._replace(writer=ALIVE))], 1200, State.WAITING, {}),
        # W&B says goodbye: near the last step, long before, after an exception
        ([read(steps(99), Progress(99, 100), EXITED)], 1, State.FINISHED, {}),
        ([read(steps(11), Progress(11, 30), EXITED)], 1, State.ENDED, None),
        ([read(steps(13), Progress(total=20), ERROR, EXITED)], 90, State.CRASHED, {"crash": CRITICAL}),
        # a worker's error may be caught, and a debugger is no end
        ([read(steps(11), CAUGHT)], 100, State.RUNNING, None),
        ([read(steps(20), ERROR, DEBUGGED)], 90, State.RUNNING, None),
        ([read(steps(20), DONE, DEBUGGED)], 1, State.RUNNING, None),
        # a start revives a crashed run
        (
            [live(steps(5), ERROR), live(STARTED, at=200, status=STATUS._replace(modified=T + 200))],
            201, State.WAITING, None,
        ),
        # the process that began an event file is known by its name only
        ([read(steps(20), TOTAL, status=EVENTS._replace(writer=BEGAN))], HOUR, State.ENDED, {}),
        ([read(steps(20), status=LOST)], 10, State.ENDED, {}),
        (
            [read(steps(20), TOTAL, status=LOST), read(steps(5, first=21), status=STATUS._replace(modified=T + 200))],
            210, State.RUNNING, None,
        ),
        (
            [
                read(steps(20), TOTAL, status=LOST),
                read(steps(5, first=21), status=EVENTS._replace(path="tb/2", modified=T + 20, writer=BEGAN)),
            ],
            30, State.RUNNING, None,
        ),
        (
            [read(steps(20, times=[T] * 20), TOTAL, status=LOST), read(CPU, status=WANDB)],
            401, State.ENDED, {"crash": WARNING},
        ),
        # a copy that goes on is of a run that goes on; an old console beside a newer file is not missed
        (
            [
                read(steps(20), TOTAL, status=UNHELD),
                live(steps(1, 21), at=60, status=UNHELD._replace(modified=T + 60)),
            ],
            70, State.RUNNING, None,
        ),
        (
            [read(steps(20), TOTAL, status=UNHELD), read(steps(25), status=EVENTS._replace(modified=T + 200))],
            201, State.RUNNING, None,
        ),
    ],
)  # fmt: skip
def test_the_state_and_what_is_found(batches, after, expected, findings):
    run = Run("r")
    for status, records, is_live, now in batches:
        take(run, *records, status=status, live=is_live, now=now)
    assert state(run, T + after) is expected
    if findings is not None:
        assert found(run, T + after) == findings
    if expected is not State.RUNNING:
        assert remaining(run, T + after) is None


@pytest.mark.parametrize(
    ("step", "after", "left"), [(20, 0, 240), (20, 2, 238), (99, 20, 0), (20, 60, None)]
)
def test_the_time_that_is_left_passes_between_two_records(step, after, left):
    run = run_of(steps(step), TOTAL, status=STATUS._replace(writer=ALIVE))
    assert time_left(run, T + after) == left


@pytest.mark.parametrize("early", [2 * HOUR, 365 * 86400.0])
def test_a_time_that_is_yet_to_come_proves_no_life_until_steps_come(early):
    run = run_of(steps(20), Progress(total=100), now=T - early)
    assert state(run, T - early) is State.UNKNOWN
    assert found(run, T - early) == {}
    take(run, steps(1, 21), live=True, now=T - early)
    assert state(run, T - early) is State.RUNNING


def test_a_process_that_holds_the_log_is_evidence_for_ever_and_is_named():
    run = run_of(steps(20), status=STATUS._replace(writer=ALIVE))
    hang = next(one for one in verdict(run, T + 30 * HOUR).findings if one.id == "hang")
    assert (
        "alive: python train.py (process 4711) holds train.log open for writing"
        in hang.evidence
    )
    assert state(run, T + 30 * HOUR) is State.STALLED


def test_a_heartbeat_whose_counters_stand_still_proves_the_hang():
    said = "pending: 0, running: 8, finished: 0, failure: 0"
    beats = [Pulse(T + 60 * minute, said) for minute in range(1, 7)]
    run = run_of(
        steps(20), Progress(total=30), *beats, status=STATUS._replace(modified=T + 361)
    )
    assert run.last_record == pytest.approx(T + 60, abs=2.0), (
        "heartbeats are no progress"
    )
    hang = next(one for one in verdict(run, T + 365).findings if one.id == "hang")
    assert any(
        "its counters have stood still for 5m: " + said in one for one in hang.evidence
    )
    assert remaining(run, T + 365) is None


def test_heartbeats_of_another_time_zone_tell_for_how_long_all_the_same():
    beats = [
        Pulse(T - 8 * HOUR + 60 * minute, "pending: 0, running: 8")
        for minute in range(1, 7)
    ]
    run = run_of(steps(20), *beats, status=STATUS._replace(modified=T + 361))
    assert run.last_record == pytest.approx(T + 61, abs=2.0)


def test_what_others_write_into_the_log_of_a_crashed_run_does_not_revive_it():
    error = Event(EventKind.TRACEBACK, "ValueError: x", 9)
    run = run_of(steps(5), error, live=True)
    assert state(run, T + 30) is State.RUNNING
    take(
        run,
        status=STATUS._replace(modified=T + 30, bytes_read=1),
        live=True,
        now=T + 30,
    )
    assert state(run, T + 40) is State.RUNNING, (
        "the trainer may have caught it and go on printing"
    )
    assert state(run, T + 100) is State.CRASHED
    later = STATUS._replace(modified=T + 200, bytes_read=2)
    take(run, status=later, live=True, now=T + 200)
    assert state(run, T + 201) is State.CRASHED
    take(run, steps(1, first=6), status=later, live=True, now=T + 202)
    assert state(run, T + 203) is State.RUNNING
    take(run, error, status=STATUS._replace(modified=T + 210), live=True, now=T + 210)
    assert state(run, T + 211) is State.RUNNING, (
        "an older silence says nothing of a later error"
    )


def test_the_last_validation_belongs_to_the_end_and_another_start_does_not():
    end = Event(EventKind.FINISHED, "Final validation metrics: {}", 9)
    run = run_of(steps(20), end)
    take(run, MetricRows(("val/test_score/gsm8k",), [21], [[0.5]], [21]))
    assert state(run, T + 1) is State.FINISHED
    take(run, steps(1, 22))
    assert state(run, T + 1) is State.RUNNING
    again = run_of(
        steps(20),
        Progress(total=20),
        end,
        Event(EventKind.STARTED, "Started a local Ray instance.", 10),
    )
    assert state(again, T + 1) is not State.FINISHED


@pytest.mark.parametrize("tracker", [10, None])
def test_a_checkpoint_that_the_run_died_over_is_not_offered(tracker):
    saves = [
        Event(EventKind.CHECKPOINT, f"ckpt/global_step_{at}", 9 * at, at)
        for at in (10, 20)
    ]
    tracked = [Event(EventKind.SAVED, "complete", 0, tracker)] if tracker else []
    rows = MetricRows(
        ("critic/score/mean",),
        range(1, 20),
        [[0.1 * at for at in range(1, 20)]],
        range(19),
    )
    run = run_of(rows, *saves, *tracked)
    going = best(run)
    assert going is not None
    assert going.latest is not None
    assert going.latest.step == 20
    take(run, Event(EventKind.FATAL, "OSError: No space left on device", 999))
    dead = best(run)
    assert dead is not None
    assert dead.latest is not None
    assert dead.nearest is not None
    assert (dead.latest.step, dead.nearest.step) == (10, 10)


def test_a_stopped_process_is_said_and_its_time_counts_for_nothing():
    run = run_of(steps(20), Progress(total=100), status=STATUS._replace(writer=ALIVE))
    take(run, status=STATUS._replace(writer=ALIVE._replace(stopped=True)), now=T + 2)
    assert (state(run, T + 3), found(run, T + 3)) == (
        State.STALLED,
        {"hang": Severity.WARNING},
    )
    (hang,) = (one for one in verdict(run, T + 180).findings if one.id == "hang")
    assert (
        hang.message
        == "no step is being made: python train.py (process 4711) is stopped"
    )
    assert remaining(run, T + 180) is None
    take(run, status=STATUS._replace(writer=ALIVE), now=T + 182)
    assert (state(run, T + 183), found(run, T + 183)) == (State.RUNNING, {})
    assert state(run, T + 182 + 300) is State.STALLED


def test_a_host_that_slept_has_not_made_its_runs_hang():
    monitor = Monitor(Config())
    monitor.apply(
        Batch("r", STATUS._replace(writer=ALIVE), (steps(20), Progress(total=100))), T
    )
    for at in (0.0, 1.0, 9 * HOUR, 9 * HOUR + 1):
        monitor.awake(T + at)
        monitor.judge(T + at)
    assert state(monitor.runs["r"], T + 9 * HOUR + 1) is State.RUNNING
    assert not [one for one in monitor.verdicts["r"].findings if one.id == "hang"]
    assert state(monitor.runs["r"], T + 9 * HOUR + 300) is State.STALLED, (
        "it had all the time since"
    )


def test_looks_ten_seconds_apart_are_no_sleep_of_the_host():
    monitor = Monitor(Config())
    monitor.apply(
        Batch("r", STATUS._replace(writer=ALIVE), (steps(20), Progress(total=100))), T
    )
    for at in range(0, 130, 10):
        monitor.awake(T + at * 1.2)  # a busy machine looks late
    assert state(monitor.runs["r"], T + 130) is State.STALLED


@pytest.mark.parametrize(
    ("said", "quiet", "warned"),
    [
        ("Capturing CUDA graph shapes", 1700.0, False),
        ("Capturing CUDA graph shapes", 1900.0, True),
        ("validation generation end", 1900.0, False),
        ("validation generation end", 7300.0, True),
    ],
)
def test_a_start_that_says_nothing_for_long_is_a_warning(said, quiet, warned):
    run = run_of(Event(EventKind.STAGE, said, 40), status=STATUS._replace(writer=ALIVE))
    assert state(run, T + quiet) is State.WAITING
    assert found(run, T + quiet) == ({"hang": Severity.WARNING} if warned else {})
    copied = run_of(Event(EventKind.STAGE, said, 40))
    assert found(copied, T + quiet) == {}, "a file's time alone is no sign of life"


def test_a_start_that_only_counts_is_a_warning_unless_gpus_work():
    beats = [Pulse(T + 60 * minute, "pending: 8, running: 0") for minute in range(60)]
    status = STATUS._replace(modified=T + 59 * 60, writer=ALIVE)
    run = run_of(*beats, status=status)
    assert found(run, T + HOUR) == {"hang": Severity.WARNING}
    run.gpus = GpuReading(T + HOUR, (Gpu("0", "H100", utilization=90.0),))
    assert found(run, T + HOUR) == {}


def test_a_start_after_a_kill_waits_for_its_first_step():
    begun = Event(EventKind.STARTED, "Started a local Ray instance.", 30)
    late = STATUS._replace(modified=T + 300, writer=ALIVE)
    run = run_of(steps(20), Progress(total=100))
    take(run, begun, status=late, live=True, now=T + 300)
    assert state(run, T + 900) is State.WAITING, (
        "loading takes long, and what came before is another process's"
    )
    assert found(run, T + 900) == {}
    take(
        run,
        Event(EventKind.RESUMED, "Setting global step to 10", 31, 10),
        status=late,
        live=True,
        now=T + 300,
    )
    assert (state(run, T + 900), run.step) == (State.WAITING, 10)
    take(
        run,
        steps(1, 11),
        status=late._replace(modified=T + 901),
        live=True,
        now=T + 901,
    )
    assert state(run, T + 902) is State.RUNNING
    assert [one.step for one in run.restarts] == [11]


ONE = Writer(1, "", jobs={1: "python a.py (process 1)"})
TWO = Writer(2, "", jobs={2: "python b.py (process 2)"})


@pytest.mark.parametrize(
    ("first", "second", "key", "named"),
    [
        (ONE, TWO, "actor/entropy", True),
        (ONE._replace(jobs={**ONE.jobs, **TWO.jobs}), None, "actor/entropy", True),
        # a trainer's other half, its rank, what cannot be seen or is gone
        (ONE, TWO, "orchestrator/queue", False),
        (ONE, ONE, "actor/entropy", False),
        (ONE, TWO._replace(jobs={}), "actor/entropy", False),
        (ONE, TWO._replace(gone=True), "actor/entropy", False),
    ],
)
def test_two_jobs_that_write_one_run_are_named(first, second, key, named):
    run = run_of(steps(20), status=STATUS._replace(writer=first))
    other = MetricRows((key,), [1], [[0.5]], [1])
    take(run, other, status=STATUS._replace(path="logs/b.log", writer=second))
    said = "two trainings write into it: python a.py (process 1) and python b.py (process 2)"
    assert two_jobs(run) == said * named
    pieces = [*source_pieces(run, {"sources": "i"})]
    assert pieces == [("two trainings write into it (i)", "warning")] * named


# -- files that are no log -------------------------------------------------------------------------

NOTES = SourceStatus("logs/INDEX.md", "console", bytes_read=900, size=900, modified=T)


@pytest.mark.parametrize(
    ("status", "quiet", "expected"),
    [
        (NOTES._replace(unheld=True), 5.0, State.NO_TRAINING),
        (NOTES, 5.0, State.WAITING),  # it may have just begun, on another host
        (NOTES, HOUR, State.NO_TRAINING),
        (NOTES._replace(writer=ALIVE), HOUR, State.WAITING),
        (NOTES._replace(bytes_read=500, unheld=True), HOUR, State.WAITING),
        (NOTES._replace(size=0, bytes_read=0, unheld=True), 5.0, State.WAITING),
        (NOTES._replace(format="tutorial JSONL", unheld=True), 5.0, State.WAITING),
        (NOTES._replace(unreadable=3), HOUR * 2, State.ENDED),
    ],
)
def test_a_file_without_a_line_of_a_training_is_none(status, quiet, expected):
    assert state(run_of(status=status), T + quiet) is expected

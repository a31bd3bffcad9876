"""How a console tells of its run's end: errors, signals, failed starts, and what only looks like an
end.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from log_reading import read_run, read_runs

from verl_tui.records import Event, EventKind, Pulse
from verl_tui.runs.views.state import State, state
from verl_tui.sources.formats.console.decoder import ConsoleDecoder
from verl_tui.sources.formats.lines import LineReader

if TYPE_CHECKING:
    from pathlib import Path

BAR = "\r 41%|████      | 41/100 [00:01<00:01, 33.86it/s]"
TRACE = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    main()\n'
RANKS = "".join(
    f"[rank{rank}]: {line}\n"
    for rank, text in (
        (3, "torch.OutOfMemoryError: CUDA out of memory."),
        (1, "RuntimeError: NCCL communicator"),
    )
    for line in (*TRACE.splitlines(), text)
)
ENDS = {
    EventKind.FATAL,
    EventKind.TRACEBACK,
    EventKind.STOPPED,
    EventKind.FINISHED,
    EventKind.EXITED,
}


def records(text: str) -> list[object]:
    reader = LineReader(ConsoleDecoder())
    return [*reader.feed(text.encode()), *reader.finish()]


def events(text: str) -> list[Event]:
    """Return all events but lines that only report trouble."""
    return [
        one
        for one in records(text)
        if isinstance(one, Event) and one.kind is not EventKind.WARNING
    ]


def last(text: str) -> tuple[EventKind, str, int]:
    found = [one for one in events(text) if one.kind in ENDS][-1]
    return found.kind, found.text, found.line


def test_a_traceback_behind_a_bar_that_is_painted_once_more() -> None:
    text = f"{BAR}{TRACE}RuntimeError: judge endpoint returned 503\n{BAR}"
    assert last(text) == (
        EventKind.TRACEBACK,
        "RuntimeError: judge endpoint returned 503",
        4,
    )
    bars = [one for one in records(text) if isinstance(one, Event) and one.line == 1]
    assert [one.kind for one in bars] == [EventKind.TRACEBACK], (
        "it is reported at its first line"
    )


@pytest.mark.parametrize(
    ("bar", "line"),
    [
        (
            BAR,
            "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-11-22T10:00:00 DUE TO TIME LIMIT ***",
        ),
        (BAR, "*** SIGTERM received at time=1795344697 on cpu 1 ***"),
        (
            "\rTrain:  31%|███       | 31/100 [00:05<00:13,  5.25it/s, loss=0.1]",
            "Killed",
        ),
        (
            "\rTraining Progress:  37%|███▋      | 11/30 [00:13<00:24,  1.31s/it]",
            "Error executing job with overrides: []",
        ),
    ],
)
def test_bars_are_cut_off_before_every_kind_of_line(bar: str, line: str) -> None:
    (found,) = events(bar + line + "\n")
    assert found.text == line


def test_ctrl_c_is_an_end_from_outside() -> None:
    assert last(f"{TRACE}KeyboardInterrupt\n") == (
        EventKind.STOPPED,
        "KeyboardInterrupt",
        4,
    )
    ranked = "".join(
        f"[rank0]: {line}\n" for line in (*TRACE.splitlines(), "KeyboardInterrupt")
    )
    assert last(ranked)[:2] == (EventKind.STOPPED, "KeyboardInterrupt")


def test_errors_of_ranks_and_actors_carry_who_said_it() -> None:
    assert [(one.actor, one.text) for one in events(RANKS)] == [
        ("rank 3", "torch.OutOfMemoryError: CUDA out of memory."),
        ("rank 1", "RuntimeError: NCCL communicator"),
    ]
    worker = "(AgentLoopWorkerTQ pid=7, ip=10.0.0.2) "
    text = [
        *TRACE.splitlines(),
        "ray.exceptions.RayTaskError(RuntimeError): ray::RewardLoopWorker.compute_score() (pid=2)",
        '  File "reward.py", line 9, in score',
        "RuntimeError: judge endpoint returned 503",
    ]
    (found,) = events("".join(f"{worker}{line}\n" for line in text))
    assert (found.actor, found.text) == (
        "AgentLoopWorkerTQ",
        "RuntimeError: judge endpoint returned 503",
    )


@pytest.mark.parametrize("prefix", ["", "(AgentLoopWorkerTQ pid=7, ip=10.0.0.2) "])
def test_an_actor_that_failed_while_it_was_made_died_of_its_own_exception(
    prefix: str,
) -> None:
    text = [
        *TRACE.splitlines(),
        "ray.exceptions.RayTaskError(ActorDiedError): ray::TaskRunner.run() (pid=7, ip=10.0.0.2)",
        '  File "ray_trainer.py", line 755, in init_workers',
        "ray.exceptions.ActorDiedError: The actor died because of an error raised in its creation task, "
        "ray::WorkerDict.__init__() (pid=8)",
        '  File "fsdp_workers.py", line 149, in __init__',
        "ValueError: no such backend",
    ]
    found = [
        one
        for one in events("".join(f"{prefix}{line}\n" for line in text))
        if one.kind in ENDS
    ]
    assert found[-1].text == "ValueError: no such backend"
    killed = "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task."
    assert last("".join(f"{line}\n" for line in (*text[:3], killed)))[1] == killed


@pytest.mark.parametrize(
    "line",
    [
        "[torch_memory] CUDA OOM on device 0: snapshot written",
        "INFO:2026-11-22 11:31:22,673:Re-issued 12 in-flight prompts",
        "WARNING:2026-11-22 11:31:22,673:A forced group exceeds max_token_len 4096",
    ],
)
def test_lines_of_trouble_of_verl_0_9_1(line: str) -> None:
    (found,) = [one for one in records(line + "\n") if isinstance(one, Event)]
    assert (found.kind, found.raised) == (EventKind.WARNING, False)


def test_heartbeats_and_times_are_signs_of_life() -> None:
    text = "".join(
        f"(TaskRunnerV1 pid=7) INFO:2026-11-22 11:{minute}:22,673:pending: 0, running: 8, finished: 0, failure: 0\n"
        for minute in (31, 32)
    )
    first, second = (one for one in records(text) if isinstance(one, Pulse))
    assert (
        first.counters
        == second.counters
        == "pending: 0, running: 8, finished: 0, failure: 0"
    )
    assert (second.time or 0) - (first.time or 0) == 60.0
    lines = "".join(
        f"[2026-11-22 10:51:{second},648 E 3 3] logging.cc:474: x\n"
        for second in (37, 38, 39, 40)
    )
    assert len([one for one in records(lines) if isinstance(one, Pulse)]) == 2, (
        "one for ten seconds is enough"
    )


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (
            f"{TRACE}ModuleNotFoundError: No module named 'trl'\n",
            "ModuleNotFoundError: No module named 'trl'",
        ),
        (
            "run.sh: line 3: accelerate: command not found\n",
            "accelerate: command not found",
        ),
        (
            "python: can't open file '/home/me/train.py': [Errno 2] No such file\n",
            "python: can't open file",
        ),
        (
            "/usr/bin/python3: No module named verl.trainer\n",
            "No module named verl.trainer",
        ),
        (
            "usage: train.py [-h]\ntrain.py: error: unrecognized arguments: --x\n",
            "unrecognized arguments: --x",
        ),
        (
            "Could not override 'a.b'.\n\nSet the environment variable HYDRA_FULL_ERROR=1 for more.\n",
            "Could not override 'a.b'.",
        ),
    ],
)
def test_a_failed_start_is_a_crashed_run_with_its_cause(
    tmp_path: Path, text: str, cause: str
) -> None:
    (tmp_path / "train.log").write_text(text)
    run = read_run(tmp_path)
    assert state(run, time.time() + 90) is State.CRASHED
    assert run.outcome is not None
    assert cause in run.outcome.text


def test_a_training_that_has_just_begun_is_a_run_that_waits(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("ray init kwargs: {'num_cpus': 8}\nINFO -- Started a local Ray.\n")
    assert state(read_run(tmp_path), log.stat().st_mtime) is State.WAITING


def test_tracebacks_of_others_make_no_run(tmp_path: Path) -> None:
    (tmp_path / "web.log").write_text(
        'Traceback (most recent call last):\n  File "app.py", line 3\nKeyError: 1\n'
    )
    assert read_runs(tmp_path) == {}

"""How a console tells of its run's end: errors, signals, failed starts, and what only looks like an
end; and what the run was doing.
"""

from __future__ import annotations

import time

import pytest
from file_writing import prefixed
from log_reading import read_run, read_runs, read_text

from verl_tui.records import Event, EventKind, Phase, Pulse
from verl_tui.runs.views.state import State, state
from verl_tui.sources.formats.console.decoder import ConsoleDecoder
from verl_tui.sources.formats.lines import LineReader

BAR = "\r 41%|████      | 41/100 [00:01<00:01, 33.86it/s]"
HEAD = "Traceback (most recent call last):"
TRACE = f'{HEAD}\n  File "train.py", line 3, in <module>\n    main()\n'
JUDGE = "RuntimeError: judge endpoint returned 503"
WORKER = "(AgentLoopWorkerTQ pid=7, ip=10.0.0.2) "
ENDS = {EventKind.FATAL, EventKind.TRACEBACK, EventKind.STOPPED, EventKind.FINISHED, EventKind.EXITED}  # fmt: skip


def records(text: str) -> list[object]:
    reader = LineReader(ConsoleDecoder())
    return [*reader.feed(text.encode()), *reader.finish()]


def events(text: str) -> list[Event]:
    """Return all events but lines that only report trouble."""
    found = (one for one in records(text) if isinstance(one, Event))
    return [one for one in found if one.kind is not EventKind.WARNING]


REMOTE = f"""{TRACE}ray.exceptions.RayTaskError(RuntimeError): ray::RewardLoopWorker.compute_score() (pid=2)
  File "reward.py", line 9, in score
{JUDGE}"""
CREATION = f"""{TRACE}ray.exceptions.RayTaskError(ActorDiedError): ray::TaskRunner.run() (pid=7, ip=10.0.0.2)
  File "ray_trainer.py", line 755, in init_workers
ray.exceptions.ActorDiedError: The actor died because of an error raised in its creation task, ray::WorkerDict.__init__() (pid=8)
  File "fsdp_workers.py", line 149, in __init__
ValueError: no such backend"""
DIED = "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{BAR}{TRACE}{JUDGE}\n{BAR}", (EventKind.TRACEBACK, JUDGE, 4, "")),  # behind a bar that is painted once more
        (f"{TRACE}KeyboardInterrupt\n", (EventKind.STOPPED, "KeyboardInterrupt", 4, "")),
        (prefixed("[rank0]: ", f"{TRACE}KeyboardInterrupt"), (EventKind.STOPPED, "KeyboardInterrupt", 4, "rank 0")),
        (prefixed(WORKER, REMOTE), (EventKind.TRACEBACK, JUDGE, 6, "AgentLoopWorkerTQ")),
        # an actor that failed while it was made died of its own exception
        (CREATION + "\n", (EventKind.TRACEBACK, "ValueError: no such backend", 8, "")),
        (prefixed(WORKER, CREATION), (EventKind.TRACEBACK, "ValueError: no such backend", 8, "AgentLoopWorkerTQ")),
        (f"{TRACE}{DIED}\n", (EventKind.FATAL, DIED, 4, "")),
    ],
)  # fmt: skip
def test_the_last_end(text, expected):
    found = [one for one in events(text) if one.kind in ENDS][-1]
    assert (found.kind, found.text, found.line, found.actor) == expected


def test_an_error_is_reported_at_its_first_line():
    found = events(f"{BAR}{TRACE}{JUDGE}\n{BAR}")
    assert [one.kind for one in found if one.line == 1] == [EventKind.TRACEBACK]


def test_errors_of_ranks_carry_who_said_them():
    memory = "torch.OutOfMemoryError: CUDA out of memory."
    first = prefixed("[rank3]: ", f"{TRACE}{memory}")
    second = prefixed("[rank1]: ", f"{TRACE}RuntimeError: NCCL communicator")
    assert [(one.actor, one.text) for one in events(first + second)] == [
        ("rank 3", memory),
        ("rank 1", "RuntimeError: NCCL communicator"),
    ]


@pytest.mark.parametrize(
    ("bar", "line"),
    [
        (BAR, "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-11-22T10:00:00 DUE TO TIME LIMIT ***"),
        (BAR, "*** SIGTERM received at time=1795344697 on cpu 1 ***"),
        ("\rTrain:  31%|███       | 31/100 [00:05<00:13,  5.25it/s, loss=0.1]", "Killed"),
        ("\rTraining Progress:  37%|███▋      | 11/30 [00:13<00:24,  1.31s/it]", "Error executing job with overrides: []"),
    ],
)  # fmt: skip
def test_bars_are_cut_off_before_every_kind_of_line(bar, line):
    (found,) = events(bar + line + "\n")
    assert found.text == line


@pytest.mark.parametrize(
    "line",
    [
        "[torch_memory] CUDA OOM on device 0: snapshot written",
        "INFO:2026-11-22 11:31:22,673:Re-issued 12 in-flight prompts",
        "WARNING:2026-11-22 11:31:22,673:A forced group exceeds max_token_len 4096",
    ],
)
def test_lines_of_trouble_of_verl_0_9_1(line):
    (found,) = [one for one in records(line + "\n") if isinstance(one, Event)]
    assert (found.kind, found.raised) == (EventKind.WARNING, False)


def test_heartbeats_and_times_are_signs_of_life():
    said = "pending: 0, running: 8, finished: 0, failure: 0"
    beat = "(TaskRunnerV1 pid=7) INFO:2026-11-22 11:{}:22,673:" + said + "\n"
    beats = (one for one in records(beat.format(31) + beat.format(32)) if isinstance(one, Pulse))  # fmt: skip
    first, second = beats
    assert first.counters == second.counters == said
    assert (second.time or 0) - (first.time or 0) == 60.0
    dated = "[2026-11-22 10:51:{},648 E 3 3] logging.cc:474: x\n"
    lines = records("".join(map(dated.format, (37, 38, 39, 40))))
    assert sum(isinstance(one, Pulse) for one in lines) == 2, "one for ten seconds"


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (f"{TRACE}ModuleNotFoundError: No module named 'trl'\n", "ModuleNotFoundError: No module named 'trl'"),
        ("run.sh: line 3: accelerate: command not found\n", "accelerate: command not found"),
        ("python: can't open file '/home/me/train.py': [Errno 2] No such file\n", "python: can't open file"),
        ("/usr/bin/python3: No module named verl.trainer\n", "No module named verl.trainer"),
        ("usage: train.py [-h]\ntrain.py: error: unrecognized arguments: --x\n", "unrecognized arguments: --x"),
        (
            "Could not override 'a.b'.\n\nSet the environment variable HYDRA_FULL_ERROR=1 for more.\n",
            "Could not override 'a.b'.",
        ),
    ],
)  # fmt: skip
def test_a_failed_start_is_a_crashed_run_with_its_cause(tmp_path, text, cause):
    read_text(tmp_path, text)
    run = read_run(tmp_path)
    assert state(run, time.time() + 90) is State.CRASHED
    assert run.outcome is not None
    assert cause in run.outcome.text


def test_what_is_no_end_of_a_training(tmp_path):
    log = tmp_path / "begun" / "train.log"
    begun = "ray init kwargs: {'num_cpus': 8}\nINFO -- Started a local Ray.\n"
    run = read_text(log.parent, begun)
    assert state(run, log.stat().st_mtime) is State.WAITING
    (tmp_path / "web.log").write_text(f'{HEAD}\n  File "app.py", line 3\nKeyError: 1\n')
    log.unlink()
    assert read_runs(tmp_path) == {}


# -- what a run was doing when it failed -----------------------------------------------------------

ERROR = "RuntimeError: the judge is gone"
SITE = "/opt/venv/lib/python3.12/site-packages"
CRITIC = (
    "ray.exceptions.RayTaskError(OutOfMemoryError): \x1b[36mray::TaskRunner.run()\x1b[39m (pid=9)",
    "ray.exceptions.RayTaskError(OutOfMemoryError): ray::WorkerDict.critic_update_critic()",
)


def frame(path: str, function: str, source: str = "pass") -> str:
    return f'  File "{path}", line 7, in {function}\n    {source}'


FIT = frame("/home/me/verl/trainer/ppo/ray_trainer.py", "fit")
VALIDATE = frame("/x/verl/trainer/ppo/ray_trainer.py", "_validate")


@pytest.mark.parametrize(
    ("lines", "doing"),
    [
        ((FIT, VALIDATE), "validating"),
        ((frame("/x/verl/workers/config/actor.py", "validate"),), "checking the settings"),
        ((FIT, frame("/x/verl/trainer/ppo/ray_trainer.py", "_save_checkpoint")), "saving a"),
        ((FIT, frame("/x/verl/workers/reward_manager/dapo.py", "__call__")), "scoring responses"),
        ((frame(f"{SITE}/trl/trainer/grpo_trainer.py", "_calculate_rewards"),), "scoring"),
        ((frame(f"{SITE}/transformers/trainer.py", "training_step"),), "updating the weights"),
        ((frame(f"{SITE}/transformers/trainer.py", "evaluation_loop"),), "validating"),
        ((frame(f"{SITE}/transformers/modeling_utils.py", "from_pretrained"),), "loading the mod"),
        ((frame(f"{SITE}/transformers/tokenization_auto.py", "from_pretrained"),), "loading the t"),
        ((frame(f"{SITE}/ray/_private/services.py", "wait_for_node"),), "starting Ray"),
        # a call of workers that died without a traceback
        ((frame("/x/ray_trainer.py", "fit", "out = self.actor_rollout_wg.generate_sequences(batch)"),),
         "generating responses"),
    ],
)  # fmt: skip
def test_the_functions_of_trainers_tell(lines, doing):
    phase = events("\n".join((HEAD, *lines, ERROR, "")))[-1].phase
    assert phase is not None
    assert phase.words.startswith(doing)


@pytest.mark.parametrize(
    ("lines", "kind", "phase"),
    [
        # the outermost function tells, and is named
        ((HEAD, FIT, VALIDATE, frame("/x/verl/workers/reward_manager/naive.py", "__call__"), ERROR),
         EventKind.TRACEBACK, Phase("validating", "_validate() in ray_trainer.py")),
        # what Ray reports of another process belongs to the traceback
        (("Error executing job with overrides: []", HEAD, frame("/x/verl/trainer/main_ppo.py", "main"), CRITIC[0], FIT,
          CRITIC[1], "torch.OutOfMemoryError: CUDA out of memory."),
         EventKind.FATAL, Phase("updating the critic", "update_critic()")),
    ],
)  # fmt: skip
def test_which_function_tells(lines, kind, phase):
    found = events("\n".join((*lines, "")))[-1]
    assert (found.kind, found.phase) == (kind, phase)


def test_a_worker_says_what_it_was_doing():
    update = frame("/x/verl/workers/fsdp_workers.py", "update_actor")
    found = events(prefixed("(WorkerDict pid=7) ", f"{HEAD}\n{update}\n{ERROR}"))[-1]
    assert found.actor == "WorkerDict"
    assert found.phase is not None
    assert found.phase.words == "updating the policy"

"""What a run was doing when it failed, by the traceback on its console."""

from __future__ import annotations

import pytest

from verl_tui.records import Event, EventKind, Phase
from verl_tui.sources.formats.console.decoder import ConsoleDecoder
from verl_tui.sources.formats.lines import LineReader

HEAD = "Traceback (most recent call last):"
ERROR = "RuntimeError: the judge is gone"
SITE = "/opt/venv/lib/python3.12/site-packages"


def frame(path: str, function: str, source: str = "pass") -> str:
    return f'  File "{path}", line 7, in {function}\n    {source}'


FIT = frame("/home/me/verl/trainer/ppo/ray_trainer.py", "fit")


def ending(*lines: str) -> Event:
    reader = LineReader(ConsoleDecoder())
    found = [*reader.feed("\n".join((*lines, "")).encode()), *reader.finish()]
    return [one for one in found if isinstance(one, Event)][-1]


def words(*lines: str) -> str:
    phase = ending(*lines).phase
    return phase.words if phase is not None else ""


@pytest.mark.parametrize(
    ("frames", "doing"),
    [
        ((FIT, frame("/x/verl/trainer/ppo/ray_trainer.py", "_validate")), "validating"),
        (
            (FIT, frame("/x/verl/trainer/ppo/ray_trainer.py", "_save_checkpoint")),
            "saving a",
        ),
        (
            (FIT, frame("/x/verl/workers/reward_manager/dapo.py", "__call__")),
            "scoring responses",
        ),
        (
            (frame(f"{SITE}/trl/trainer/grpo_trainer.py", "_calculate_rewards"),),
            "scoring",
        ),
        (
            (frame(f"{SITE}/transformers/trainer.py", "training_step"),),
            "updating the weights",
        ),
        ((frame(f"{SITE}/transformers/trainer.py", "evaluation_loop"),), "validating"),
        (
            (frame(f"{SITE}/transformers/modeling_utils.py", "from_pretrained"),),
            "loading the mod",
        ),
        (
            (frame(f"{SITE}/transformers/tokenization_auto.py", "from_pretrained"),),
            "loading the t",
        ),
        ((frame(f"{SITE}/ray/_private/services.py", "wait_for_node"),), "starting Ray"),
    ],
)
def test_the_functions_of_trainers_tell(frames: tuple[str, ...], doing: str) -> None:
    assert words(HEAD, *frames, ERROR).startswith(doing)


def test_the_outermost_function_tells_and_is_named() -> None:
    validate = frame("/x/verl/trainer/ppo/ray_trainer.py", "_validate")
    score = frame("/x/verl/workers/reward_manager/naive.py", "__call__")
    found = ending(HEAD, FIT, validate, score, ERROR)
    assert found.kind is EventKind.TRACEBACK
    assert found.phase == Phase("validating", "_validate() in ray_trainer.py")


def test_a_call_of_workers_tells_that_died_without_a_traceback() -> None:
    call = frame(
        "/x/ray_trainer.py",
        "fit",
        "out = self.actor_rollout_wg.generate_sequences(batch)",
    )
    assert words(HEAD, call, "ray.exceptions.ActorDiedError: The actor died") == (
        "generating responses"
    )


def test_what_ray_reports_of_another_process_belongs_to_the_traceback() -> None:
    main = frame("/x/verl/trainer/main_ppo.py", "main")
    task = "ray.exceptions.RayTaskError(OutOfMemoryError): \x1b[36mray::TaskRunner.run()\x1b[39m (pid=9)"
    worker = "ray.exceptions.RayTaskError(OutOfMemoryError): ray::WorkerDict.critic_update_critic()"
    error = "torch.OutOfMemoryError: CUDA out of memory."
    found = ending(
        "Error executing job with overrides: []", HEAD, main, task, FIT, worker, error
    )
    assert found.kind is EventKind.FATAL
    assert found.phase == Phase("updating the critic", "update_critic()")


def test_a_worker_says_what_it_was_doing() -> None:
    lines = (
        HEAD,
        *frame("/x/verl/workers/fsdp_workers.py", "update_actor").split("\n"),
        ERROR,
    )
    found = ending(*(f"(WorkerDict pid=7) {line}" for line in lines))
    assert (found.actor, found.phase and found.phase.words) == (
        "WorkerDict",
        "updating the policy",
    )

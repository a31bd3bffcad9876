"""Nights: what was written when, by real trainings and by simulated ones, and what is wrong with it."""

from __future__ import annotations

import json
import math
import random
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from log_reading import MADE
from nights.playing import BEGAN, Fault, Scene
from producers.pathologies import extracts
from producers.pathologies.measure import EXTRACTS
from producers.pathologies.training import halves
from scenarios import verl_names
from scenarios.worlds import World, verl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

PACE = 30.0
"""Seconds a step of the trainings whose own steps take less than one: those of a small model are
played as a larger one's.
"""
CRASHED = ("crash", "ended-early")
HANGS = ("hang",)


class Night(NamedTuple):
    """A night, and the truth about it."""

    wrong: str
    """What is wrong; empty where nothing is."""
    named: tuple[str, ...]
    """Findings and states that name it."""
    answer: str
    """What is to be done in the end: `stop`, `resume`, `tell`; empty for nothing."""
    play: Callable[[Path], Iterator[Scene]] | Path
    """Writes it, or the folder of a training that is replayed."""
    fault: Fault | None = None
    """That of a training that is replayed."""


NIGHTS: dict[str, Night] = {}


def night(
    name: str, wrong: str = "", answer: str = "", *named: str
) -> Callable[[Callable[[Path], Iterator[Scene]]], None]:
    """Enter a night into the table."""

    def enter(play: Callable[[Path], Iterator[Scene]]) -> None:
        NIGHTS[name] = Night(wrong, named, answer, play)

    return enter


# -- a training that writes ------------------------------------------------------------------------


class Console:
    """The console of a training, and its checkpoints, as they grow.

    Args:
        folder: The training's own.
        total: Its steps.
        pace: Seconds of a step by its progress bar.
    """

    def __init__(self, folder: Path, total: int, pace: float) -> None:
        self._folder = folder
        self._total = total
        self._pace = pace
        self._lines: list[str] = []
        """What is written at the next moment."""
        self._saved: list[int] = []
        self.time = BEGAN
        self.say(f"Total training steps: {total}", "Training from scratch")

    def say(self, *lines: str) -> None:
        """Write lines at the next moment."""
        self._lines += lines

    def save(self, step: int) -> None:
        """Write a checkpoint at the next moment."""
        self._saved.append(step)

    def step(self, step: int, values: dict[str, float], **marks: bool) -> Scene:
        """Write a step, which took as long as its timer says."""
        took = values["timing_s/step"]
        text = " - ".join(f"{key}:{value!r}" for key, value in values.items())
        done, left = (self._clock(one) for one in (step, self._total - step))
        self.say(
            f"(TaskRunner pid=4711) Training Progress: {100 * step // self._total}%|# | "
            f"{step}/{self._total} [{done}<{left}, {took:.2f}s/it]",
            f"(TaskRunner pid=4711) step:{step} - {text}",
        )
        return self.wait(took, **marks)

    def _clock(self, steps: int) -> str:
        minutes, seconds = divmod(int(steps * self._pace), 60)
        return f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}"

    def wait(self, seconds: float, **marks: bool | None) -> Scene:
        """Let time go by, then write what there is to be written."""
        self.time += seconds
        write = partial(self._write, self._lines, self._saved)
        self._lines, self._saved = [], []
        return Scene(self.time, write, **marks)  # type: ignore[arg-type]

    def _write(self, lines: Sequence[str], saved: Sequence[int]) -> None:
        with (self._folder / "train.log").open("a", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)
        for step in saved:
            home = self._folder / "checkpoints"
            (home / f"global_step_{step}" / "actor").mkdir(parents=True, exist_ok=True)
            tracker = home / "latest_checkpointed_iteration.txt"
            tracker.write_text(str(step), encoding="utf-8")

    def finish(self) -> Scene:
        """End as verl does."""
        self.say("Final validation metrics: {'val-core/math/acc/mean@1': 0.7}")
        return self.wait(5.0)

    def die(self, **marks: bool) -> Scene:
        """Let the process go."""
        return self.wait(1.0, alive=False, **marks)


STEPS, USUAL = 120, 45.0
"""Steps of a simulated training, and about how many seconds they take."""


def simulated(name: str, steps: int = STEPS) -> World:
    """Return a healthy training, always the same for a name."""
    return verl(steps, random.Random(f"night {name}"))


def steps_of(
    console: Console, world: World, first: int = 1, last: int | None = None, at: int = 0
) -> Iterator[Scene]:
    """Write steps of a simulated training; its fault begins, and shows, at one of them."""
    known = world.rows()
    for step in range(first, (last or world.steps) + 1):
        if step % 20 == 0:
            console.save(step)
        yield console.step(*known[step - 1], begins=step == at, shows=step == at)


def begun(folder: Path, name: str, pace: float = USUAL) -> tuple[Console, World]:
    """Return a simulated training that is about to begin, healthy so far."""
    world = simulated(name)
    timer = world.columns["timing_s/step"]
    world.columns["timing_s/step"] = [(one or 0.0) * pace / USUAL for one in timer]
    return Console(folder, world.steps, pace), world


# -- simulated nights ------------------------------------------------------------------------------


@night("simulated healthy")
def _healthy(folder: Path) -> Iterator[Scene]:
    console, world = begun(folder, "healthy")
    yield from steps_of(console, world)
    yield console.finish()


@night("slow checkpoint")
def _slow(folder: Path) -> Iterator[Scene]:
    """A checkpoint that takes four minutes, with a file system that takes three more once."""
    console, world = begun(folder, "slow checkpoint")
    for step in (40, 80):
        world.columns["timing_s/step"][step - 1] = 240.0
    world.columns["timing_s/step"][100] = 170.0
    yield from steps_of(console, world)
    yield console.finish()


@night("caught exception")
def _caught(folder: Path) -> Iterator[Scene]:
    """Workers whose judge fails now and then, which is caught."""
    console, world = begun(folder, "caught exception")
    for step in range(1, world.steps + 1):
        if step in (30, 31, 77):
            console.say(
                "(RewardWorker pid=4801) Traceback (most recent call last):",
                '(RewardWorker pid=4801)   File "judge.py", line 12, in ask',
                "(RewardWorker pid=4801) TimeoutError: the judge took too long, trying again",
            )
        yield from steps_of(console, world, step, step)
    yield console.finish()


@night("noisy reward")
def _noisy(folder: Path) -> Iterator[Scene]:
    """A small batch: the reward jumps about, and dips to half for three steps."""
    console, world = begun(folder, "noisy reward")
    reward = world.columns["critic/score/mean"]
    for at in range(world.steps):
        reward[at] = max(0.0, (reward[at] or 0.0) + world.chance.gauss(0.0, 0.08))
    for at in (60, 61, 62):
        reward[at] = (reward[at] or 0.0) / 2
    world.columns["critic/rewards/mean"] = [*reward]
    yield from steps_of(console, world)
    yield console.finish()


def silence(
    console: Console,
    world: World,
    last: int = 70,
    pace: float = USUAL,
    **how: bool | None,
) -> Iterator[Scene]:
    """Write steps up to one; the next is due, and does not come for long."""
    for scene in steps_of(console, world, last=last):
        yield scene._replace(**how)
    yield console.wait(pace, **how, begins=True, shows=True)
    yield console.wait(max(1800.0, 15 * pace), **how)


@night("hang", "no step comes, its process lives", "tell", *HANGS)
def _hang(folder: Path) -> Iterator[Scene]:
    yield from silence(*begun(folder, "hang"))


SLOW = "no step comes of a run of four minutes a step"


@night("hang of long steps", SLOW, "tell", *HANGS)
def _long(folder: Path) -> Iterator[Scene]:
    yield from silence(*begun(folder, "long", 240.0), last=40, pace=240.0)


STANDS = "the log of another host does not grow any more"


@night("node lost elsewhere", STANDS, "tell", *HANGS)
def _elsewhere(folder: Path) -> Iterator[Scene]:
    yield from silence(*begun(folder, "elsewhere"), alive=None)


WAITS = "a worker is out of memory, and the driver waits"


@night("out of memory, its process stays", WAITS, "tell", *HANGS)
def _memory(folder: Path) -> Iterator[Scene]:
    console, world = begun(folder, "memory")
    yield from steps_of(console, world, last=45)
    console.say(
        "(WorkerDict pid=4802) Traceback (most recent call last):",
        '(WorkerDict pid=4802)   File "fsdp_workers.py", line 512, in update_actor',
        "(WorkerDict pid=4802) torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB. GPU 0 has a total capacity of 79 GiB",
    )
    yield console.wait(20.0, begins=True, shows=True)
    yield console.wait(1800.0)


@night("node lost", "its process is gone without a word", "tell", *CRASHED)
def _node(folder: Path) -> Iterator[Scene]:
    console, world = begun(folder, "node lost")
    yield from steps_of(console, world, last=64)
    yield console.die(begins=True, shows=True)


@night(
    "node lost, said by Ray", "a node died, and with it a worker", "resume", *CRASHED
)
def _ray(folder: Path) -> Iterator[Scene]:
    console, world = begun(folder, "ray")
    yield from steps_of(console, world, last=50)
    console.say(
        "(raylet) The node with node id: 8a6e and address: 10.0.0.7 and node name: 10.0.0.7 has been "
        "marked dead because the detector has missed too many heartbeats from it.",
        "Traceback (most recent call last):",
        '  File "main_ppo.py", line 42, in run',
        "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.",
    )
    yield console.wait(2.0, begins=True, shows=True)
    yield console.die()


RESUMED = "killed at step 57, goes on from 40 after six minutes"


@night("killed and resumed", RESUMED, "tell", *CRASHED)
def _resumed(folder: Path) -> Iterator[Scene]:
    console, world = begun(folder, "resumed")
    yield from steps_of(console, world, last=57)
    yield console.die(begins=True, shows=True)
    yield console.wait(360.0, alive=False)
    path = folder / "checkpoints" / "global_step_40"
    console.say("Total training steps: 120", f"Load from checkpoint folder: {path}")
    console.say("Setting global step to 40")
    yield console.wait(60.0)
    yield from steps_of(console, world, first=41)
    yield console.finish()


@night("NaN", "the loss is NaN from step 66 on", "stop", "not-finite")
def _nan(folder: Path) -> Iterator[Scene]:
    console, world = begun(folder, "nan")
    for key in ("policy_loss", "grad_norm"):
        world.go(key, 66, math.nan)
    yield from steps_of(console, world, at=66)


HIGH = ("circuit-breaker-kl", "policy-collapse")


@night("KL explodes", "policy KL goes to 0.4 at step 60", "stop", *HIGH)
def _kl(folder: Path) -> Iterator[Scene]:
    console, world = begun(folder, "kl")
    world.go("policy_kl", 60, 0.4, 0.02)
    yield from steps_of(console, world, at=60)


@night("KL passes", "policy KL is at 0.4 for six steps, and back", "tell", HIGH[0])
def _passes(folder: Path) -> Iterator[Scene]:
    console, world = begun(folder, "passes")
    world.change("policy_kl", 60, lambda i, known: 0.4 if i < 6 else known)
    yield from steps_of(console, world, at=60)
    yield console.finish()


GONE = ("reward-zero", "circuit-breaker-reward", "policy-collapse", "reward-cliff")


@night("reward gone", "the reward falls to 0 at step 70", "tell", *GONE)
def _gone(folder: Path) -> Iterator[Scene]:
    console, world = begun(folder, "gone")
    for key in ("critic/score/mean", "critic/rewards/mean"):
        world.go(key, 70, 0.0)
    yield from steps_of(console, world, at=70)


# -- real trainings, by their scalars --------------------------------------------------------------


def recorded(name: str, answer: str = "") -> None:
    """Enter a real training by TRL, as verl's console would have shown it."""
    half, training = next(
        (half, one)
        for half in ("tuned", "held_out")
        for one in halves()[half]
        if one.name == name
    )

    def play(folder: Path) -> Iterator[Scene]:
        made = extracts.read(EXTRACTS / half / f"{name}.json")
        known = verl_names.under_verl_names(
            {"step": step, **record} for step, record in made.records.items()
        )
        console = Console(folder, training.steps, PACE)
        with (folder / "config.yaml").open("w", encoding="utf-8") as config:
            for key, value in made.settings.items():
                if name_there := extracts.VERL_SETTINGS.get(key):
                    config.write(f"{name_there}: {json.dumps(value)}\n")
        before = 0
        for step, values in known:
            took = PACE * (step - before)
            times = {"timing_s/step": took, "perf/time_per_step": took}
            before = step
            begins, shows = step == onset, step == by
            yield console.step(step, {**values, **times}, begins=begins, shows=shows)
        yield console.finish()

    fault = training.fault
    if fault is None:
        onset = by = None
        NIGHTS[name] = Night("", (), "", play)
    else:
        onset, by = fault.onset, fault.by
        NIGHTS[name] = Night(training.why, fault.named, answer, play)


for healthy in ("warmup-cosine", "learns-and-is-cut", "grows-longer", "small-batch"):
    recorded(healthy)
recorded("rate-jumps", "stop")
for sick in ("nan-reward", "rate-too-high", "shorter", "sure-sure-sure", "cold"):
    recorded(sick, "tell")


# -- real trainings, whose files are replayed ------------------------------------------------------


def made(
    name: str,
    wrong: str = "",
    answer: str = "",
    *named: str,
    fault: Fault = Fault(),  # noqa: B008 - it is immutable
) -> None:
    """Enter a training of `shared/made`, replayed at its own times."""
    own = fault if wrong else None
    NIGHTS[name] = Night(wrong, named, answer, MADE / name, own)


made("verl061_healthy")
made("verl091_healthy")
made("t014_log1")
made("swift_resume")
made("verl061_resume")
made("verl061_raise", "the reward function raises at step 12", "resume", *CRASHED)
made("verl061_sigterm", "ended from outside at step 12", "resume", *CRASHED)
made(
    *("verl061_collapse", "entropy and gradient are gone", "stop", "policy-collapse"),
    fault=Fault(4, 6),
)

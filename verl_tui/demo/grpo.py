"""Two simulated GRPO runs that write real logs, at once or live: the output of verl 0.9, with
metrics computed from the very rollouts they dump, and `train.log` as a terminal shows it: Ray's
coloured prefixes, step lines, progress bars.
"""

from __future__ import annotations

import pprint
import weakref
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from statistics import mean, stdev
from typing import TYPE_CHECKING, Any

import orjson
import yaml

from verl_tui.demo.rollouts import (
    GROUP,
    PROMPTS,
    STEPS,
    TRAIN_SIZE,
    VALIDATION_SIZE,
    Rollout,
    Rollouts,
    actor_metrics,
    drift,
    dump,
    generator,
    phases,
)

if TYPE_CHECKING:
    import threading

_NUMPY = ("val-", "training/num_turns/")
"""Prefixes of the metrics that V1 hands on as numpy scalars; all others are plain Python numbers by
then.
"""
_BLOCKS = " ▏▎▍▌▋▊▉█"


class Console:
    """The console log of a run as `2>&1 | tee train.log` keeps it, open until its end."""

    def __init__(self, path: Path, total: int, started: float) -> None:
        self._file = path.open("wb", buffering=0)
        weakref.finalize(self, self._file.close)
        self._total = total
        self._started = self._last = started
        self._bar = ""

    def driver(self, text: str) -> None:
        """Print lines of the driver with its prefix."""
        lines = text.split("\n")
        prefix = "\x1b[36m(TaskRunnerV1 pid=19847)\x1b[0m"
        self._file.write("".join(f"{prefix} {line}\n" for line in lines).encode())

    def structure(self, value: object) -> None:
        """Print with `pprint`, as verl does with its configuration and with validation results."""
        self.driver(pprint.pformat(value))

    def info(self, time: float, message: str) -> None:
        """Print a record of the driver's Python logging."""
        at = datetime.fromtimestamp(time, tz=timezone.utc).astimezone()
        stamp = f"{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03d}"
        self.driver(f"INFO:{stamp}:{message}")

    def step(self, data: Mapping[str, float], step: int) -> None:
        """Print the metrics of a step on one line."""
        pairs = [f"{key}:{shown(key, value)}" for key, value in data.items()]
        self.driver(" - ".join([f"step:{step}", *pairs]))

    def progress(self, step: int, time: float) -> None:
        """Print the progress bar as it stands after a step; step 0 draws the empty one."""
        self._bar = self._drawn(step, time)
        self._last = time
        self.driver(self._bar)

    def close(self) -> None:
        """Close the bar, which tqdm draws once more, and the log."""
        self.driver(self._bar)
        self._file.close()

    def _drawn(self, step: int, time: float) -> str:
        """Return tqdm's line in a log file, where it knows no width and draws ten cells."""
        percent = f"Training Progress: {step / self._total * 100:3.0f}%"
        full, part = divmod(int(step / self._total * 80), 8)
        bar = ("█" * full + (_BLOCKS[part] if full < 10 else "")).ljust(10)
        if step == 0:
            return f"\r{percent}|{bar}| 0/{self._total} [00:00<?, ?it/s]"
        # The remaining time goes by the average, the rate by the latest step: close to tqdm's
        # smoothed figure.
        elapsed, last = time - self._started, time - self._last
        remaining = elapsed / step * (self._total - step)
        rate = f"{last:5.2f}s/it" if last >= 1 or last <= 0 else f"{1 / last:5.2f}it/s"
        times = f"{_interval(elapsed)}<{_interval(remaining)}"
        return f"\r{percent}|{bar}| {step}/{self._total} [{times}, {rate}]"


def shown(key: str, value: float) -> str:
    """Return a value as `pprint.pformat` shows it under numpy 2."""
    if not key.startswith(_NUMPY):
        return repr(value)
    return f"np.int64({value})" if isinstance(value, int) else f"np.float64({value})"


def _interval(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return (
        f"{hours:d}:{minutes:02d}:{rest:02d}" if hours else f"{minutes:02d}:{rest:02d}"
    )


_FLOPS, _PARAMETERS = 989e12, 494e6
"""Peak FLOP/s of a GPU and parameters of the model, which `perf/mfu/actor` refers to."""
_OVERHEAD_S = 0.02
"""Part of a step that no phase accounts for."""
_CHANGED = {"kl_loss_coef": 0.00001, "optim": {"lr": 1e-5, "lr_warmup_steps": 0}}
"""What makes the run collapse."""


def configuration(name: str, *, collapses: bool) -> dict[str, Any]:
    """Return the configuration of a run as verl's driver prints it."""
    text = Path(__file__).with_name("config.yaml").read_text(encoding="utf-8")
    config: dict[str, Any] = yaml.safe_load(text)
    config["trainer"]["experiment_name"] = name
    if collapses:
        config["actor_rollout_ref"]["actor"] |= _CHANGED
    return config


class GrpoRun:
    """A GRPO run on word problems: console, metrics, dumps of rollouts and validation, checkpoints.

    Args:
        directory: The run's own, made at its start.
        seed: Chooses its details.
        collapses: Whether it falls off its cliff at `COLLAPSE_STEP`.
    """

    total = STEPS
    """Steps until the run is over."""

    def __init__(self, directory: Path, seed: int, *, collapses: bool = False) -> None:
        self.directory = directory
        self._seed = seed
        self._collapses = collapses
        self._config = configuration(directory.name, collapses=collapses)
        self._rollouts = Rollouts(seed, collapses=collapses)
        self._validated: dict[str, float] = {}
        self._console: Console

    def start(self, time: float) -> None:
        """Write everything that comes before the first step, the validation of step 0 included."""
        trainer = self._config["trainer"]
        file = Path(trainer["project_name"]) / f"{trainer['experiment_name']}.jsonl"
        (self.directory / file).parent.mkdir(parents=True, exist_ok=True)
        text = yaml.safe_dump(self._config, sort_keys=True)
        (self.directory / "config.yaml").write_text(text, encoding="utf-8")
        # Opened once and left open, as verl's FileLogger has it.
        self._metrics = (self.directory / file).open("wb", buffering=0)
        weakref.finalize(self, self._metrics.close)
        console = Console(self.directory / "train.log", self.total, time)
        self._console = console
        console.structure(self._config)
        sizes = f"train dataset size: {TRAIN_SIZE}, val dataset size: {VALIDATION_SIZE}"
        console.info(time, f"train and validate dataloader initialized, {sizes}")
        console.info(time, f"Total training steps: {self.total}")
        console.driver(f"Creating file logger at /workspace/{file}")
        console.info(time, "all initialize finished, ready to fit")
        console.info(time, "Training from scratch")
        self._validate(0)
        self._print_validation("Initial")
        self._log(self._validated, 0)
        console.progress(0, time)

    def write(self, step: int, time: float) -> None:
        """Write one step: its dump, its metrics, and what falls due with it.

        Args:
            step: From 1.
            time: Wall-clock time at which the step ends.
        """
        rng = generator(self._seed, "metrics", step)
        slip = drift(step) if self._collapses else 0.0
        batch = self._rollouts.training(step)
        seconds = phases(step, rng)
        actor = actor_metrics(step, rng, slip)
        due = {
            task: step % self._config["trainer"][task] == 0 or step == self.total
            for task in ("save_freq", "test_freq")
        }
        if due["save_freq"]:
            self._save(step, time)
            seconds["save_checkpoint"] = 0.24 + rng.uniform(-0.02, 0.03)
        validated = {}
        if due["test_freq"]:
            self._validate(step)
            validated = self._validated
        self._dump(f"rollouts/{step}.jsonl", batch, step)
        timing = phase_metrics(seconds, batch, self._gpus)
        if validated:  # which V1 does not count as part of the step
            timing["timing_s/testing"] = 0.31 + rng.uniform(-0.02, 0.04)
        place = {
            "training/global_step": step,
            "training/epoch": (step - 1) * PROMPTS // TRAIN_SIZE,
        }
        actor |= self._of_settings(actor)
        self._log(actor | validated | place | data_metrics(batch) | timing, step)
        self._console.progress(step, time)

    def finish(self, time: float) -> None:  # noqa: ARG002 - as a run may stamp this line
        """Write the only line that marks the end of a verl run."""
        self._print_validation("Final")
        self._console.close()
        self._metrics.close()

    @property
    def _gpus(self) -> int:
        gpus: int = self._config["trainer"]["n_gpus_per_node"]
        return gpus

    def _of_settings(self, actor: Mapping[str, float]) -> dict[str, float]:
        settings = self._config["actor_rollout_ref"]["actor"]
        coefficient = settings["kl_loss_coef"]
        return {
            "actor/kl_coef": coefficient,
            "actor/loss": actor["actor/pg_loss"] + coefficient * actor["actor/kl_loss"],
            "actor/lr": settings["optim"]["lr"],
        }

    def _validate(self, step: int) -> None:
        answers = self._rollouts.validation(step)
        self._dump(f"validation/{step}.jsonl", answers, step, validated=True)
        score = mean(answer.score for answer in answers)
        self._validated = {
            "val-core/openai/gsm8k/reward/mean@1": score,
            "val-aux/num_turns/mean": 2.0,
        }

    def _print_validation(self, title: str) -> None:
        """Print the newest results with their dictionary in Python's notation."""
        pairs = [
            f"{key!r}: {shown(key, value)}" for key, value in self._validated.items()
        ]
        self._console.structure(f"{title} validation metrics: {{{', '.join(pairs)}}}")

    def _dump(
        self, name: str, batch: Sequence[Rollout], step: int, *, validated: bool = False
    ) -> None:
        dump(self.directory / name, batch, step, validated=validated)
        self._console.driver(f"Dumped generations to {name}")

    def _save(self, step: int, time: float) -> None:
        folder = f"checkpoints/global_step_{step}"
        self._console.info(time, f"Saving checkpoint to {folder}")
        (self.directory / folder / "actor").mkdir(parents=True, exist_ok=True)
        # The tracker changes when the checkpoint is complete, hence last.
        tracker = self.directory / "checkpoints" / "latest_checkpointed_iteration.txt"
        tracker.write_text(str(step), encoding="utf-8")

    def _log(self, data: Mapping[str, float], step: int) -> None:
        self._console.step(data, step)
        self._metrics.write(orjson.dumps({"step": step, "data": data}) + b"\n")


def phase_metrics(
    phases: Mapping[str, float], batch: Sequence[Rollout], gpus: int
) -> dict[str, float]:
    """Return the seconds of each phase and what follows from them."""
    step_s = sum(phases.values()) + _OVERHEAD_S
    tokens = sum(one.prompt_tokens + one.response_tokens for one in batch)
    responses = sum(one.response_tokens for one in batch)
    flops = 6 * _PARAMETERS * tokens
    return {
        **{f"timing_s/{phase}": seconds for phase, seconds in phases.items()},
        "timing_s/step": step_s,
        "timing_per_token_ms/gen": phases["gen"] * 1000 / responses,
        "timing_per_token_ms/update_actor": phases["update_actor"] * 1000 / tokens,
        "perf/mfu/actor": flops / (phases["update_actor"] * gpus * _FLOPS),
        "perf/total_num_tokens": tokens,
        "perf/time_per_step": step_s,
        "perf/throughput": tokens / (step_s * gpus),
    }


def data_metrics(batch: Sequence[Rollout]) -> dict[str, float]:
    """Return the metrics of a batch, under verl's names."""
    scores = [one.score for one in batch]
    lengths = [one.response_tokens for one in batch]
    advantages = _advantages(scores)
    columns: dict[str, Sequence[float]] = {
        "critic/score": scores,
        # No KL in the reward: what the policy learns from is the score itself.
        "critic/rewards": scores,
        "critic/advantages": advantages,
        "critic/returns": advantages,
        "response_length": lengths,
        "prompt_length": [one.prompt_tokens for one in batch],
    }
    found = {
        f"{name}/{word}": float(of(values))
        for name, values in columns.items()
        for word, of in (("mean", mean), ("max", max), ("min", min))
    }
    # V1 takes the batch's longest for the limit, so the share is never zero.
    found["response_length/clip_ratio"] = lengths.count(max(lengths)) / len(lengths)
    found["response/aborted_ratio"] = 0.0
    return found | {
        f"training/num_turns/{word}": value
        for word, value in (("mean", 2.0), ("max", 2), ("min", 2))
    }


def _advantages(scores: Sequence[float]) -> list[float]:
    """Return GRPO's advantages: scores relative to their group, in units of the group's spread."""
    values = []
    for place in range(0, len(scores), GROUP):
        group = scores[place : place + GROUP]
        centre, spread = mean(group), stdev(group)
        values += [(score - centre) / (spread + 1e-6) for score in group]
    return values


# -- both runs -------------------------------------------------------------------------------------


HISTORY = 120
"""Steps that lie in the past when the demo opens; half a minute before the collapse."""
PACE_S = 1.0
"""Seconds between two steps, in the history as well as live."""


class Simulation:
    """The demo's trainings: a healthy one, and one that collapses as you watch.

    Args:
        directory: Where the runs' directories are made.
        seed: Chooses the story's details; the same seed and times write the same bytes.
        now: The clock.
    """

    def __init__(self, directory: Path, seed: int, now: Callable[[], float]) -> None:
        self.directory = directory
        self._now = now
        self.runs = (
            GrpoRun(directory / "run_grpo_gsm8k", seed),
            GrpoRun(directory / "run_grpo_high_lr", seed, collapses=True),
        )
        self._written = 0
        """Steps of each run so far."""

    @property
    def finished(self) -> bool:
        """True once every run has written its last line."""
        return self._written == GrpoRun.total

    def prepare(self, history: int = HISTORY) -> None:
        """Start all runs and write so many steps of their past, as if they had been training until
        this moment.
        """
        end = self._now()
        for run in self.runs:
            run.start(end - history * PACE_S)
        for left in reversed(range(history)):
            self._step(end - left * PACE_S)

    def advance(self) -> bool:
        """Write one more step of each run, if any is left; return whether there is more to come."""
        if not self.finished:
            self._step(self._now())
        return not self.finished

    def run(self, stop: threading.Event, pace_s: float = PACE_S) -> None:
        """Advance at a steady pace until the runs are over or `stop` is set.

        Args:
            stop: Ends the simulation at once, also between two steps.
            pace_s: Seconds between two steps.
        """
        while not stop.wait(pace_s) and self.advance():
            pass

    def _step(self, time: float) -> None:
        self._written += 1
        for run in self.runs:
            run.write(self._written, time)
            if self.finished:
                run.finish(time)

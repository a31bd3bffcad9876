"""The simulated GRPO run: the output of verl 0.9, with metrics computed from the very rollouts it
dumps.
"""

from __future__ import annotations

from statistics import mean, stdev
from typing import TYPE_CHECKING

import yaml

from verl_tui.demo import curves, grpo_config, rollouts
from verl_tui.demo.console import Console, validation_text
from verl_tui.demo.filelogger import FileLogger

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from verl_tui.demo.curves import GrpoStep
    from verl_tui.demo.rollouts import Rollout

_FLOPS = 989e12
"""Peak FLOP/s of the GPU, which `perf/mfu/*` refers to."""
_PARAMETERS = 494e6
_CACHE = (
    "The tokenizer has new special tokens that are not in the vocabulary of the model; they are "
    "never sampled."
)
_OVERHEAD_S = 0.02
"""Part of a step that no phase accounts for."""


class GrpoRun:
    """A GRPO run on word problems: console, FileLogger, dumps of rollouts and validation,
    checkpoints.
    """

    def __init__(self, directory: Path, seed: int) -> None:
        self.directory = directory
        self.total = curves.GRPO_STEPS
        """Steps until the run is over."""
        self._seed = seed
        self._validated: dict[str, float] = {}
        self._peaks: dict[str, float] = {}
        self._console: Console
        self._metrics: FileLogger

    def start(self, time: float) -> None:
        """Write everything that comes before the first step, the validation of step 0 included."""
        self.directory.mkdir(parents=True, exist_ok=True)
        text = yaml.safe_dump(grpo_config.resolved(), sort_keys=True)
        (self.directory / "config.yaml").write_text(text, encoding="utf-8")
        self._console = Console(self.directory / "train.log", self.total)
        self._metrics = FileLogger(
            self.directory / grpo_config.PROJECT / f"{grpo_config.EXPERIMENT}.jsonl"
        )
        self._introduce(time)
        self._validate(0)
        self._console.structure(validation_text("Initial", self._validated))
        self._log(self._validated, 0)
        self._console.progress(0, time)

    def write(self, tick: int, time: float) -> None:
        """Write one step: its dump, its metrics, and what falls due with it.

        Args:
            tick: The step, from 1.
            time: Wall-clock time at which the step ends.
        """
        batch = rollouts.training(tick, self._seed)
        now = curves.grpo(tick, self._seed)
        self._noise(tick, time, len(batch))
        saves = tick % grpo_config.SAVE_FREQ == 0 or tick == self.total
        if saves:
            self._save(tick, time)
        tests = tick % grpo_config.TEST_FREQ == 0 or tick == self.total
        if tests:
            self._validate(tick)
        self._dump(f"rollouts/{tick}.jsonl", batch, tick)
        data = trainer_metrics(tick, now, batch, self._validated if tests else {})
        data |= phase_metrics(now, batch, saves=saves, tests=tests)
        self._log(data | _turns(), tick)
        self._console.progress(tick, time)

    def finish(self, time: float) -> None:  # noqa: ARG002 - the tutorials stamp this line
        """Write the only line that marks the end of a verl run."""
        self._console.structure(validation_text("Final", self._validated))
        self._console.close()
        self._metrics.close()

    def _introduce(self, time: float) -> None:
        console = self._console
        console.ray(time)
        console.structure(grpo_config.resolved())
        console.info(
            time,
            f"train and validate dataloader initialized, train dataset size: {rollouts.TRAIN_SIZE},"
            f" val dataset size: {rollouts.VALIDATION_SIZE}",
        )
        console.info(time, f"Total training steps: {self.total}")
        console.worker("WorkerDict", 20871, [_CACHE])
        console.worker("WorkerDict", 20877, [_CACHE], repeated=7)
        file = f"{grpo_config.PROJECT}/{grpo_config.EXPERIMENT}.jsonl"
        console.driver(f"Creating file logger at /workspace/{file}")
        console.info(time, "all initialize finished, ready to fit")
        console.driver(
            "Checkpoint tracker file does not exist: checkpoints/latest_checkpointed_iteration.txt"
        )
        console.info(time, "Training from scratch")

    def _noise(self, step: int, time: float, samples: int) -> None:
        """Print other lines now and then."""
        rng = curves.generator(self._seed, "noise", step)
        if step % 10 == 5:
            pending = rng.randint(0, 4)
            running = rng.randint(6, 30)
            finished = samples - pending - running
            heartbeat = f"pending: {pending}, running: {running}, finished: {finished}, failure: 0"
            self._console.info(time, heartbeat)
        if step % 25 == 1:
            speed = f"{rng.gauss(2400, 80):.1f}"
            line = (
                f"Avg generation throughput: {speed} tokens/s, Running: {rng.randint(4, 16)} reqs, "
                "Waiting: 0 reqs"
            )
            self._console.worker("vLLMHttpServer", 20411, [line], repeated=7)

    def _validate(self, step: int) -> None:
        answers = rollouts.validation(step, self._seed)
        self._dump(f"validation/{step}.jsonl", answers, step, validated=True)
        self._validated = {
            "val-core/openai/gsm8k/reward/mean@1": mean(
                answer.score for answer in answers
            ),
            "val-aux/num_turns/min": 2,
            "val-aux/num_turns/max": 2,
            "val-aux/num_turns/mean": 2.0,
        }

    def _dump(
        self, name: str, batch: Sequence[Rollout], step: int, *, validated: bool = False
    ) -> None:
        rollouts.dump(self.directory / name, batch, step, validated=validated)
        self._console.driver(f"Dumped generations to {name}")

    def _save(self, step: int, time: float) -> None:
        folder = f"checkpoints/global_step_{step}"
        self._console.info(time, f"Saving checkpoint to {folder}")
        (self.directory / folder / "actor").mkdir(parents=True, exist_ok=True)
        # The tracker changes when the checkpoint is complete, hence last.
        (
            self.directory / "checkpoints" / "latest_checkpointed_iteration.txt"
        ).write_text(str(step), encoding="utf-8")

    def _log(self, data: Mapping[str, float], step: int) -> None:
        self._console.step(data, step)
        self._metrics.log(data, step)


def trainer_metrics(
    step: int, now: GrpoStep, batch: Sequence[Rollout], validated: Mapping[str, float]
) -> dict[str, float]:
    """Return the metrics of actor and data, in verl's order.

    Args:
        step: The step.
        now: What the trainer measured.
        batch: The step's rollouts.
        validated: Results of a validation that fell due at this step, else empty.
    """
    actor = {
        "actor/entropy": now.entropy,
        "training/rollout_probs_diff_valid": 1.0,
        "training/rollout_probs_diff_max": now.probs_diff_max,
        "training/rollout_probs_diff_mean": now.probs_diff_mean,
        "training/rollout_probs_diff_std": now.probs_diff_std,
        "training/rollout_actor_probs_pearson_corr": now.pearson,
        "actor/pg_loss": now.pg_loss,
        "actor/kl_loss": now.kl_loss,
        "actor/pg_clipfrac": now.pg_clipfrac,
        "actor/ppo_kl": now.ppo_kl,
        "actor/pg_clipfrac_lower": 0.0,
        "actor/kl_coef": grpo_config.KL_LOSS_COEF,
        "actor/loss": now.pg_loss + grpo_config.KL_LOSS_COEF * now.kl_loss,
        "actor/grad_norm": now.grad_norm,
        "actor/lr": grpo_config.LEARNING_RATE,
        "actor/perf/max_memory_allocated_gb": now.memory_allocated_gb,
        "actor/perf/max_memory_reserved_gb": now.memory_reserved_gb,
        "actor/perf/cpu_memory_used_gb": now.host_memory_gb,
        "perf/mfu/actor": 6
        * _PARAMETERS
        * _tokens(batch)
        / (now.update_actor_s * grpo_config.GPUS * _FLOPS),
    }
    epoch = (step - 1) * rollouts.PROMPTS // rollouts.TRAIN_SIZE
    place = {"training/global_step": step, "training/epoch": epoch}
    return _balance(batch) | actor | dict(validated) | place | _data_metrics(batch)


def phase_metrics(
    now: GrpoStep, batch: Sequence[Rollout], *, saves: bool, tests: bool
) -> dict[str, float]:
    """Return the seconds of each phase and what follows from them.

    Args:
        now: What the trainer measured.
        batch: The step's rollouts.
        saves: Whether a checkpoint was written, which counts as part of the step.
        tests: Whether a validation ran, which V1 does not count.
    """
    phases = {
        "gen": now.gen_s,
        "old_log_prob": now.old_log_prob_s,
        "ref": now.ref_s,
        "adv": now.adv_s,
        "update_actor": now.update_actor_s,
        **({"save_checkpoint": now.save_s} if saves else {}),
        "update_weights": now.update_weights_s,
    }
    step_s = sum(phases.values()) + _OVERHEAD_S
    shown = {**phases, "step": step_s, **({"testing": now.testing_s} if tests else {})}
    tokens = _tokens(batch)
    responses = sum(rollout.response_tokens for rollout in batch)
    return {
        **{f"timing_s/{phase}": seconds for phase, seconds in shown.items()},
        "timing_per_token_ms/gen": now.gen_s * 1000 / responses,
        "timing_per_token_ms/ref": now.ref_s * 1000 / tokens,
        "timing_per_token_ms/adv": now.adv_s * 1000 / tokens,
        "timing_per_token_ms/update_actor": now.update_actor_s * 1000 / tokens,
        "perf/total_num_tokens": tokens,
        "perf/time_per_step": step_s,
        "perf/throughput": tokens / (step_s * grpo_config.GPUS),
    }


def _tokens(batch: Sequence[Rollout]) -> int:
    return sum(rollout.prompt_tokens + rollout.response_tokens for rollout in batch)


def _balance(batch: Sequence[Rollout]) -> dict[str, float]:
    """Return the tokens of each rank before and after the batch was balanced."""
    share = len(batch) // grpo_config.GPUS
    ranks = [
        _tokens(batch[place : place + share]) for place in range(0, len(batch), share)
    ]
    total = sum(ranks)
    return {
        "global_seqlen/min": min(ranks),
        "global_seqlen/max": max(ranks),
        "global_seqlen/minmax_diff": max(ranks) - min(ranks),
        "global_seqlen/balanced_min": total // grpo_config.GPUS - 3,
        "global_seqlen/balanced_max": total // grpo_config.GPUS + 4,
        "global_seqlen/mean": total / grpo_config.GPUS,
    }


def _data_metrics(batch: Sequence[Rollout]) -> dict[str, float]:
    scores = [rollout.score for rollout in batch]
    responses = [rollout.response_tokens for rollout in batch]
    prompts = [rollout.prompt_tokens for rollout in batch]
    advantages = _advantages(batch)
    weighted = sum(
        value * tokens for value, tokens in zip(advantages, responses, strict=True)
    ) / sum(responses)
    return {
        **_summary("critic/score", scores),
        # No KL in the reward: what the policy learns from is the score itself.
        **_summary("critic/rewards", scores),
        **(
            _summary("critic/advantages", advantages)
            | {"critic/advantages/mean": weighted}
        ),
        **(_summary("critic/returns", advantages) | {"critic/returns/mean": weighted}),
        **_summary("response_length", responses),
        "response_length/clip_ratio": _longest(responses),
        **_summary("response_length_non_aborted", responses),
        "response_length_non_aborted/clip_ratio": _longest(responses),
        "response/aborted_ratio": 0.0,
        **_summary("prompt_length", prompts),
        "prompt_length/clip_ratio": _longest(prompts),
    }


def _advantages(batch: Sequence[Rollout]) -> list[float]:
    """Return GRPO's advantages: scores relative to their group, in units of the group's spread."""
    values = []
    for place in range(0, len(batch), rollouts.GROUP):
        scores = [rollout.score for rollout in batch[place : place + rollouts.GROUP]]
        centre = mean(scores)
        spread = stdev(scores)
        values += [(score - centre) / (spread + 1e-6) for score in scores]
    return values


def _summary(name: str, values: Sequence[float]) -> dict[str, float]:
    return {
        f"{name}/mean": mean(map(float, values)),
        f"{name}/max": float(max(values)),
        f"{name}/min": float(min(values)),
    }


def _longest(lengths: Sequence[int]) -> float:
    """Return V1's `clip_ratio`: the share that is as long as the batch's longest, so never zero."""
    return lengths.count(max(lengths)) / len(lengths)


def _turns() -> dict[str, float]:
    return {
        "training/num_turns/mean": 2.0,
        "training/num_turns/max": 2,
        "training/num_turns/min": 2,
        "training/off_policy/trajectory_spans/mean": 1.0,
        "training/off_policy/trajectory_spans/max": 1,
        "training/off_policy/trajectory_spans/min": 1,
        "training/off_policy/trajectory_staleness/mean": 0.0,
        "training/off_policy/trajectory_staleness/max": 0,
        "training/off_policy/trajectory_staleness/min": 0,
    }

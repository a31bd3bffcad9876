"""Writes `verl_logs.jsonl` as verl's tutorials print it: one record a line, a scope and its
fields.
"""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import orjson
import yaml

from verl_tui.demo import curves, sample_texts
from verl_tui.means import clamp

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping
    from pathlib import Path

    from verl_tui.demo.curves import PpoStep

RESPONSES = 8
"""Responses of a step; each logs its reward."""
SAMPLES = 2
"""Trajectories of a step that are logged in full."""
RECORDS_PER_EPOCH = 60
"""Records of an epoch; the training loop's `step` restarts with it, `global_step` does not."""

_DEBUG = (
    "mapping actor to cuda:0-3, critic to cuda:4-7",
    "shard {shard} handles 2 samples",
    "allreduce took {ms}ms for policy_grad",
)


class TutorialRun:
    """A PPO run in the tutorials' dialect: the healthy one, or the one that collapses."""

    def __init__(self, directory: Path, seed: int, *, collapsing: bool = False) -> None:
        self.directory = directory
        self.interval = curves.COLLAPSE_INTERVAL if collapsing else 1
        """Optimiser steps between two records."""
        self.total = (
            curves.COLLAPSE_STEPS if collapsing else curves.TUTORIAL_STEPS
        ) // self.interval
        """Records until the run is over."""
        self._seed = seed
        self._collapsing = collapsing
        self._log = directory / "verl_logs.jsonl"
        self._started = 0.0

    def start(self, time: float) -> None:
        """Create the run's directory, write its configuration and begin its log."""
        self._started = time
        self.directory.mkdir(parents=True, exist_ok=True)
        text = yaml.safe_dump(self._settings(), sort_keys=False, allow_unicode=True)
        (self.directory / "config.yaml").write_text(text, encoding="utf-8")
        self._log.write_bytes(_line(time, "DEBUG", "train", {"message": _DEBUG[0]}))

    def write(self, tick: int, time: float) -> None:
        """Append all records of one step.

        Args:
            tick: Number of the record, from 1.
            time: Wall-clock time at which the step ends.
        """
        step = tick * self.interval
        now = (curves.collapsing_ppo if self._collapsing else curves.healthy_ppo)(
            step, self._seed
        )
        rng = curves.generator(self._seed, self.directory.name, step)
        rewards = _spread(rng, now.reward_mean, now.reward_std)
        records = [_rollout(step, now), *self._responses(step, rewards, rng)]
        records += [
            ("reward", {"step": step, "reward": reward, "tps": _tps(rng)})
            for reward in rewards
        ]
        records += [
            ("ppo", _update(step, now)),
            ("kl", {"step": step, "divergence": round(now.divergence, 5)}),
            (
                "system",
                {
                    "gpu_util": round(now.gpu_util, 1),
                    "memory_util": round(now.memory_util, 1),
                },
            ),
            ("train", self._loop(step, time)),
        ]
        # One millisecond apart and the last of them at the step's end: no stamp lies in the future.
        stamps = [
            time - 0.001 * (len(records) - place)
            for place in range(1, len(records) + 1)
        ]
        lines = [
            _line(stamp, "INFO", scope, data)
            for stamp, (scope, data) in zip(stamps, records, strict=True)
        ]
        if tick % 10 == 0:
            message = _DEBUG[1 + tick // 10 % 2].format(
                shard=rng.randint(0, 3), ms=rng.randint(98, 141)
            )
            lines.append(_line(time, "DEBUG", "ppo", {"message": message}))
        self._append(b"".join(lines))

    def finish(self, time: float) -> None:
        """Write the end of the run."""
        done = {
            "global_step": self.total * self.interval,
            "elapsed_time": round(time - self._started, 2),
            "message": "training finished",
        }
        self._append(_line(time, "INFO", "train", done))

    def _append(self, lines: bytes) -> None:
        with self._log.open("ab") as file:
            file.write(lines)

    def _settings(self) -> dict[str, Any]:
        """Return the run's configuration; the collapsing run lacks what would have held it."""
        controller: dict[str, Any] = {
            "kl_coef": 0.02,
            "kl_controller": "adaptive",
            "target_kl": 0.05,
        }
        if self._collapsing:
            controller = {"kl_coef": 0.001, "kl_controller": "fixed"}
        return {
            "algorithm": "ppo",
            "actor_model": "Qwen/Qwen2.5-1.5B-Instruct",
            **controller,
            "clip_range": 0.2,
            "learning_rate": 1e-6 if not self._collapsing else 5e-6,
            "rollout_batch_size": RESPONSES,
            "max_new_tokens": curves.RESPONSE_LIMIT,
            "total_steps": self.total * self.interval,
            "log_interval": self.interval,
        }

    def _loop(self, step: int, time: float) -> dict[str, Any]:
        """Return the training loop's own record."""
        epoch, place = divmod(step - self.interval, RECORDS_PER_EPOCH * self.interval)
        elapsed = round(time - self._started, 2)
        return {
            "epoch": epoch,
            "step": place + self.interval,
            "global_step": step,
            "elapsed_time": elapsed,
        }

    def _responses(
        self, step: int, rewards: list[float], rng: random.Random
    ) -> list[tuple[str, dict[str, Any]]]:
        """Return the trajectories of a step; shortly before the collapse the first of them begin to
        stutter.
        """
        records = []
        for reward in rewards[:SAMPLES]:
            if self._collapsing:
                decay = clamp((step - curves.COLLAPSE_STEP + 250) / 400, 0, 1)
            else:
                decay = 0.0
            prompt, response = (
                sample_texts.gibberish(rng, decay)
                if decay > 0
                else sample_texts.conversation(rng)
            )
            records.append(
                (
                    "sample",
                    {
                        "step": step,
                        "prompt": prompt,
                        "response": response,
                        "reward": reward,
                    },
                )
            )
        return records


def _rollout(step: int, now: PpoStep) -> tuple[str, dict[str, Any]]:
    return "rollout", {
        "step": step,
        "num_samples": RESPONSES,
        "reward_mean": round(now.reward_mean, 4),
        "reward_std": round(now.reward_std, 4),
        "kl_div": round(now.kl_div, 5),
        "response_length_mean": round(now.response_length, 1),
        "response_length_min": now.response_length_min,
        "response_length_max": curves.RESPONSE_LIMIT,
    }


def _update(step: int, now: PpoStep) -> dict[str, Any]:
    return {
        "step": step,
        "policy_loss": round(now.policy_loss, 4),
        "value_loss": round(now.value_loss, 4),
        "entropy": round(now.entropy, 4),
        "clip_ratio": round(now.clip_ratio, 4),
        "grad_norm": round(now.grad_norm, 4),
    }


def _spread(rng: random.Random, mean: float, deviation: float) -> list[float]:
    """Return one reward per response, whose mean and standard deviation are those of the step."""
    raw = [rng.gauss(0, 1) for _ in range(RESPONSES)]
    centre = sum(raw) / RESPONSES
    width = (sum((value - centre) ** 2 for value in raw) / RESPONSES) ** 0.5
    return [round(mean + deviation * (value - centre) / width, 4) for value in raw]


def _tps(rng: random.Random) -> float:
    return round(rng.gauss(1480, 60), 1)


def _line(time: float, level: str, scope: str, data: Mapping[str, Any]) -> bytes:
    # The tutorials' stamps are local time without a zone.
    moment = (
        datetime.fromtimestamp(time, tz=timezone.utc).astimezone().replace(tzinfo=None)
    )
    stamp = moment.isoformat(timespec="milliseconds")
    return (
        orjson.dumps({"timestamp": stamp, "level": level, "scope": scope, **data})
        + b"\n"
    )

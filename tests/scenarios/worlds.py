"""Simulated trainings whose numbers look like real ones, written as the bytes that real trainers
write.

A world is a set of metrics over steps in one dialect, with samples and settings where they are
wanted. Noise is correlated from step to step and from batch to batch. Everything follows from the
seed.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jsonl import write_jsonl

if TYPE_CHECKING:
    import random
    from collections.abc import Callable
    from pathlib import Path

NOW = 1_790_000_000.0
WORDS = """
    we add the two sides and divide by three so that only x stays on the left then check the result with an example
    because both numbers are even their sum is even too which means half of it is whole first count all apples in
    each box next take away those sold on monday finally compare with what remains after lunch
""".split()  # noqa: SIM905 - to be read as text
HAN = "首先把两个数相加得到十二然后再除以二所以最后答案就是六这与题目条件完全一致我们可以用另外方法验证结果是否正确"


_DIALECTS = ("tutorial", "verl", "other")
_KEYS = {
    "reward": ("rollout/reward_mean", "critic/score/mean", "reward"),
    "policy_kl": ("rollout/kl_div", "actor/ppo_kl", "ppo_kl"),
    "reference_kl": ("kl/divergence", "actor/kl_loss", "kl"),
    "policy_loss": ("ppo/policy_loss", "actor/pg_loss", "loss"),
    "entropy": ("ppo/entropy", "actor/entropy", "entropy"),
    "grad_norm": ("ppo/grad_norm", "actor/grad_norm", "grad_norm"),
    "clip": ("ppo/clip_ratio", "actor/pg_clipfrac", "clip_ratio/region_mean"),
    "length": (
        "rollout/response_length_mean", "response_length/mean", "completions/mean_length"
    ),
    "cut": ("", "response_length/clip_ratio", "completions/clipped_ratio"),
    "gpu": ("system/gpu_util", "", "gpu_util"),
    "memory": ("system/memory_util", "", "memory_util"),
    "rate": ("", "actor/lr", "learning_rate"),
}  # fmt: skip
"""What a metric is -> its key in each dialect."""


@dataclass
class World:
    """One training."""

    dialect: str
    steps: int
    chance: random.Random
    columns: dict[str, list[float | None]] = field(default_factory=dict)
    """The log's own key -> value at each step, None where it is not logged."""
    settings: dict[str, Any] = field(default_factory=dict)
    dumps: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    """Step -> records of its rollout dump."""
    lines: list[str] = field(default_factory=list)
    """Lines behind the last step."""
    again: int | None = None
    """Step from which on the log is written a second time, as a resumed run does it."""
    age: float = 5.0
    """Seconds since the log was last written."""

    def key(self, what: str) -> str:
        """Return the key of what a metric is in the world's dialect, or what is a key itself."""
        names = dict(zip(_DIALECTS, _KEYS.get(what, (what,) * 3), strict=True))
        return names[self.dialect]

    def at(self, what: str, step: int) -> float:
        """Return what a metric is at a step so far; 0 where it is not logged."""
        return self.columns[self.key(what)][step - 1] or 0.0

    def last(self, what: str, onset: int) -> float:
        """Return a metric's last value before a step."""
        known = reversed(self.columns[what][: onset - 1])
        return next(value for value in known if value is not None)

    def noise(self, size: float, memory: float = 0.5) -> list[float]:
        """Return noise with that standard deviation, half of it carried over from step to step."""
        state, out = 0.0, []
        for _ in range(self.steps):
            state = memory * state + math.sqrt(1 - memory**2) * self.chance.gauss(
                0.0, size
            )
            out.append(state)
        return out

    def put(
        self,
        key: str,
        level: Callable[[float], float] | float,
        size: float = 0.0,
        *,
        low: float = -1e9,
    ) -> None:
        """Add a metric: its level over the run (0..1), with noise of that size, never below
        `low`.
        """
        noise = self.noise(size)
        last = max(1, self.steps - 1)
        values = (
            level(i / last) if callable(level) else level for i in range(self.steps)
        )
        self.columns[key] = [
            max(low, value + noise[i]) for i, value in enumerate(values)
        ]

    def change(
        self, what: str, onset: int, value: Callable[[int, float], float]
    ) -> None:
        """Replace a metric from a step on: `value` gets the steps since then and what the healthy
        value was.
        """
        column = self.columns[self.key(what)]
        for i in range(onset - 1, self.steps):
            known = column[i]
            if known is not None:
                column[i] = value(i - onset + 1, known)

    def go(
        self,
        what: str,
        onset: int,
        to: float,
        size: float = 0.0,
        *,
        start: float | None = None,
        length: float = 1.0,
    ) -> None:
        """Let a metric go to a level within so many steps from one on, and stay there, in noise of
        that size.
        """
        first = to if start is None else start
        self.change(
            what,
            onset,
            lambda i, _: ramp(i, length, first, to) + self.chance.gauss(0.0, size),
        )

    def rows(self) -> list[tuple[int, dict[str, float]]]:
        """Return each step with what is logged at it."""
        found: list[tuple[int, dict[str, float]]] = []
        for i in range(self.steps):
            row = {key: column[i] for key, column in self.columns.items()}
            logged = {key: value for key, value in row.items() if value is not None}
            found.append((i + 1, logged))
        return found

    def shorten(self, steps: int) -> int:
        """Let the run end after so many steps; return them."""
        self.steps = steps
        self.columns = {key: values[:steps] for key, values in self.columns.items()}
        return steps

    def scale(self, what: str, onset: int, times: float, length: float = 1.0) -> None:
        """Let a metric become so many times as high within so many steps from one on."""
        self.change(what, onset, lambda i, known: known * ramp(i, length, 1.0, times))


def ramp(since: int, length: float, start: float, end: float) -> float:
    """Return a value that goes from one level to another within so many steps, and stays there."""
    return start + (end - start) * min(1.0, (since + 1) / length)


def settling(start: float, end: float, pace: float) -> Callable[[float], float]:
    """Return what goes from one level towards another over the run (0..1), the faster the higher
    its pace.
    """
    return lambda t: end + (start - end) * math.exp(-pace * t)


def verl(
    steps: int, chance: random.Random, *, top: float = 0.75, floor: float = 0.2
) -> World:
    """Return a healthy GRPO run with 0/1 rewards in verl's names."""
    world = World("verl", steps, chance)
    put = world.put
    put(
        "critic/score/mean",
        settling(floor, top, 3),
        0.025,
        low=0.0,
    )
    world.columns["critic/rewards/mean"] = list(world.columns["critic/score/mean"])
    put("critic/advantages/max", 2.0, 0.2)
    put("critic/advantages/min", -2.0, 0.2)
    put("actor/pg_loss", 0.0, 0.01)
    put("actor/ppo_kl", 0.0, 0.0003)
    put("actor/kl_loss", lambda t: 0.002 + 0.12 * t, 0.004, low=0.0)
    put("actor/entropy", settling(0.52, 0.22, 4), 0.01, low=0.01)
    put("actor/grad_norm", lambda t: 0.35 - 0.1 * t, 0.04, low=0.05)
    put("actor/pg_clipfrac", 0.004, 0.001, low=0.0)
    put("response_length/mean", lambda t: 320 + 120 * t, 12)
    put("response_length/max", 980, 20)
    put("response_length/clip_ratio", 0.01, 0.004, low=0.0)
    put("prompt_length/clip_ratio", 0.001, 0.0005, low=0.0)
    put("response/aborted_ratio", 0.0)
    put("training/rollout_probs_diff_mean", 0.003, 0.0005, low=0.0)
    put("rollout_corr/rollout_is_mean", 1.0, 0.03)
    put("rollout_corr/rollout_is_eff_sample_size", 0.92, 0.02)
    put("rollout_corr/rollout_is_std", 0.2, 0.03, low=0.0)
    put("rollout_corr/kl", 0.0004, 0.0003)
    put("rollout_corr/rollout_rs_masked_fraction", 0.03, 0.01, low=0.0)
    put("training/rollout_actor_probs_pearson_corr", 0.99, 0.003)
    put("rollout_corr/chi2_token", 0.03, 0.01, low=0.0)
    put("timing_s/gen", lambda t: 20 + 6 * t, 1.5, low=1.0)
    put("timing_s/update_actor", 15, 0.5)
    put("timing_s/ref", 4, 0.2)
    add_up(world)
    put("perf/total_num_tokens", lambda t: 1e6 * (1 + 0.3 * t), 2e4)
    world.columns["timing_s/step"][0] = 300.0
    validate(
        world,
        "val-core/openai/gsm8k/acc/mean@1",
        settling(floor, top - 0.05, 3),
    )
    return world


def add_up(world: World) -> None:
    """Let a step take as long as its parts, and three seconds more."""
    parts = [f"timing_s/{part}" for part in ("gen", "update_actor", "ref")]
    world.columns["timing_s/step"] = [
        sum(world.at(part, step) for part in parts) + 3
        for step in range(1, world.steps + 1)
    ]


def tutorial(steps: int, chance: random.Random) -> World:
    """Return a healthy PPO run in the tutorials' names."""
    world = World("tutorial", steps, chance)
    put = world.put
    put("rollout/reward_mean", settling(1.4, 2.9, 4), 0.08)
    put("rollout/reward_std", lambda t: 0.55 + 0.2 * t, 0.04)
    put("rollout/kl_div", lambda t: 0.022 + 0.008 * t, 0.004, low=0.008)
    put("kl/divergence", 0.05, 0.008, low=0.01)
    put("ppo/policy_loss", lambda t: -0.3 + 0.12 * t, 0.03)
    put("ppo/value_loss", lambda t: 0.5 - 0.2 * t, 0.03)
    put("ppo/entropy", settling(1.6, 1.1, 3), 0.04)
    put("ppo/clip_ratio", 0.12, 0.015, low=0.0)
    put("ppo/grad_norm", 0.7, 0.08, low=0.1)
    put("rollout/response_length_mean", 497, 4)
    put("system/gpu_util", 86, 4)
    put("system/memory_util", 74, 3)
    return world


def other(steps: int, chance: random.Random) -> World:
    """Return a healthy GRPO run in TRL's names."""
    world = World("other", steps, chance)
    put = world.put
    put("reward", settling(0.4, 1.3, 3), 0.05)
    put("reward_std", 0.5, 0.03)
    put("frac_reward_zero_std", lambda t: 0.12 + 0.2 * t, 0.04, low=0.0)
    put(
        "rewards/accuracy_reward/mean",
        settling(0.2, 0.8, 3),
        0.03,
        low=0.0,
    )
    put("rewards/format_reward/mean", settling(0.38, 0.98, 30), 0.02)
    put("loss", 0.0, 0.01)
    put("kl", lambda t: 0.01 + 0.25 * t, 0.01, low=0.0)
    put("ppo_kl", 0.0, 0.0003)
    put("gen_kl_error", 0.0005, 0.0001, low=0.0)
    put("token_mult_prob_error", 1.012, 0.002)
    put("entropy", settling(0.6, 0.3, 4), 0.015)
    put("grad_norm", 0.4, 0.05, low=0.05)
    put("clip_ratio/region_mean", 0.01, 0.002, low=0.0)
    put("completions/mean_length", lambda t: 300 + 100 * t, 12)
    put("completions/clipped_ratio", 0.02, 0.005, low=0.0)
    put("gpu_util", 85, 4)
    put("memory_util", 70, 3)
    put("step_time", 20, 0.8)
    put("learning_rate", 1e-6)
    validate(world, "eval_reward", settling(0.4, 1.2, 3))
    return world


DIALECTS: dict[str, Callable[[int, random.Random], World]] = {
    "tutorial": tutorial,
    "verl": verl,
    "other": other,
}


def validate(
    world: World,
    key: str,
    level: Callable[[float], float] | float,
    every: int = 10,
    size: float = 0.012,
) -> None:
    """Add a validation score every few steps."""
    world.put(key, level, size)
    world.columns[key] = [
        value if (i + 1) % every == 0 else None
        for i, value in enumerate(world.columns[key])
    ]


def dump(
    world: World,
    every: int,
    text: Callable[[int], str],
    score: Callable[[int, int], float],
    **extras: Any,
) -> None:
    """Add rollout dumps: four prompts with four responses each."""
    for step in range(every, world.steps + 1, every):
        world.dumps[step] = [
            {
                "input": f"question {group} of step {step}",
                "output": text(step),
                "gts": "6",
                "score": score(step, group),
                "step": step,
                **{name: value(step) for name, value in extras.items()},
            }
            for group in range(4)
            for _ in range(4)
        ]


def prose(chance: random.Random, *, chinese: bool = False) -> str:
    """Return a response that means nothing and repeats little."""
    if chinese:
        return "".join(chance.choices(HAN, k=chance.randint(60, 120)))
    return " ".join(chance.choices(WORDS, k=chance.randint(40, 80)))


def loop(chance: random.Random, *, chinese: bool = False) -> str:
    """Return a response that runs in circles."""
    if chinese:
        return "这个问题" * chance.randint(10, 40) + "这个这个问题"
    kind = chance.choice(
        ["the answer is the answer is ", "aaaaa bbbbb ccccc ", "so so so "]
    )
    return kind * chance.randint(10, 40)


# -- as files --------------------------------------------------------------------------------------


def write(world: World, directory: Path, form: str) -> Path:
    """Write a world as the files of one run; `form` is console, file or jsonl."""
    directory.mkdir(parents=True)
    name, written = _FORMS[form]
    lines = written(world)
    if world.again is not None:
        lines += lines[len(lines) * (world.again - 1) // world.steps :]
    text = "".join(f"{line}\n" for line in [*lines, *world.lines])
    (directory / name).write_text(text, encoding="utf-8")
    for step, records in world.dumps.items():
        write_jsonl(directory / "rollouts" / f"{step}.jsonl", records)
    if world.settings:
        settings = (f"{key}: {json.dumps(it)}\n" for key, it in world.settings.items())
        (directory / "config.yaml").write_text("".join(settings), encoding="utf-8")
    for path in directory.rglob("*"):
        os.utime(path, (NOW - world.age, NOW - world.age))
    return directory


def _console(world: World) -> list[str]:
    return [
        f"\x1b[36m(TaskRunner pid=4711)\x1b[0m step:{step} - "
        + " - ".join(f"{key}:{value!r}" for key, value in row.items())
        for step, row in world.rows()
    ]


def _file(world: World) -> list[str]:
    return [
        json.dumps({"step": step, "data": row}).replace("NaN", "null")
        for step, row in world.rows()
    ]


def _jsonl(world: World) -> list[str]:
    if world.dialect == "other":
        return [json.dumps({"step": step, **row}) for step, row in world.rows()]
    lines = []
    for step, row in world.rows():
        scopes: dict[str, dict[str, float]] = {}
        for key, value in row.items():
            scope, _, name = key.partition("/")
            scopes.setdefault(scope, {})[name] = value
        lines += [
            json.dumps({"scope": scope, "step": step, **values})
            for scope, values in scopes.items()
        ]
    return lines


_FORMS = {
    "console": ("train.log", _console),
    "file": ("experiment.jsonl", _file),
    "jsonl": ("verl_logs.jsonl", _jsonl),
}
"""A form -> the name of its file, and its lines."""
FORMS = {"verl": ("console", "file"), "tutorial": ("jsonl",), "other": ("jsonl",)}
"""How a dialect's logs are written."""

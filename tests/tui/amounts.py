"""Logs of every amount, as the app has read them: nothing yet, three steps, ten thousand, two
hundred odd runs.
"""

from __future__ import annotations

import json
from math import sin
from typing import TYPE_CHECKING

from watching import NOW

from verl_tui.config import Config
from verl_tui.monitor import load
from verl_tui.records import Gpu, GpuReading

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from verl_tui.monitor import Monitor

METRICS = (
    "critic/score/mean", "critic/score/max", "critic/score/min", "actor/ppo_kl", "actor/kl_loss", "actor/pg_loss",
    "actor/entropy", "actor/grad_norm", "actor/pg_clipfrac", "response_length/mean", "response_length/clip_ratio",
    "perf/throughput", "timing_s/gen", "timing_s/update_actor", "timing_s/step", "val-core/openai/gsm8k/acc/mean@1",
)  # fmt: skip
ODD = (
    "[red]not red[/red] [/INST] [@click=app.quit]quit[/] [/",
    "汉字の名前" * 12,
    "🎉👍🏽🇩🇪👨\u200d👩\u200d👧" * 6,
    "e\u0301\u0301 ไทย 한국어 " * 8,
    "x" * 240,
    "two words and then some more " * 8,
)
"""What names may be made of. Terminals disagree about the widths of some; the log's door takes
those apart.
"""
STRANGE = (1.0, float("nan"), float("inf"), -float("inf"), 1e300, 1e-300, -1e300, 0.0)
GIB = 2**30


def monitor(amount: str, folder: Path, *, whole: bool = False) -> Monitor:
    """Write the logs of an amount into an empty directory; return them read.

    Args:
        amount: One of `AMOUNTS`.
        folder: The directory, which is not there yet.
        whole: Whether to write as much as it is called by, which takes three times as long to read;
            else the last thousand of the steps, and as many runs as fill any screen.
    """
    folder.mkdir()
    _WRITERS[amount](folder, whole)
    read = load([str(folder)], Config(), NOW)
    if amount != "empty":
        name = ODD[1] if amount == "huge" else "NVIDIA H100 80GB HBM3"
        read.apply(
            GpuReading(
                NOW,
                tuple(_gpu(at, name) for at in range(64 if amount == "huge" else 8)),
            ),
            NOW,
        )
        read.judge(NOW)
    return read


def _gpu(at: int, name: str) -> Gpu:
    return Gpu(
        str(at),
        name,
        87.0 - at % 50,
        (60 + at % 20) * GIB,
        80 * GIB,
        60.0 + at % 20,
        512.0,
        700.0,
    )


def _write(path: Path, lines: Iterable[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


SELDOM = 20
"""Steps from one value to the next of metrics that are no part of every step."""


def _metrics(steps: int, keys: Iterable[str], first: int = 1) -> Iterable[str]:
    every, whole = tuple(keys)[: len(METRICS)], tuple(keys)
    for step in range(first, steps + 1):
        logged = every if step % SELDOM else whole
        data = {
            key: round(0.5 + 0.3 * sin(step / 50 + at), 4)
            for at, key in enumerate(logged)
        }
        yield json.dumps({"step": step, "data": data})


def _console(steps: int, total: int) -> Iterable[str]:
    yield "(TaskRunner pid=12) Started a local Ray instance"
    yield "(TaskRunner pid=12) {'trainer': {'project_name': 'math', 'total_epochs': 3}, 'actor': {'lr': 1e-06}}"
    for step in range(1, steps + 1):
        yield f"(TaskRunner pid=12) step:{step} - critic/score/mean:0.5 - actor/ppo_kl:0.02 - timing_s/step:9.0"
        yield f"(WorkerDict pid={step}) loading shard {step} of the weights into the memory of the inference engine"
        yield f"Training Progress:  {step}%|# | {step}/{total} [00:01<00:09, 1.0s/it]"
    yield "[2025-01-01 10:00:00,000][root][WARNING] - Token mismatch between the tokenizer and the model"
    yield "ValueError: the value of the last step is wrong"


def _samples(step: int, texts: Iterable[str]) -> Iterable[str]:
    for at, text in enumerate(texts):
        more = {
            "score": at % 2,
            "step": step,
            "gts": "42",
            "acc": at / 10,
            "uid": f"{step}-{at // 3}",
        }
        yield json.dumps(
            {"input": f"system words\n\nquestion {at // 3}", "output": text, **more}
        )


def _training(
    folder: Path,
    steps: int,
    keys: Iterable[str],
    texts: Iterable[str],
    settings: object,
    first: int = 1,
) -> None:
    texts = tuple(texts)
    _write(folder / "verl.jsonl", _metrics(steps, keys, first))
    _write(folder / "train.log", _console(min(steps, 200), max(steps, 30)))
    _write(folder / "config.yaml", [json.dumps(settings)])  # which is YAML, too
    for step in range(max(1, steps - 2), steps + 1):
        _write(folder / "rollouts" / f"{step}.jsonl", _samples(step, texts))


def _write_empty(folder: Path, _whole: bool) -> None:
    _write(
        folder / "waiting" / "train.log",
        ["Started a local Ray instance", "loading the model"],
    )


def _write_short(folder: Path, _whole: bool) -> None:
    for name, rate in (("grpo", 1e-6), ("ppo", 2e-6)):
        settings = {
            "trainer": {"total_training_steps": 30},
            "actor_rollout_ref": {"actor": {"optim": {"lr": rate}}},
        }
        _training(
            folder / name,
            3,
            METRICS,
            ("an answer", "another one", "a third one"),
            settings,
        )


def _write_long(folder: Path, whole: bool) -> None:
    keys = (
        *METRICS,
        *(f"group_{at % 6}/metric_{at}" for at in range(60 - len(METRICS))),
    )
    answers = tuple(
        f"so many words as an answer takes, and the result is {at}. " * 20
        for at in range(40)
    )
    for at, steps in enumerate((10_000, 600, 600, 300, 300, 300)):
        settings = {
            "actor_rollout_ref": {f"setting_{n}": n * (at + 1) for n in range(80)},
            "seed": at,
        }
        first = 1 if whole else max(1, steps - 1000)
        _training(
            folder / f"qwen2.5-7b-grpo-gsm8k-{at}",
            steps,
            keys,
            answers,
            settings,
            first,
        )


def _write_huge(folder: Path, whole: bool) -> None:
    keys = (*METRICS[:6], *(f"{odd[:20]}/{odd}" + "long" * 20 for odd in ODD))
    for at in range(200 if whole else 64):
        name = (
            f"{at} {ODD[at % len(ODD)]}".replace("/", "∕")
            .encode()[:240]
            .decode("utf-8", "ignore")
        )
        if at > len(ODD):
            _write(folder / name / "verl.jsonl", _metrics(12, METRICS[:6]))
            continue
        settings = {odd: (odd * 40)[:5000] for odd in ODD}
        _training(
            folder / name,
            12,
            keys,
            [odd * 20 for odd in ODD],
            {"deep": {"deeper": settings}, **settings},
        )
        strange = (
            {"step": 13 + n, "data": dict.fromkeys(keys, value)}
            for n, value in enumerate(STRANGE)
        )
        with (folder / name / "verl.jsonl").open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(record) + "\n" for record in strange)
            file.write("no JSON: " + ODD[2] + "\n")


_WRITERS: dict[str, Callable[[Path, bool], None]] = {
    "empty": _write_empty,
    "short": _write_short,
    "long": _write_long,
    "huge": _write_huge,
}
AMOUNTS = tuple(_WRITERS)

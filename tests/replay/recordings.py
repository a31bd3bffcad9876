"""What the tests of replays share: logs of all kinds of knowledge about time, and the recordings made of
them.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jsonl import write_jsonl

from verl_tui.replay import Recording

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

BEGAN = 1_700_000_000.0
GAP = 100.0
"""Seconds a step, where the log tells."""


def tutorial(
    directory: Path, steps: Sequence[int], *, began: float = BEGAN, kl: float = 0.02
) -> Path:
    """Write a log that states times: a step every so many seconds, a sample with each third
    step.
    """
    lines = []
    for place, step in enumerate(steps):
        stamp = {"step": step, "timestamp": began + GAP * place}
        rollout = {"reward_mean": 2.5 + 0.01 * (step % 3), "kl_div": kl}
        lines.append({"scope": "rollout", **stamp, **rollout})
        lines.append({"scope": "ppo", **stamp, "policy_loss": -0.01 * (step % 7)})
        if step % 3 == 0:
            sample = {"prompt": "p", "response": f"r{step}", "reward": 1.0}
            lines.append({"scope": "sample", "step": step, **sample})
    return write_jsonl(directory / "verl_logs.jsonl", lines)


def file_logger(
    directory: Path, steps: int, *, seconds: float | None = None, written: float = BEGAN
) -> Path:
    """Write a log of verl's file logger, which states no times; with the step's own timer where
    that is given.
    """
    timer = {} if seconds is None else {"timing_s/step": seconds}
    lines = [
        {"step": step, "data": {"critic/score/mean": 0.01 * step, **timer}}
        for step in range(1, steps + 1)
    ]
    path = write_jsonl(directory / "p" / "run.jsonl", lines)
    os.utime(path, (written, written))
    return path


def console(
    directory: Path, steps: int, ending: str = "", *, written: float = BEGAN
) -> Path:
    """Write a console log with a progress bar that takes ten seconds a step."""
    lines = [
        f"Training Progress: {step:3d}%|##   | {step}/{steps} [{step // 6:02d}:{step % 6 * 10:02d}<10:00, 10.00s/it]\n"
        f"step:{step} - critic/score/mean:{0.01 * step} - actor/entropy:0.5\n"
        for step in range(1, steps + 1)
    ]
    path = directory / "train.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(lines) + ending, encoding="utf-8")
    os.utime(path, (written, written))
    return path


def recording(*paths: Path) -> Recording:
    """Return the recording of some logs."""
    return Recording.read([str(path) for path in paths])

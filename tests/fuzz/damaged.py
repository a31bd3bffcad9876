"""Logs of every format that grows, damaged as a seed says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from log_writing import (
    console_log,
    csv_log,
    event_log,
    file_log,
    llama_factory_log,
    swift_log,
    tutorial_log,
    wandb_log,
)

if TYPE_CHECKING:
    from random import Random

DATA = Path(__file__).parents[1] / "data"
STEPS = [*range(1, 9), 6, 7, 8, 9]


def _lines(*records: object) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def _sample(number: int) -> dict[str, object]:
    return {
        "input": f"q{number}",
        "output": f"a {number}",
        "score": number % 2,
        "step": number,
    }


_STATE = {
    "best_model_checkpoint": "checkpoint-1",
    "global_step": 3,
    "max_steps": 9,
    "log_history": [
        {"step": step, "loss": 1 / step, "epoch": step / 9} for step in range(1, 4)
    ],
}
_COMPLETIONS = [
    {"step": [str(step)] * 2, "prompt": ["1 + 1?"] * 2, "completion": ["two", f"{step}"], "R": [1.0, 0.0]}
    for step in range(1, 5)
]  # fmt: skip
_PAGE = (
    "# HELP steps of training\n# TYPE verl_training_steps_total counter\n"
    "verl_training_steps_total 7\n# TYPE verl_average_reward gauge\nverl_average_reward 0.5\n"
)
_BARS = "".join(
    f"Training Progress: {n * 11:3}%|#  | {n}/9 [0{n}:00<09:00, 60.0s/it]\r"
    for n in range(1, 9)
)
EXAMPLES: dict[str, bytes] = {
    "train.log": console_log(STEPS),
    "verl.log": (DATA / "console_v09.log").read_bytes(),
    "old.out": (DATA / "console_v04.log").read_bytes(),
    "bars.log": _BARS.encode()
    + b"\nstep:9 - actor/pg_loss:0.5 - a/b:1 - perf/time:3\n",
    "dicts.log": b"{'loss': 0.5, 'grad_norm': 1.0, 'epoch': 0.1}\n{'loss': 0.4, 'epoch': 0.2}\n",
    "progress.csv": csv_log(STEPS),
    "metrics.jsonl": file_log(STEPS),
    "scoped.jsonl": tutorial_log(STEPS),
    "logging.jsonl": swift_log(STEPS),
    "trainer_log.jsonl": llama_factory_log(STEPS),
    "completions.jsonl": _lines(*_COMPLETIONS),
    "7.jsonl": (DATA / "rollout_v1.jsonl").read_bytes(),
    "samples.jsonl": _lines(*map(_sample, range(1, 6))),
    "samples.json": json.dumps(list(map(_sample, range(1, 6))), indent=1).encode(),
    "trainer_state.json": json.dumps(_STATE, indent=2).encode(),
    "gen_3_abc.table.json": json.dumps(
        {
            "columns": ["step", "input", "output", "score"],
            "data": [[1, "q", "a", 0.5]] * 3,
        }
    ).encode(),
    "page.prom": _PAGE.encode(),
    "events.out.tfevents.1700000000.host.1.0": event_log(STEPS),
    "run-abc.wandb": wandb_log(STEPS),
}
"""By the name of a file: what a program writes into it."""

_ODD_LINES = (
    b"\n", b"\r\n", b"\0" * 9, b"\xef\xbb\xbf", b"{", b"[[[", b'"', b"}\n", b"\x1b[2J", b"\xff\xfe",
    b"INFO hello world\n", b'{"step":1,"loss":2}\n', b'{"step":3,"data":{"a/b":1}}\n',
    b"step:3 - actor/pg_loss:0.1 - a/b:1 - perf/time:2\n", b"step,loss\n1,2\n",
    b'{"prompt":"a","response":"b","step":3,"score":1}\n', b'{"a":1,"a":2,"step":4,"step":5}\n',
    b'{"step":1e400,"loss":NaN}\n', b'{"step":' + b"[" * 999, b"Traceback (most recent call last):\n",
    b"# TYPE a gauge\na 1\n", b"%|   | 1/9 [00:01<00:02]\r", b"ValueError: verl: no\n",
)  # fmt: skip
_PLACES = (20, 200, 2000, 10**6)
"""Where damage is done: the beginnings of files tell what they are."""


class Case(NamedTuple):
    """A file as it is in the end, and how much of it is there at each look."""

    name: str
    data: bytes
    looks: tuple[int, ...]
    """Bytes that are there at each look, the last of them all."""


def case(random: Random) -> Case:
    """Return a case of a seed."""
    name = random.choice(sorted(EXAMPLES))
    data = damaged(EXAMPLES[name], random)
    ends = [random.randint(0, len(data)), random.randint(0, min(len(data), 400))]
    cuts = sorted(random.choice(ends) for _ in range(random.randint(1, 2)))
    return Case(name, data, (*cuts, len(data)))


def damaged(data: bytes, random: Random) -> bytes:
    """Return bytes with some damage."""
    out = bytearray(data)
    for _ in range(random.randint(0, 5)):
        at = random.randint(0, min(random.choice(_PLACES), len(out)))
        _damage(out, at, random)
    return bytes(out)


def _damage(out: bytearray, at: int, random: Random) -> None:
    kind = random.randrange(7)
    if kind == 0 and at < len(out):
        out[at] ^= 1 << random.randrange(8)
    elif kind == 1:
        out[at:at] = random.choice(_ODD_LINES)
    elif kind == 2:
        del out[at : at + random.randint(1, 60)]
    elif kind == 3:  # two writers in one file
        out[at:at] = EXAMPLES[random.choice(sorted(EXAMPLES))][: random.randint(1, 600)]
    elif kind == 4:
        out[:] = out.replace(b"\n", random.choice((b"\r\n", b"", b"\n\n", b" ")))
    elif kind == 5:
        out[at:at] = out[: random.randint(1, 500)]
    else:
        out[at : at + 16] = random.randbytes(16)

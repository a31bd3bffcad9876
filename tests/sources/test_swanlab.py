"""SwanLab's logs, written as swanlab 0.10 writes them."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from log_reading import read_run, values
from wandb_writing import field, logged, varint

from verl_tui.runs.views.state import State, state
from verl_tui.sources.formats import swanlab

if TYPE_CHECKING:
    from pathlib import Path

    from verl_tui.runs.run import Run

TIME = field(1, 1_700_000_000)


def double(number: int, value: float) -> bytes:
    return varint(number << 3 | 1) + struct.pack("<d", value)


def scalar(key: str, step: int, value: float) -> bytes:
    said = field(1, key) + (field(2, step) if step else b"") + field(4, TIME)
    return field(1, 1) + field(13, said + field(5, double(1, value)))


START = field(10, field(1, "p") + field(4, "e1") + field(10, "abc"))


def read(tmp_path: Path, records: list[bytes], damage: int | None = None) -> Run:
    log = tmp_path / "swanlog/run-20261128_214005-abc/run-abc.swanlab"
    log.parent.mkdir(parents=True)
    data = bytearray(logged(swanlab.HEADER, records))
    if damage is not None:
        data[damage] ^= 1
    log.write_bytes(data)
    return read_run(tmp_path)


def test_a_run_is_read(tmp_path):
    metrics = {"critic/score/mean": 0.5, "actor/entropy": float("nan")}
    rows = [
        scalar(key, at, value) for at in range(1, 9) for key, value in metrics.items()
    ]
    rows += [
        scalar("__swanlab__.gpu.0.mem", 9, 50.0),
        field(11, field(1, 2) + field(2, "no memory")),
    ]
    run = read(tmp_path, [START, *rows])
    assert (run.name, run.step, state(run, run.last_record or 0.0)) == (
        "e1",
        8,
        State.CRASHED,
    )
    assert values(run, "critic/score/mean") == dict.fromkeys(range(1, 9), 0.5)
    assert values(run, "system/gpu.0.mem") == {9: 50.0}
    assert [one.text for one in run.events] == [
        "SwanLab: the run has crashed: no memory"
    ]


def test_damage_costs_the_rest_of_its_block(tmp_path):
    rows = [scalar("reward", at, 0.5) for at in range(1, 2000)]
    run = read(tmp_path, [START, *rows], damage=40_000)
    assert (run.step, run.unreadable) == (1999, 1)

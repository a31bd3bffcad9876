"""SwanLab's logs, written as swanlab 0.10 writes them."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING

from command_line import run as run_command
from wandb_writing import field, logged, varint

from verl_tui.sources.formats import swanlab

if TYPE_CHECKING:
    from pathlib import Path

TIME = field(1, 1_700_000_000)


def double(number: int, value: float) -> bytes:
    return varint(number << 3 | 1) + struct.pack("<d", value)


def scalar(key: str, step: int, value: float) -> bytes:
    said = field(1, key) + (field(2, step) if step else b"") + field(4, TIME)
    return field(1, 1) + field(13, said + field(5, double(1, value)))


START = field(10, field(1, "p") + field(4, "e1") + field(10, "abc"))


def check(tmp_path: Path, records: list[bytes], damage: int | None = None) -> dict:
    log = tmp_path / "swanlog/run-20261128_214005-abc/run-abc.swanlab"
    log.parent.mkdir(parents=True)
    data = bytearray(logged(swanlab.HEADER, records))
    if damage is not None:
        data[damage] ^= 1
    log.write_bytes(data)
    (run,) = json.loads(run_command("check", str(tmp_path), "--json").stdout)["runs"]
    return run


def test_a_run_is_read(tmp_path: Path) -> None:
    metrics = {"critic/score/mean": 0.5, "actor/entropy": float("nan")}
    rows = [
        scalar(key, at, value) for at in range(1, 9) for key, value in metrics.items()
    ]
    rows += [
        scalar("__swanlab__.gpu.0.mem", 9, 50.0),
        field(11, field(1, 2) + field(2, "no memory")),
    ]
    run = check(tmp_path, [START, *rows])
    assert (run["name"], run["step"], run["state"]) == ("e1", 8, "crashed")
    assert run["indicators"]["reward"]["value"] == 0.5
    assert run["sources"][0]["format"] == "SwanLab run"
    assert "no memory" in json.dumps(run)


def test_damage_costs_the_rest_of_its_block(tmp_path: Path) -> None:
    rows = [scalar("reward", at, 0.5) for at in range(1, 2000)]
    run = check(tmp_path, [START, *rows], damage=40_000)
    assert run["step"] == 1999
    assert run["sources"][0]["unreadable"] == 1

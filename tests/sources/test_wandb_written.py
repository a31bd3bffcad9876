"""Runs that W&B itself wrote, here and elsewhere, read value for value."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import zlib
from collections import defaultdict
from math import nan
from typing import TYPE_CHECKING

import pytest
from log_reading import drain, read_run
from wandb_reading import said

from verl_tui.runs.samples import Place
from verl_tui.runs.views.state import State, state
from verl_tui.sources.formats import wandb
from verl_tui.sources.source import FileSource

if TYPE_CHECKING:
    from pathlib import Path

# -- what others wrote -----------------------------------------------------------------------------

pytestmark = pytest.mark.long
SCRIPT = """
import math, sys
import numpy as np
import wandb
config = {"actor": {"lr": 1e-6, "x": [1, 2]}, "n": 5, "nan": math.nan, "s": "h\u00e9"}
run = wandb.init(project="p", name="n", group="g", job_type="j", tags=["a", "b"], dir=sys.argv[1], mode="offline",
                 config=config, settings=wandb.Settings(x_stats_sampling_interval=0.1, silent=True))
random = np.random.default_rng(0)
for i in range(30):
    data = {"loss": 0.5 / (i + 1), "nan": math.nan, "inf": math.inf, "low": -math.inf, "nested": {"a": {"b": i}},
            "flag": bool(i % 2), "none": None, "txt": "abc", "np": np.float32(0.1), "big": 10**20, "list": [1, 2],
            "tiny": 5e-324, "zero": -0.0, "third": 1 / 3, "train/x.y": 3, "val-core/a b/acc/mean@1": 1e-7,
            "h": wandb.Histogram(random.standard_normal(1000)),
            "h2": wandb.Histogram(np_histogram=([1, 2, 3], [0, 0.5, 1, 4]))}
    if i % 10 == 0:
        rows = [[j, f"in {j}", f"out {j}", 0.5, f"in2 {j}", f"out2 {j}", -1.0] for j in range(0, i + 1, 10)]
        columns = ["step", "input_1", "output_1", "score_1", "input_2", "output_2", "score_2"]
        data["val/generations"] = wandb.Table(columns=columns, data=rows)
        columns = ["step", "prompt", "completion", "accuracy_reward", "advantage"]
        rows = [[str(2 * i), f"p {j}", f"c {i} {j}", 1.0, math.nan] for j in range(3)]
        data["completions"] = wandb.Table(columns=columns, data=rows)
    wandb.log(data, step=i * 2)
run.config.update({"late": {"z": 1}})
wandb.finish(exit_code=3)
"""


def reference(path: Path) -> list[object]:
    """Return the records of a log as the classes that wandb ships read them."""
    proto = pytest.importorskip("wandb.proto.wandb_internal_pb2")
    data, at, part, found = path.read_bytes(), 7, b"", []
    while at + 7 <= len(data):
        left = 32768 - at % 32768
        if left < 7:
            at += left
            continue
        checksum, length, kind = struct.unpack_from("<IHB", data, at)
        if at + 7 + length > len(data):
            break
        assert zlib.crc32(data[at + 6 : at + 7 + length]) == checksum
        part = (b"" if kind in (1, 2) else part) + data[at + 7 : at + 7 + length]
        if kind in (1, 4):
            found.append(proto.Record.FromString(part))
        at += 7 + length
    return found


def truth(path: Path) -> tuple[dict[str, dict[int, list[str]]], int]:
    """Return all values of the history and the system figures by key and step, and the exit
    code.
    """
    numbers: dict[str, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    step, code = 0, -1
    for record in reference(path):
        kind = record.WhichOneof("record_type")
        if kind == "exit":
            code = record.exit.exit_code
        elif kind == "history":
            items = {
                tuple(i.nested_key) or (i.key,): i.value_json
                for i in record.history.item
            }
            step = int(items.get(("train/global_step",), items[("_step",)]))
            typed = {path[:-1] for path in items if path[-1] == "_type"}
            for name, text in items.items():
                value = plain(text)
                if (
                    value is not None
                    and not name[0].startswith("_")
                    and name[:1] not in typed
                ):
                    numbers[".".join(name)][step].append(repr(value))
        elif kind == "stats":
            for i in record.stats.item:
                numbers[f"system/{i.key}"][step].append(repr(float(i.value_json)))
    return {key: dict(steps) for key, steps in numbers.items()}, code


def plain(text: str) -> float | None:
    value = json.loads(text, parse_int=float)
    if value is None:
        return nan
    return float(value) if isinstance(value, (float, bool)) else None


@pytest.fixture(scope="module")
def offline(tmp_path_factory):
    """A directory in which wandb has written a run."""
    pytest.importorskip("wandb")
    folder = tmp_path_factory.mktemp("offline")
    homes = ("HOME", "WANDB_CACHE_DIR", "WANDB_CONFIG_DIR", "WANDB_DATA_DIR")
    environment = os.environ | dict.fromkeys(homes, str(folder / "home"))
    environment |= {"WANDB_SILENT": "true", "WANDB_ERROR_REPORTING": "false"}
    command = [sys.executable, "-c", SCRIPT, str(folder)]
    subprocess.run(command, check=True, env=environment, timeout=120)
    return folder / "wandb"


def test_what_wandb_itself_writes_is_read_value_for_value(offline):
    (path,) = offline.glob("offline-run-*/*.wandb")
    expected, code = truth(path)
    found = said(drain(FileSource(path, wandb)))
    quantile = {key for key in found if key.startswith(("h/", "h2/"))}
    numbers = {key: found[key] for key in found.keys() - quantile}
    assert numbers == expected
    assert len(expected["loss"]) == 30
    assert any(key.startswith("system/") for key in expected)
    shares = {key.rpartition("/")[2] for key in quantile}
    assert shares == {"p05", "p25", "p50", "p75", "p95"}
    assert found["h2/p50"] == {2 * i: ["1.0"] for i in range(30)}
    middle = [float(value) for (value,) in found["h/p50"].values()]
    assert max(map(abs, middle)) < 0.2
    assert code == 3


def test_a_run_of_wandb_is_found_with_all_it_left(offline):
    run = read_run(offline)
    assert (run.step, state(run, run.last_record or 0.0)) == (58, State.CRASHED)
    assert {key: run.settings[f"wandb.{key}"] for key in ("project", "name", "group", "job_type")} == {
        "project": "p", "name": "n", "group": "g", "job_type": "j",
    }  # fmt: skip
    assert (run.settings["actor.lr"], run.settings["late.z"], run.settings["s"]) == (
        1e-6,
        1,
        "hé",
    )
    assert run.unreadable == 0
    validation = {
        place.step: [s.response for s in run.samples.kept(place)]
        for place in run.samples.places
        if place.validation
    }
    assert validation == {step: [f"out {step}", f"out2 {step}"] for step in (0, 10, 20)}
    completions = run.samples.kept(Place(40, validation=False))
    assert [
        (s.prompt, s.response, s.extras["accuracy_reward"]) for s in completions
    ] == [(f"p {j}", f"c 20 {j}", 1.0) for j in range(3)]

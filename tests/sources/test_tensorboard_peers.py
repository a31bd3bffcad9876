"""Event files of the writers in use, held against what TensorBoard reads in them."""

from __future__ import annotations

import os
import random
import warnings
from math import nan
from pathlib import Path
from typing import Any

import pytest
from plain_events import TAGS, VERSION, event, field, read

from verl_tui.records import Unreadable

LOGS = Path(
    os.environ.get("VERL_TUI_LOGS", Path(__file__).parents[3] / "shared" / "logs")
)


# -- against TensorBoard ---------------------------------------------------------------------------


def imported(name: str) -> Any:
    """Return a module that may be missing, whatever it warns of while it is loaded."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(name)


def tensorboards_own(path: Path) -> dict[str, dict[int, float]]:
    """Return the scalars that TensorBoard's own reader finds; of a step the last."""
    module = imported("tensorboard.backend.event_processing.event_accumulator")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = module.EventAccumulator(
            str(path), size_guidance={"scalars": 0}, purge_orphaned_data=False
        )
        found.Reload()
    return {
        tag: {e.step: e.value for e in found.Scalars(tag)}
        for tag in found.Tags()["scalars"]
    }


def assert_same_as_tensorboard(path: Path) -> None:
    numbers, others = read(path.read_bytes())
    ours = {key: {row[0]: row[3] for row in rows} for key, rows in numbers.items()}
    theirs = tensorboards_own(path)
    assert theirs
    assert {key: ours[key] for key in theirs} == {
        key: {repr(step): repr(value) for step, value in rows.items()}
        for key, rows in theirs.items()
    }
    assert not [record for record in others if isinstance(record, Unreadable)]


@pytest.mark.parametrize(
    "folder",
    [
        "made-with-verl-0.9.1/run_7/tensorboard_log/proj/exp",
        "Lizhi-sjtu__DRL-code-pytorch/5.PPO-continuous/runs",
    ],
)
def test_real_files_say_the_same_to_tensorboard(folder):
    files = sorted((LOGS / folder).rglob("events.out.tfevents.*"))
    if not files:
        pytest.skip(f"no real logs in {LOGS}: set VERL_TUI_LOGS")
    for file in files:
        assert_same_as_tensorboard(file)


@pytest.mark.parametrize("module", ["tensorboardX", "torch.utils.tensorboard"])
def test_files_of_the_writers_in_use(module, tmp_path):
    numpy = imported("numpy")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        writer = imported(module).SummaryWriter(str(tmp_path))
        rng = random.Random(1)
        for step in range(300):
            for tag in TAGS:
                writer.add_scalar(tag, nan if step == 33 else rng.gauss(0, 10), step)
            writer.add_scalars("several", {"one": 1.0, "two": 2.0}, step)
        writer.add_histogram("h", numpy.arange(100.0), 7)
        writer.add_text("rollout/sample_0", "some text", 7)
        writer.add_image("picture", numpy.zeros((3, 4, 4), dtype="uint8"), 7)
        writer.close()
    for file in tmp_path.rglob("events.out.tfevents.*"):
        assert_same_as_tensorboard(file)
    (file,) = tmp_path.glob("events.out.tfevents.*")
    numbers, others = read(file.read_bytes())
    assert [(s.step, s.response, dict(s.extras)) for s in others] == [
        (7, "some text", {})
    ]
    median = [float(row[3]) for row in numbers["h/p50"]]
    assert median == pytest.approx([49.5], abs=5)  # bins grow by a tenth


def test_histograms_are_those_of_tensorboard():
    compressor = imported("tensorboard.plugins.distribution.compressor")
    histogram_pb2 = imported("tensorboard.compat.proto.histogram_pb2")
    rng = random.Random(1)
    for _ in range(50):
        limits = sorted(rng.uniform(-10, 10) for _ in range(12))
        counts = [rng.choice((0.0, rng.random(), rng.random())) for _ in limits[1:]] + [
            1.0
        ]
        proto = histogram_pb2.HistogramProto(
            num=sum(counts), bucket_limit=limits, bucket=counts
        )
        first = next(n for n, count in enumerate(counts) if count)
        proto.min = (limits[first - 1] if first else limits[0] - 0.2) + 1e-3
        proto.max = limits[-1] - 1e-6
        expected = compressor.compress_histogram_proto(
            proto, bps=(500, 2500, 5000, 7500, 9500, 10000)
        )
        numbers, _ = read(
            VERSION
            + event(1, 1.7e9, field(1, b"h") + field(5, proto.SerializeToString()))
        )
        found = [
            float(numbers[f"h/p{share}"][0][3])
            for share in ("05", "25", "50", "75", "95")
        ]
        assert found == pytest.approx([value for _, value in expected[:5]])
        assert float(numbers["h/min"][0][3]) == proto.min
        assert float(numbers["h/max"][0][3]) == proto.max


def test_histograms_of_tensorflow_2():
    summary = imported("tensorboard.plugins.histogram.summary_v2")
    numpy = imported("numpy")
    proto = summary.histogram_pb("h", numpy.arange(1001.0), buckets=100)
    numbers, others = read(
        VERSION + event(4, 1.7e9, *(value.SerializeToString() for value in proto.value))
    )
    found = {key: float(rows[0][3]) for key, rows in numbers.items()}
    assert found == pytest.approx(
        {"h/p05": 50, "h/p25": 250, "h/p50": 500, "h/p75": 750, "h/p95": 950}, abs=10
    )
    assert others == []

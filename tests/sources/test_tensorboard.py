"""TensorBoard's event files: what each kind of event says."""

from __future__ import annotations

import itertools
import struct
from pathlib import Path

import pytest
from log_reading import read_run, values
from plain_events import (
    NAME,
    TAGS,
    VERSION,
    event,
    field,
    histogram,
    mixed,
    read,
    scalar,
    scalars,
    tensor,
    varint,
)

from verl_tui.records import Histogram, Sample
from verl_tui.sources.formats import tensorboard
from verl_tui.sources.formats.catalog import FORMATS


def write(path: Path, *records: bytes) -> Path:
    file = path / NAME
    file.write_bytes(b"".join((VERSION, *records)))
    return file


def test_a_file_is_recognised_by_its_name_and_its_first_record(tmp_path):
    path = tmp_path / NAME
    assert next(f for f in FORMATS if f.matches(path, VERSION)) is tensorboard
    assert tensorboard.matches(path, b"")
    assert not tensorboard.matches(path, b"garbage of some length")
    assert not tensorboard.matches(tmp_path / "train.log", VERSION)


@pytest.mark.parametrize(
    "steps", [range(3), range(120, 140), range(16380, 16390), range(300)]
)
def test_scalars_are_what_was_written(tmp_path, steps):
    run = read_run(write(tmp_path, *scalars(steps)))
    for n, tag in enumerate(TAGS):
        assert values(run, tag) == {step: step + n / 8 for step in steps}
        assert run.series(tag).times[0] == 1.7e9 + steps[0] + n / 100
    assert run.unreadable == 0


@pytest.mark.parametrize("cuts", [(), (180,), (200, 300, 400)])
def test_values_that_others_of_the_same_step_replace_are_counted(cuts):
    """A logger that is given no step writes all its values at step 0: only the last of them can be
    shown.
    """
    pairs = [(0, 1.0), (0, 2.0), (0, 2.0), (1, 2.0), (1, 3.0), (2, 3.0)]
    data = VERSION + b"".join(
        event(step, 1.7e9 + n, scalar("a", value))
        for n, (step, value) in enumerate(pairs)
    )
    reader = tensorboard.reader(Path(NAME))
    edges = sorted({0, len(data), *(cut % len(data) for cut in cuts)})
    for start, stop in itertools.pairwise(edges):
        reader.feed(data[start:stop])
    assert (reader.note or "").startswith("2 records were replaced")


def test_every_kind_of_event():
    numbers, others = read(VERSION + b"".join(mixed()))
    assert {key: [row[3] for row in rows] for key, rows in numbers.items()} == {
        "a": ["1.0"], "b": ["nan"], "t": ["0.25"], "h/min": ["0.5"], "h/p05": ["0.6"], "h/p25": ["1.0"],
        "h/p50": ["2.0"], "h/p75": ["2.25"], "h/p95": ["2.45"], "h/max": ["2.5"],
    }  # fmt: skip
    assert others == [Sample(3, "", "hello")]


def test_histograms_are_kept_in_bins_beside_their_quantiles():
    rows = struct.pack("<9d", 0.0, 1.0, 2.0, 1.0, 2.0, 0.0, 2.0, 3.0, 4.0)
    shape = b"".join(field(2, b"\x08" + varint(size)) for size in (3, 3))
    new = tensor("t", b"\x08\x02" + field(2, shape) + field(4, rows), "histograms")
    old = histogram("h", 0.5, 2.5, [1.0, 2.0, 3.0], [2.0, 2.0, 4.0])
    found = tensorboard.reader(Path(NAME)).feed(
        VERSION + event(3, 1.7e9, old, new) + event(4, 1.7e9 + 1, old)
    )
    kept = [one for one in found if isinstance(one, Histogram)]
    assert [
        (one.key, one.step, one.low, one.high, round(sum(one.counts), 6), one.order)
        for one in kept
    ] == [
        ("h", 3, 0.5, 2.5, 8.0, 170000000000),
        ("t", 3, 0.0, 3.0, 6.0, 170000000000),
        ("h", 4, 0.5, 2.5, 8.0, 170000000100),
    ]


def test_a_bad_histogram_costs_neither_its_neighbours_nor_its_event():
    odd = histogram("h", 0.0, 1.0, [9.0, 10.0], [1.0, 1.0])
    records = [
        event(step, 1.7e9, scalar("a", 1.0), one, scalar("b", 2.0))
        for step, one in enumerate(
            (
                odd,
                histogram("h", 0.0, 1.0, [1.0], [0.0]),
                histogram("h", 0.0, 1.0, [], [1.0]),
            )
        )
    ]
    numbers, others = read(VERSION + b"".join(records))
    assert {key: len(rows) for key, rows in numbers.items()} == {"a": 3, "b": 3}
    assert sorted(one.reason for one in others) == [
        "a histogram of 0 limits and 1 counts", "a histogram whose bounds do not ascend", "an empty histogram",
    ]  # fmt: skip
    assert {one.excerpt for one in others} == {"h"}


def test_of_two_files_of_a_run_that_written_later_holds(tmp_path):
    for name, time, value in (("b.1", 1.7e9, 1.0), ("a.2", 1.8e9, 2.0)):
        records = [
            event(step, time + step, scalar("a", value))
            for step in range(5 * int(value), 15)
        ]
        (tmp_path / f"events.out.tfevents.{name}").write_bytes(
            VERSION + b"".join(records)
        )
    assert values(read_run(tmp_path), "a") == {
        **dict.fromkeys(range(5, 10), 1.0),
        **dict.fromkeys(range(10, 15), 2.0),
    }

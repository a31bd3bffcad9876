"""TensorBoard's event files: against a plain writer of our own, the writers in use and
TensorBoard's own reader.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import pickle
import random
import struct
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_reading import read_run, values

from verl_tui.records import Histogram, MetricRows, Restart, Sample, Unreadable
from verl_tui.sources.fields import protobuf
from verl_tui.sources.fields.protobuf import fields
from verl_tui.sources.formats.catalog import FORMATS
from verl_tui.sources.formats.tensorboard import frames as tensorboard_frames
from verl_tui.sources.formats.tensorboard import reader as tensorboard
from verl_tui.sources.formats.tensorboard.frames import crc32c

LOGS = Path(os.environ.get("VERL_TUI_LOGS", Path(__file__).parents[3] / "shared" / "logs"))
NAME = "events.out.tfevents.1700000000.host.1.0"
nan, inf = math.nan, math.inf


# -- a writer as plain as can be -------------------------------------------------------------------


def slow_crc(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data: bytes) -> bytes:
    crc = slow_crc(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def framed(data: bytes) -> bytes:
    header = struct.pack("<Q", len(data))
    return header + masked(header) + data + masked(data)


def varint(value: int) -> bytes:
    value &= 2**64 - 1
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


def event(step: int, time: float, *values: bytes) -> bytes:
    stated = b"\x10" + varint(step) if step else b""
    summary = b"".join(field(1, value) for value in values)
    return framed(b"\x09" + struct.pack("<d", time) + stated + field(5, summary))


def scalar(tag: str, value: float) -> bytes:
    return field(1, tag.encode()) + b"\x15" + struct.pack("<f", value)


def plugin(name: str) -> bytes:
    return field(9, field(1, field(1, name.encode())))


def histogram(tag: str, low: float, high: float, limits: list[float], counts: list[float]) -> bytes:
    ends = b"\x09" + struct.pack("<d", low) + b"\x11" + struct.pack("<d", high)
    lists = [struct.pack(f"<{len(one)}d", *one) for one in (limits, counts)]
    return field(1, tag.encode()) + field(5, ends + field(6, lists[0]) + field(7, lists[1]))


def tensor(tag: str, data: bytes, kind: str) -> bytes:
    return field(1, tag.encode()) + field(8, data) + (plugin(kind) if kind else b"")


def text(tag: str, *texts: str) -> bytes:
    return tensor(tag, b"\x08\x07" + b"".join(field(8, t.encode()) for t in texts), "text")


VERSION = framed(b"\x09" + struct.pack("<d", 1.7e9) + field(3, b"brain.Event:2"))
TAGS = ("actor/loss", "critic/score/mean", "perf/throughput", "actor/grad_norm")


def scalars(steps: range) -> list[bytes]:
    """Return events of several tags: enough of each step length to be read together."""
    return [
        event(step, 1.7e9 + step + n / 100, scalar(tag, step + n / 8))
        for step in steps
        for n, tag in enumerate(TAGS)
    ]  # fmt: skip


def mixed() -> list[bytes]:
    """Return events of every kind that is read, and some that are not."""
    return [
        event(3, 1.7e9, scalar("a", 1.0), scalar("b", nan)),
        event(3, 1.7e9, histogram("h", 0.5, 2.5, [1.0, 2.0, 3.0], [2.0, 2.0, 4.0])),
        event(3, 1.7e9, text("rollout/sample_0/text_summary", "hello")),
        event(3, 1.7e9, field(1, b"picture") + field(4, b"\x08\x01\x10\x01" + field(4, b"png"))),
        event(3, 1.7e9, tensor("t", b"\x08\x01" + field(4, struct.pack("<f", 0.25)), "scalars")),
        framed(b"\x09" + struct.pack("<d", 1.7e9) + field(7, b"\x08\x01")),  # the session starts
        framed(b"\x09" + struct.pack("<d", 1.7e9) + field(4, b"graph") + field(99, b"?")),
    ]


# -- reading ---------------------------------------------------------------------------------------


def read(
    data: bytes, cuts: tuple[int, ...] = ()
) -> tuple[dict[str, list[tuple[str, ...]]], list[object]]:
    """Return what stands in a file, by key and as samples and complaints, read in pieces."""
    reader = tensorboard.reader(Path(NAME))
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    numbers: dict[str, list[tuple[str, ...]]] = {}
    others: list[object] = []
    for start, stop in itertools.pairwise(edges):
        for record in reader.feed(data[start:stop]):
            if not isinstance(record, MetricRows):
                others += [] if isinstance(record, Histogram) else [record]
                continue
            (key,), (column,) = record.keys, record.columns
            assert record.progress
            assert not record.mean
            for row in zip(record.steps, record.times, record.orders, column, strict=True):
                numbers.setdefault(key, []).append(tuple(map(repr, row)))
    others.extend(reader.finish())
    return numbers, sorted(others, key=repr)


def write(path: Path, *records: bytes) -> Path:
    file = path / NAME
    file.write_bytes(b"".join((VERSION, *records)))
    return file


def test_checksums():
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA  # RFC 3720, B.4


@given(st.binary(max_size=800))
def test_checksums_of_any_bytes(data):
    assert crc32c(data) == slow_crc(data)


def test_a_file_is_recognised_by_its_name_and_its_first_record(tmp_path):
    path = tmp_path / NAME
    assert next(f for f in FORMATS if f.matches(path, VERSION)) is tensorboard
    assert tensorboard.matches(path, b"")
    assert not tensorboard.matches(path, b"garbage of some length")
    assert not tensorboard.matches(tmp_path / "train.log", VERSION)


@pytest.mark.parametrize("steps", [range(3), range(120, 140), range(16380, 16390), range(300)])
def test_scalars_are_what_was_written(tmp_path, steps):
    run = read_run(write(tmp_path, *scalars(steps)))
    for n, tag in enumerate(TAGS):
        assert values(run, tag) == {step: step + n / 8 for step in steps}
        assert run.series(tag).times[0] == 1.7e9 + steps[0] + n / 100
    assert run.unreadable == 0


def test_rows_say_when_they_were_written():
    (rows,) = tensorboard.reader(Path(NAME)).feed(
        VERSION + event(7, 1.7e9 + 0.256, scalar("a", 2.0))
    )
    assert (rows.keys, list(rows.steps), list(rows.orders)) == (("a",), [7], [170000000025])
    for odd in (nan, -5.0, inf, 1e300):
        ((row,),) = read(VERSION + event(7, odd, scalar("a", 2.0)))[0].values()
        assert 0 <= int(row[2]) < 2**40


def test_any_number_at_any_step():
    for step in [0, 1, 127, 128, 2**40, -1, -(2**40)]:
        for number in [nan, inf, -inf, 0.0, -0.0, 1.5, 2.0**-149, 3.0e38]:
            value = struct.unpack("<f", struct.pack("<f", number))[0]
            records = [event(step, 1.7e9 + n, scalar("a", value)) for n in range(9)]
            numbers, others = read(VERSION + b"".join(records))
            assert [(row[0], row[3]) for row in numbers["a"]] == [(repr(step), repr(value))] * 9
            assert others == []


@pytest.mark.parametrize("cuts", [(), (180,), (200, 300, 400)])
def test_values_that_others_of_the_same_step_replace_are_counted(cuts):
    """A logger that is given no step writes all its values at step 0: only the last of them can be
    shown.
    """
    pairs = [(0, 1.0), (0, 2.0), (0, 2.0), (1, 2.0), (1, 3.0), (2, 3.0)]
    data = VERSION + b"".join(
        event(step, 1.7e9 + n, scalar("a", value)) for n, (step, value) in enumerate(pairs)
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
        (one.key, one.step, one.low, one.high, round(sum(one.counts), 6), one.order) for one in kept
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
            (odd, histogram("h", 0.0, 1.0, [1.0], [0.0]), histogram("h", 0.0, 1.0, [], [1.0]))
        )
    ]
    numbers, others = read(VERSION + b"".join(records))
    assert {key: len(rows) for key, rows in numbers.items()} == {"a": 3, "b": 3}
    assert sorted(one.reason for one in others) == [
        "a histogram of 0 limits and 1 counts", "a histogram whose bounds do not ascend", "an empty histogram",
    ]  # fmt: skip
    assert {one.excerpt for one in others} == {"h"}


def test_the_figures_of_a_whole_dump_go_before_those_of_the_few_samples_in_texts(tmp_path):
    (tmp_path / "train.log").write_text("step:4 - critic/score/mean:0.5\n")
    (tmp_path / "validations").mkdir()
    rows = [json.dumps({"input": f"q{at}", "output": "so it is", "score": score, "step": 4}) + "\n"
            for at, score in enumerate((0.0, 0.0, 0.5, 1.0))]  # fmt: skip
    (tmp_path / "validations" / "4.jsonl").write_text("".join(rows))
    few = "### Sample 1\n**Input:** q3\n\n**Output:** so it is\n\n**Score:** 1.0\n"
    (tmp_path / NAME).write_bytes(
        VERSION + event(4, 1.7e9, text("val/generations/text_summary", few))
    )
    run = read_run(tmp_path)
    assert values(run, "val_samples/count") == {4: 4.0}
    assert values(run, "val_samples/score") == {4: 0.375}


def test_texts_are_samples():
    generations = (
        "**Generation Results - Step 5**\n\n### Sample 1\n**Input:** 1+1?\n\n**Output:** It is\n\n---\n\n2\n\n"
        "**Score:** 1.0\n\n---\n\n### Sample 2\n**Input:** 2+2?\n\n**Output:** ### Sample 1\n5\x1b[31m\n\n"
        "**Score:** None\n\n---\n\n"
    )
    records = [
        event(5, 1.7e9, text("val/generations/text_summary", generations)),
        event(5, 1.7e9, text("notes/text_summary", "a **note**")),
        event(
            5,
            1.7e9,
            text("rollout/sample_1", "**Prompt:** p\n\n**Response:** r\n\n**Reward:** -0.5"),
        ),
        event(5, 1.7e9, text("val/generations", "nothing of that kind")),
    ]
    found = [
        r
        for r in tensorboard.reader(Path(NAME)).feed(VERSION + b"".join(records))
        if isinstance(r, Sample)
    ]
    assert found == [
        Sample(5, "1+1?", "It is\n\n---\n\n2", 1.0, validation=True),
        Sample(5, "2+2?", "### Sample 1\n5", None, validation=True),
        Sample(5, "", "a **note**", extras={"tag": "notes"}),
        Sample(5, "p", "r", -0.5),
        Sample(5, "", "nothing of that kind", validation=True),
    ]


def test_long_runs_of_blanks_cost_no_time(tmp_path):
    blanks = (
        "**Input:** a\n\n**Output:** "
        + "\n" * 20_000
        + "x"
        + " \n\n**Score:**" * 2_000
        + "\n" * 20_000
        + "."
    )
    (sample,) = read(VERSION + event(1, 1.7e9, text("val/generations", blanks)))[1]
    assert (sample.prompt, sample.validation) == ("a", True)


def test_of_two_files_of_a_run_that_written_later_holds(tmp_path):
    for name, time, value in (("b.1", 1.7e9, 1.0), ("a.2", 1.8e9, 2.0)):
        records = [
            event(step, time + step, scalar("a", value)) for step in range(5 * int(value), 15)
        ]
        (tmp_path / f"events.out.tfevents.{name}").write_bytes(VERSION + b"".join(records))
    assert values(read_run(tmp_path), "a") == {
        **dict.fromkeys(range(5, 10), 1.0),
        **dict.fromkeys(range(10, 15), 2.0),
    }


def test_a_file_that_starts_anew_is_read_anew():
    reader = tensorboard.reader(Path(NAME))
    reader.feed(VERSION + event(1, 1.7e9, scalar("a", 1.0))[:-1])
    assert reader.restart("file was truncated") == (Restart("file was truncated"),)
    (rows,) = reader.feed(VERSION + event(2, 1.7e9, scalar("a", 2.0)))
    assert list(rows.steps) == [2]


# -- cut, damaged, hostile -------------------------------------------------------------------------

PIECES = [VERSION, *scalars(range(4)), *mixed(), *scalars(range(126, 131))]
WHOLE = b"".join(PIECES)


@given(st.lists(st.integers(0, len(WHOLE)), max_size=30).map(tuple))
def test_records_may_be_cut_anywhere(cuts):
    assert read(WHOLE, cuts) == read(WHOLE)


def test_half_a_record_waits():
    last = event(200, 1.7e9, scalar("a", 4.0))
    before = read(WHOLE)
    for stop in range(len(last)):
        assert read(WHOLE + last[:stop]) == before
    assert len(read(WHOLE + last)[0]["a"]) == len(before[0]["a"]) + 1


def counted(numbers: dict[str, list[tuple[str, ...]]]) -> set[tuple[str, ...]]:
    return {(key, *row) for key, rows in numbers.items() for row in rows}


@given(
    st.integers(0, len(WHOLE) - 1),
    st.integers(1, 255),
    st.lists(st.integers(0, len(WHOLE)), max_size=3).map(tuple),
)
def test_a_changed_byte_costs_one_record_and_no_value_is_wrong(at, mask, cuts):
    data = bytearray(WHOLE)
    data[at] ^= mask
    numbers, others = read(bytes(data), cuts)
    true, _ = read(WHOLE)
    assert counted(numbers) <= counted(true)
    (wrong,) = [record for record in others if isinstance(record, Unreadable)]
    edges = list(itertools.accumulate(map(len, PIECES), initial=0))
    number = next(n for n, edge in enumerate(edges) if edge > at)
    assert (wrong.line, f"at byte {edges[number - 1]:,}" in wrong.reason) == (number, True)
    lost = read(VERSION + PIECES[number - 1])[0] if number > 1 else {}
    assert counted(true) - counted(numbers) == counted(lost)


@given(
    st.lists(
        st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(0, 60), st.binary(max_size=40)),
        max_size=5,
    )
)
def test_no_damage_makes_a_wrong_value(damage):
    data = WHOLE
    for at, cut, inserted in damage:
        data = data[:at] + inserted + data[at + cut :]
    numbers, others = read(data)
    assert counted(numbers) <= counted(read(WHOLE)[0])
    assert {type(record) for record in others} <= {Unreadable, Sample}


def test_equal_damage_to_many_records_is_seen():
    records = [bytearray(record) for record in scalars(range(20))]
    for record in records[4:]:
        record[-9] ^= 0x20
    numbers, others = read(VERSION + b"".join(records))
    assert counted(numbers) == counted(read(VERSION + b"".join(scalars(range(1))))[0])
    assert others


@given(st.binary(max_size=60), st.integers(0, 60), st.integers(0, 60))
def test_walking_any_message_ends(data, start, stop):
    try:
        found = list(fields(data, start, stop))
    except ValueError:
        return
    ends = [value[1] for _, _, value in found if isinstance(value, tuple)]
    assert ends == sorted(ends)
    assert all(start <= end <= stop <= len(data) for end in ends)


@given(st.integers(0, 2**64 - 1), st.binary(max_size=3))
def test_varints(value, after):
    written = varint(value)
    assert protobuf.varint(written + after, 0) == (value, len(written))
    for data in (written[:-1], b"\xff" * 10 + after, b"\xff" * 9 + b"\x02"):
        with pytest.raises(ValueError, match="without an end"):
            protobuf.varint(data, 0)


@given(st.binary(max_size=500))
def test_any_bytes(data):
    reader = tensorboard.reader(Path(NAME))
    assert all(isinstance(record, Unreadable) for record in (*reader.feed(data), *reader.finish()))


@given(st.binary(max_size=60), st.integers(2, 9))
def test_any_message_in_a_sound_record(data, number):
    for inner in (
        data,
        field(5, data),
        field(5, field(1, data)),
        field(5, field(1, field(number, data) + plugin("text"))),
    ):
        for kind in ("histograms", "scalars"):
            value = field(1, b"x") + field(8, data) + plugin(kind)
            tensorboard.reader(Path(NAME)).feed(VERSION + framed(inner) + event(1, 1.7e9, value))


def test_garbage_between_records_is_passed_over():
    for garbage in (
        bytes(5000),
        b"\x18" + bytes(11),
        random.Random(1).randbytes(70_000),
        VERSION[:20],
    ):
        data = VERSION + b"".join(scalars(range(3))) + garbage + b"".join(scalars(range(3, 6)))
        numbers, others = read(data)
        assert counted(numbers) == counted(read(VERSION + b"".join(scalars(range(6))))[0])
        assert [type(record) for record in others] == [Unreadable]


def test_what_is_held_is_bounded(monkeypatch):
    monkeypatch.setattr(tensorboard_frames, "LARGEST", 1000)
    huge, after = framed(b"\x22" + varint(4996) + bytes(4996)), event(1, 1.7e9, scalar("a", 1.0))
    for cuts in ((), (200, 700, 3000)):
        numbers, (wrong,) = read(VERSION + huge + after, cuts)
        assert "is not read" in wrong.reason
        assert list(numbers) == ["a"]
    reader = tensorboard.reader(Path(NAME))
    for _ in range(100):
        reader.feed(random.Random(1).randbytes(10_000))
        assert len(pickle.dumps(reader)) < 20_000


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (event(2**63 - 1, 1.7e9, scalar("a", 1.0)), "the step is 9223372036854775807"),
        (framed(b"\x0b\x00"), "wire type 3"),
        (event(1, 1.7e9, field(1, b"h") + field(5, field(6, bytes(8)))), "1 limits and 0 counts"),
        (
            event(1, 1.7e9, tensor("x", field(4, bytes(7)) + b"\x08\x01", "scalars")),
            "7 bytes of numbers",
        ),
        (
            event(1, 1.7e9, tensor("x", field(2, field(2, b"\x08" + varint(2**40))), "scalars")),
            "a tensor of",
        ),
    ],
)
def test_events_that_say_nothing_sensible(record, words):
    numbers, (wrong,) = read(VERSION + record + event(1, 1.7e9, scalar("a", 1.0)))
    assert words in wrong.reason
    assert wrong.line == 2
    assert list(numbers) == ["a"]


def test_a_file_of_no_known_version_says_so():
    for first in (framed(b"\x09" + bytes(8)), framed(b"\x09" + bytes(8) + field(3, b"other:1"))):
        numbers, (wrong,) = read(first + event(1, 1.7e9, scalar("a", 1.0)))
        assert "version" in wrong.reason
        assert list(numbers) == ["a"]


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
    return {tag: {e.step: e.value for e in found.Scalars(tag)} for tag in found.Tags()["scalars"]}


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
    assert [(s.step, s.response, dict(s.extras)) for s in others] == [(7, "some text", {})]
    median = [float(row[3]) for row in numbers["h/p50"]]
    assert median == pytest.approx([49.5], abs=5)  # bins grow by a tenth


def test_histograms_are_those_of_tensorboard():
    compressor = imported("tensorboard.plugins.distribution.compressor")
    histogram_pb2 = imported("tensorboard.compat.proto.histogram_pb2")
    rng = random.Random(1)
    for _ in range(50):
        limits = sorted(rng.uniform(-10, 10) for _ in range(12))
        counts = [rng.choice((0.0, rng.random(), rng.random())) for _ in limits[1:]] + [1.0]
        proto = histogram_pb2.HistogramProto(num=sum(counts), bucket_limit=limits, bucket=counts)
        first = next(n for n, count in enumerate(counts) if count)
        proto.min = (limits[first - 1] if first else limits[0] - 0.2) + 1e-3
        proto.max = limits[-1] - 1e-6
        expected = compressor.compress_histogram_proto(
            proto, bps=(500, 2500, 5000, 7500, 9500, 10000)
        )
        numbers, _ = read(
            VERSION + event(1, 1.7e9, field(1, b"h") + field(5, proto.SerializeToString()))
        )
        found = [float(numbers[f"h/p{share}"][0][3]) for share in ("05", "25", "50", "75", "95")]
        assert found == pytest.approx([value for _, value in expected[:5]])
        assert float(numbers["h/min"][0][3]) == proto.min
        assert float(numbers["h/max"][0][3]) == proto.max


@pytest.mark.parametrize(
    "kind", ["float16", "float32", "float64", "int8", "uint8", "int16", "int32", "int64", "bool"]
)
@pytest.mark.parametrize("packed", [True, False])
def test_tensors_of_any_type(kind, packed):
    util = imported("tensorboard.util.tensor_util")
    numpy = imported("numpy")
    for number in (0, 1, -3, 100):
        array = numpy.array(number if kind not in ("uint8", "bool") else abs(number)).astype(kind)
        proto = util.make_tensor_proto(array)
        assert not proto.tensor_content
        if packed:
            proto = type(proto)(dtype=proto.dtype, tensor_content=array.tobytes())
        numbers, others = read(
            VERSION + event(1, 1.7e9, tensor("x", proto.SerializeToString(), "scalars"))
        )
        assert [float(row[3]) for row in numbers["x"]] == [float(array)]
        assert others == []


def test_brain_floats():
    for data in (field(4, b"\xc0\x3f"), field(13, varint(0x3FC0)), b"\x68" + varint(0x3FC0)):
        numbers, _ = read(VERSION + event(1, 1.7e9, tensor("x", b"\x08\x0e" + data, "scalars")))
        assert [row[3] for row in numbers["x"]] == ["1.5"]


def test_a_histogram_in_brain_floats_has_the_figures_of_one_in_floats():
    """Any brain float is the upper half of a float."""
    shape = field(2, b"".join(field(2, b"\x08" + varint(size)) for size in (2, 3)))
    floats = struct.pack("<6f", 0, 1, 2, 1, 3, 4)
    upper = b"".join(floats[at + 2 : at + 4] for at in range(0, len(floats), 4))
    found = [
        read(VERSION + event(1, 1.7e9, tensor("h", kind + shape + field(4, data), "histograms")))
        for kind, data in ((b"\x08\x01", floats), (b"\x08\x0e", upper))
    ]
    assert "h/p50" in found[0][0]
    assert found[1] == found[0]


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

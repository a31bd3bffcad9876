"""Stretches of a file read apart: the same records as read in one go, wherever it is cut."""

from __future__ import annotations

import json
import math
from itertools import accumulate, pairwise
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from event_writing import event, tensor, version
from hypothesis import given, settings
from hypothesis import strategies as st
from log_reading import without_figures
from property_examples import examples
from tensorboardX.proto.summary_pb2 import Summary
from wandb_writing import field, history, stats, written

from verl_tui.records import MetricRows, Restart
from verl_tui.sources.files.tail import CHUNK, Chunk, Tail
from verl_tui.sources.formats import (
    filelogger,
    llama_factory,
    metrics_csv,
    swift,
    tutorial,
)
from verl_tui.sources.formats.format import SeparableReader
from verl_tui.sources.formats.tensorboard import reader as tensorboard
from verl_tui.sources.formats.wandb import reader as wandb
from verl_tui.sources.host.writer_watch import WriterWatch
from verl_tui.sources.packing import packed, unpacked
from verl_tui.sources.source import FileSource
from verl_tui.sources.source_reader import SourceReader
from verl_tui.sources.stretches import Cuts, StretchedSource, StretchReader, cuts_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.records import Record
    from verl_tui.sources.formats.format import PartedFormat

EVENTS = "events.out.tfevents.1.host.1.0"
FORMATS: dict[str, PartedFormat] = {
    "verl.jsonl": filelogger,
    "tutorial.jsonl": tutorial,
    "logging.jsonl": swift,
    "trainer_log.jsonl": llama_factory,
    "metrics.csv": metrics_csv,
}


def file_log_line(step: int, kind: int) -> str:
    data: dict[str, Any] = {
        "actor/ppo_kl": 0.5,
        "critic/score/mean": kind,
        "loss": step / 7,
    }
    if kind == 1:
        data["val/accuracy"] = 0.5
    if kind == 2:
        data = dict(reversed(data.items()))
    if kind == 3:
        data |= {"odd": float("nan"), "list": [1, 2, step], "text": "x"}
    if kind == 4:
        data = {"text": "no number"}
    return json.dumps({"step": step, "data": data})


def tutorial_line(step: int, kind: int) -> str:
    place = {"scope": "ppo", "step": step, "timestamp": 1_700_000_000 + step}
    lines = [{**place, "loss": step / 7, "kl": kind}]
    if kind == 1:
        lines.append({**place, "scope": "reward", "score": step / 3})
        lines.insert(0, {**place, "scope": "system", "gpu_util": step})
    if kind == 2:
        lines.insert(0, {"scope": "reward", "score": step / 3})
        lines.insert(0, {"scope": "reward", "score": step / 2, "step": step - 1})
    if kind == 3:
        lines[0] |= {"total_steps": 100 + step // 20, "epoch": step / 50}
        lines.append(
            {"step": step, "prompt": "two and two", "response": "five", "reward": 0.5}
        )
    if kind == 4:
        lines[0] |= {"rank": step % 2, "step": step % 5}
    return "\n".join(map(json.dumps, lines))


def swift_line(step: int, kind: int) -> str:
    data: dict[str, Any] = {"loss": step / 7, "global_step/max_steps": f"{step}/500"}
    if kind == 2:
        data |= {"train_runtime": 12.5, "epoch": 1.0}
    if kind == 3:
        data = {"eval_loss": step / 3, "global_step/max_steps": f"{step}/{500 + step}"}
    if kind == 4:
        del data["global_step/max_steps"]
    return json.dumps(data)


def llama_factory_line(step: int, kind: int) -> str:
    data = {
        "current_steps": step,
        "total_steps": 500,
        "loss": step / 7,
        "percentage": 1.5,
    }
    return json.dumps(data | ({"eval_loss": 0.5} if kind in (1, 3) else {}))


def csv_line(step: int, kind: int) -> str:
    if kind == 3:
        return "step,loss,kl"
    return ",".join([str(step), str(step / 7), "" if kind in (1, 2) else "0.5"])


ODD = (
    "",
    "no JSON",
    "{}",
    "\ufeff",
    '{"step": 3, "data": {"a": 1}}' * 2,
    "\0\0\0",
    "{",
    "1,2",
)
LINES = {
    "verl.jsonl": file_log_line,
    "tutorial.jsonl": tutorial_line,
    "logging.jsonl": swift_line,
    "trainer_log.jsonl": llama_factory_line,
    "metrics.csv": csv_line,
}


@st.composite
def logs(draw: st.DrawFn) -> tuple[str, bytes]:
    """Return the name and the bytes of a log whose steps mostly ascend."""
    name = draw(st.sampled_from(sorted(FORMATS)))
    line = LINES[name]
    rises = draw(st.lists(st.sampled_from((1, 1, 1, 2, 40)), min_size=40, max_size=90))
    for at in draw(st.sets(st.integers(1, len(rises) - 1), max_size=4)):
        rises[at] = draw(st.sampled_from((0, 0, -1, -1, -9)))
    steps = accumulate(rises)
    others = draw(st.sets(st.integers(1, 4)))
    kinds = draw(
        st.lists(st.sampled_from([0] * 9 + [*others]), min_size=90, max_size=90)
    )
    made = [line(step, kind) for step, kind in zip(steps, kinds, strict=False)]
    for at in draw(st.sets(st.integers(1, len(made)), max_size=3)):
        made.insert(at, draw(st.sampled_from(ODD)))
    if name == "metrics.csv":
        made.insert(0, "step,loss,kl")
    end = draw(st.sampled_from(("\n", "", '\n{"step": 9')))
    return name, ("\n".join(made) + end).encode()


@st.composite
def wandb_logs(draw: st.DrawFn) -> bytes:
    """Return a log of W&B's of some blocks, whose records have the trainer's step, or W&B's."""
    stated, count = draw(st.booleans()), 300
    rises = [1] * count
    for at in draw(st.sets(st.integers(1, count - 1), max_size=4)):
        rises[at] = draw(st.sampled_from((0, 0, -1, -1, -9, 40)))
    kinds = [0] * count
    for at in draw(st.sets(st.integers(1, count - 1), max_size=60)):
        kinds[at] = draw(st.sampled_from((1, 1, 2, 2, 3)))
    if draw(st.booleans()):
        kinds[draw(st.integers(1, count - 1))] = draw(st.sampled_from((4, 5)))
    chance = draw(st.randoms(use_true_random=False))
    steps = zip(accumulate(rises), kinds, strict=True)
    records = [
        wandb_record(at, step, kind, chance, stated=stated)
        for at, (step, kind) in enumerate(steps)
    ]
    return written(records)


def wandb_record(
    at: int, step: int, kind: int, chance: Random, *, stated: bool
) -> bytes:
    output = field(3, "x" * 900)  # a field that says nothing here
    if kind == 2:
        return stats(1.7e9 + at, {"cpu": str(at), "gpu.0.gpu": "5"}) + output
    if kind == 4:
        return field(2, b"\x0a\x7f") + output
    numbers = {"loss": str(step / 7), "kl": "NaN", "_timestamp": str(1.7e9 + at)}
    if kind == 1:
        numbers |= {"val/accuracy": "0.5", "list": f"[1,2,{step}]", "odd": '"Infinity"'}
    if stated != (kind == 5) and kind != 3:
        numbers["train/global_step"] = str(step)
    items = list(numbers.items())
    chance.shuffle(items)
    return history(at if stated else step, dict(items)) + output


@st.composite
def event_logs(draw: st.DrawFn) -> bytes:
    """Return an event file whose tags have any steps, and tensors that name their plugin rarely."""
    drawn = st.tuples(
        st.sampled_from("aaabbbbcd"),
        st.sampled_from((0, 1, 1, 1, 5, -3)),
        st.integers(0, 30),
    )
    # Steps of as many bytes: of others the order in which they count as replaced is not the file's.
    records = [version()]
    steps = dict.fromkeys("abcd", 1000)
    wide = draw(st.booleans())
    for at, (tag, rise, other) in enumerate(
        draw(st.lists(drawn, min_size=60, max_size=200))
    ):
        steps[tag] += rise
        value = (
            tensor("t", at, "scalars")
            if other == 1
            else tensor("t", at)
            if other == 2
            else None
        )
        value = (
            tensor("u", at, ("text", "scalars")[at % 2])
            if other == 3 and wide
            else value
        )
        value = value or Summary.Value(
            tag=tag, simple_value=steps[tag] / 7 if other else math.nan
        )
        records.append(event(at, steps[tag], value))
    return b"".join(records)


class CountingTail(Tail):
    """Counts the bytes that it reads."""

    bytes_read = 0

    def read(self, limit: int = CHUNK) -> Chunk:
        chunk = super().read(limit)
        self.bytes_read += len(chunk.data)
        return chunk


class Reading:
    """Reads a file, and tells what came of it in a form that does not depend on the turns."""

    def __init__(self, path: Path, chunk: int) -> None:
        self.tail = CountingTail(path)
        others = {EVENTS: tensorboard, "run-x.wandb": wandb}
        format_ = (FORMATS | others)[path.name]
        source = FileSource(path, format_, chunk=chunk, tail=self.tail)
        self.source = source
        self.reader = SourceReader(
            "run", source, path, source.format.name, WriterWatch()
        )
        self._segments: list[list[str]] = [[]]

    def cut(self, cuts: Cuts, workers: int, lost: int) -> None:
        """Read it in stretches; from one of them on the first worker is lost."""
        readers = [
            StretchReader(cuts, range(first, cuts.stretches, workers))
            for first in range(workers)
        ]

        def ask(number: int) -> object:
            if number % workers == 0 and number >= lost:
                return None
            return unpacked(packed(readers[number % workers].read()[0][0]))

        self.reader.source = StretchedSource(self.reader, self.source, cuts, ask)

    def turn(self) -> bool:
        """Read a little; return whether more waits."""
        before = self.source.offset
        records, more = self.reader.source.read()
        assert self.source.offset >= before or any(
            isinstance(one, Restart) for one in records
        )
        self._note(records)
        return more

    def to_the_end(self) -> tuple[list[list[str]], object]:
        """Read what is left; return it all."""
        while self.turn():
            pass
        self.turn()
        assert self.reader.source is self.source, "it is at home"
        self._note(self.source.finish())
        return [sorted(one) for one in self._segments], self.source.status()

    def _note(self, records: Sequence[Record]) -> None:
        # Figures of samples are passed on anew in each turn in which there are some.
        for record in without_figures(records):
            if isinstance(record, MetricRows):
                self._segments[-1] += _rows(record)
                continue
            if isinstance(record, Restart):
                self._segments.append([])
            self._segments[-1].append(repr(record))


def _rows(rows: MetricRows) -> list[str]:
    about = f"{rows.keys} {rows.mean} {rows.progress} {rows.estimated}"
    times = rows.times or [math.nan] * len(rows.steps)
    found = zip(rows.orders, rows.steps, times, *rows.columns, strict=True)
    return [f"{about} {row}" for row in found]


@settings(max_examples=examples(1 / 2), deadline=None)
@given(
    log=logs(),
    chunk=st.integers(50, 3000),
    first=st.integers(1, 1500),
    size=st.integers(100, 1500),
    piece=st.integers(50, 1000),
    workers=st.integers(1, 3),
    lost=st.sampled_from((0, 2, 100, 100)),
)
def test_read_in_stretches_a_log_says_the_same(
    log: tuple[str, bytes],
    chunk: int,
    first: int,
    size: int,
    piece: int,
    workers: int,
    lost: int,
) -> None:
    name, data = log
    with TemporaryDirectory() as directory:
        path = Path(directory) / name
        path.write_bytes(data)
        away = Reading(path, chunk)
        head = FORMATS[name].reader(path)
        assert isinstance(head, SeparableReader)
        head.feed(data[:first])
        away.cut(
            Cuts(path, FORMATS[name], head, len(data), first, size, piece),
            workers,
            lost,
        )
        assert away.to_the_end() == Reading(path, chunk).to_the_end()


@settings(max_examples=examples(1 / 4), deadline=None)
@given(
    data=wandb_logs(),
    chunk=st.integers(10_000, 200_000),
    size=st.integers(20_000, 90_000),
    piece=st.integers(5_000, 50_000),
    damaged=st.none() | st.integers(120_000, 250_000),
)
def test_read_in_stretches_a_log_of_wandb_says_the_same(
    data: bytes, chunk: int, size: int, piece: int, damaged: int | None
) -> None:
    if damaged is not None:
        data = data[:damaged] + b"?" + data[damaged + 1 :]
    first = 130_000
    with TemporaryDirectory() as directory:
        path = Path(directory) / "run-x.wandb"
        path.write_bytes(data)
        away = Reading(path, chunk)
        head = wandb.reader(path)
        head.feed(data[:first])
        away.cut(Cuts(path, wandb, head, len(data), first, size, piece), 2, 100)
        assert away.to_the_end() == Reading(path, chunk).to_the_end()


def bytes_read_here(path: Path, format_: PartedFormat) -> int:
    """Read a file in stretches, which changes nothing; return how much the source itself read."""
    reading = Reading(path, CHUNK)
    cuts = cuts_of(FileSource(path, format_), path.stat().st_size)
    assert cuts is not None
    reading.cut(cuts._replace(size=100_000), 2, 100)
    assert reading.to_the_end() == Reading(path, CHUNK).to_the_end()
    return reading.tail.bytes_read


def test_most_of_a_log_of_wandb_is_read_apart(tmp_path: Path) -> None:
    path = tmp_path / "run-x.wandb"
    for stated in (False, True):
        chance = Random(1)
        kinds = [(0, 1, 0, 2)[at % 4] for at in range(600)]
        records = [
            wandb_record(at, at, kinds[at], chance, stated=stated) for at in range(600)
        ]
        path.write_bytes(written(records))
        assert bytes_read_here(path, wandb) < CHUNK + (path.stat().st_size - CHUNK) / 3


def test_a_log_of_wandb_is_not_cut_before_it_shows_whose_steps_it_has(
    tmp_path: Path,
) -> None:
    path = tmp_path / "run-x.wandb"
    path.write_bytes(written([history(step, {"loss": "1"}) for step in range(50)]))
    assert cuts_of(FileSource(path, wandb), path.stat().st_size) is None


@settings(max_examples=examples(1 / 2), deadline=None)
@given(
    data=event_logs(),
    chunk=st.integers(50, 3000),
    first=st.integers(1, 1500),
    size=st.integers(100, 1500),
    piece=st.integers(50, 1000),
    damaged=st.none() | st.integers(0, 4000),
)
def test_read_in_stretches_an_event_file_says_the_same(
    data: bytes, chunk: int, first: int, size: int, piece: int, damaged: int | None
) -> None:
    if damaged is not None and damaged < len(data):
        data = data[:damaged] + bytes((data[damaged] ^ 1,)) + data[damaged + 1 :]
    with TemporaryDirectory() as directory:
        path = Path(directory) / EVENTS
        path.write_bytes(data)
        away = Reading(path, chunk)
        head = tensorboard.reader(path)
        head.feed(data[:first])
        away.cut(Cuts(path, tensorboard, head, len(data), first, size, piece), 2, 100)
        assert away.to_the_end() == Reading(path, chunk).to_the_end()


def test_most_of_an_event_file_is_read_apart(tmp_path: Path) -> None:
    path = tmp_path / EVENTS
    made = [
        event(at, at // 2, Summary.Value(tag="ab"[at % 2], simple_value=at))
        for at in range(20_000)
    ]
    made[50:50] = [event(50, 25, tensor("t", 5, "scalars"))]
    made[15_000:15_000] = [event(15_000, 7500, tensor("t", 6))]
    path.write_bytes(b"".join((version(), *made)))
    here = bytes_read_here(path, tensorboard)
    assert here < CHUNK + 1000, "no more than the first record behind it"


STEADY = "".join(f"{file_log_line(at, 0)}\n" for at in range(1, 200))


def begun(directory: Path) -> tuple[Path, Reading]:
    """Return a log of 200 steps, and its reading in stretches, of which one has been taken."""
    path = directory / "verl.jsonl"
    path.write_text(STEADY)
    head = filelogger.reader(path)
    reading = Reading(path, 1000)
    reading.cut(Cuts(path, filelogger, head, len(STEADY), 1000, 4000, 1000), 2, 100)
    while reading.tail.bytes_read == reading.source.offset:
        assert reading.turn()
    return path, reading


def test_what_is_appended_meanwhile_is_read(tmp_path: Path) -> None:
    path, reading = begun(tmp_path)
    with path.open("a") as file:
        file.write(f"{file_log_line(500, 0)}\n{file_log_line(90, 0)}\n")
    found = reading.to_the_end()
    assert reading.tail.bytes_read < len(STEADY) / 2, "most of it was read apart"
    assert found == Reading(path, 1000).to_the_end()
    assert len(found[0]) == 2, "the last row is of a new segment"


def test_a_file_that_is_rewritten_meanwhile_is_read_anew(tmp_path: Path) -> None:
    path, reading = begun(tmp_path)
    anew = [file_log_line(at, 0) for at in range(1000, 1300)]
    path.write_text("".join(f"{line}\n" for line in anew))
    segments, _ = reading.to_the_end()
    assert len(segments) == 2
    alone, _ = Reading(path, 1000).to_the_end()
    assert len(segments[1]) == len(alone[0]) + 1, "and what says that it begins anew"


def test_progress_is_reported_piece_by_piece(tmp_path: Path) -> None:
    _, reading = begun(tmp_path)
    positions = [reading.reader.source.status().bytes_read]
    while reading.turn():
        positions.append(reading.reader.source.status().bytes_read)
    assert positions == sorted(positions)
    assert max(b - a for a, b in pairwise(positions)) <= 1100


def test_a_file_whose_lines_depend_on_each_other_is_not_cut(tmp_path: Path) -> None:
    path = tmp_path / "tutorial.jsonl"
    counted = '{"loss": 0.5}\n' * 50
    stated = '{"step": 5, "loss": 0.5}\n' * 50
    for text, may in ((counted, False), (stated, True)):
        path.write_text(text)
        source = FileSource(path, tutorial)
        assert (cuts_of(source, len(text)) is not None) is may
    (tmp_path / "tutorial.jsonl.1").write_text(stated)
    assert cuts_of(FileSource(path, tutorial), len(stated)) is None, (
        "it has an older part"
    )

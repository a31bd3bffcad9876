"""Lines of a file decoded apart: the same records as read in one go, wherever it is cut."""

from __future__ import annotations

import json
import math
from copy import deepcopy
from itertools import accumulate
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from log_reading import without_figures
from property_examples import examples

from verl_tui.records import MetricRows, Restart
from verl_tui.sources.ahead import decoded_part
from verl_tui.sources.files.tail import CHUNK, Chunk, Tail
from verl_tui.sources.formats import filelogger, tutorial
from verl_tui.sources.formats.trainer_logs import llama_factory, swift
from verl_tui.sources.source import FileSource

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.records import Record
    from verl_tui.sources.formats.format import PartedFormat

FORMATS: dict[str, PartedFormat] = {
    "verl.jsonl": filelogger,
    "tutorial.jsonl": tutorial,
    "logging.jsonl": swift,
    "trainer_log.jsonl": llama_factory,
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


ODD = (
    "",
    "no JSON",
    "{}",
    "\ufeff",
    '{"step": 3, "data": {"a": 1}}' * 2,
    "\0\0\0",
    "{",
)
LINES = {
    "verl.jsonl": file_log_line,
    "tutorial.jsonl": tutorial_line,
    "logging.jsonl": swift_line,
    "trainer_log.jsonl": llama_factory_line,
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
    end = draw(st.sampled_from(("\n", "", '\n{"step": 9')))
    return name, ("\n".join(made) + end).encode()


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
        self.source = FileSource(path, FORMATS[path.name], chunk=chunk, tail=self.tail)
        self._segments: list[list[str]] = [[]]

    def turn(self) -> bool:
        """Read a little; return whether more waits."""
        records, more = self.source.read()
        self._note(records)
        return more

    def part(self, size: int) -> None:
        """Take the next lines that begin in so many bytes, decoded apart; or read these."""
        begin = self.source.offset
        decoder = deepcopy(self.source.standing_decoder)
        part = None
        if decoder is not None:
            part = decoded_part(self.source.path, begin, begin + size, decoder)
        self._to(begin + size if part is None else part.start)
        if part is None:
            return
        records = self.source.take(part)
        if records is None:
            self._to(part.stop)
        else:
            self._note(records)

    def to_the_end(self) -> tuple[list[list[str]], object]:
        """Read what is left; return it all."""
        while self.turn():
            pass
        self._note(self.source.finish())
        return [sorted(one) for one in self._segments], self.source.status()

    def _to(self, place: int) -> None:
        while self.source.offset < place:
            records, more = self.source.read_until(place)
            self._note(records)
            if not more:
                return

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


WITHOUT_A_STEP = "".join(
    f'{{"loss": {at}{stated}}}\n'
    for at in range(1, 41)
    for stated in ("" if at == 5 else f', "global_step/max_steps": "{at}/500"',)
).encode()
"""A log of ms-swift in which a record states no step: it has that of the one before."""


@settings(max_examples=examples(1), deadline=None)
@example(log=("logging.jsonl", WITHOUT_A_STEP), chunk=150, sizes=[63])
@given(
    log=logs(),
    chunk=st.integers(50, 3000),
    sizes=st.lists(st.integers(1, 1500), max_size=20),
)
def test_decoded_in_parts_a_log_says_the_same(
    log: tuple[str, bytes], chunk: int, sizes: Sequence[int]
) -> None:
    name, data = log
    with TemporaryDirectory() as directory:
        path = Path(directory) / name
        path.write_bytes(data)
        reading = Reading(path, chunk)
        reading.turn()
        for size in sizes:
            reading.part(size)
        assert reading.to_the_end() == Reading(path, chunk).to_the_end()


STEADY = "".join(f"{file_log_line(at, 0)}\n" for at in range(1, 200))


def begun(directory: Path) -> Reading:
    """Return the reading of a log of 200 steps, most of which has been decoded apart."""
    path = directory / "verl.jsonl"
    path.write_text(STEADY)
    reading = Reading(path, 1000)
    reading.turn()
    reading.part(9000)
    assert reading.tail.bytes_read < 1200, "most of it was decoded apart"
    assert reading.source.offset > 9000
    return reading


def test_what_is_appended_meanwhile_is_read(tmp_path: Path) -> None:
    reading = begun(tmp_path)
    with reading.source.path.open("a") as file:
        file.write(f"{file_log_line(500, 0)}\n{file_log_line(90, 0)}\n")
    reading.part(2000)
    found = reading.to_the_end()
    assert found == Reading(reading.source.path, 1000).to_the_end()
    assert len(found[0]) == 2, "the last row is of a new segment"


def test_a_file_that_is_rewritten_meanwhile_is_read_anew(tmp_path: Path) -> None:
    reading = begun(tmp_path)
    anew = [file_log_line(at, 0) for at in range(1000, 1300)]
    reading.source.path.write_text("".join(f"{line}\n" for line in anew))
    reading.part(2000)
    segments, _ = reading.to_the_end()
    assert len(segments) == 2
    alone, _ = Reading(reading.source.path, 1000).to_the_end()
    assert len(segments[1]) == len(alone[0]) + 1, "and what says that it begins anew"


def test_lines_that_depend_on_each_other_are_not_decoded_apart(tmp_path: Path) -> None:
    path = tmp_path / "tutorial.jsonl"
    counted = '{"loss": 0.5}\n' * 50
    stated = '{"step": 5, "loss": 0.5}\n' * 50
    for text, may in ((counted, False), (stated, True)):
        path.write_text(text)
        source = FileSource(path, tutorial)
        source.read()
        assert (source.standing_decoder is not None) is may
    (tmp_path / "tutorial.jsonl.1").write_text(stated)
    assert not FileSource(path, tutorial).is_alone, "it has an older part"

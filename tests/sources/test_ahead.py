"""Lines of a file decoded apart: the same records as read in one go, wherever it is cut."""

from __future__ import annotations

import json
import math
from itertools import accumulate
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st
from log_reading import without_figures
from property_examples import examples

from verl_tui.records import MetricRows, Restart
from verl_tui.sources.ahead import decoded_part
from verl_tui.sources.formats import filelogger, tutorial
from verl_tui.sources.source import FileSource

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.records import Record

NAME = "verl.jsonl"


def line_of(step: int, kind: int) -> str:
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


ODD = ("", "no JSON", "{}", "\ufeff", '{"step": 3, "data": {"a": 1}}' * 2, "\0\0\0")


@st.composite
def logs(draw: st.DrawFn) -> bytes:
    """Return the bytes of a log whose steps mostly ascend."""
    rises = draw(st.lists(st.sampled_from((1, 1, 1, 2, 40)), min_size=40, max_size=90))
    for at in draw(st.sets(st.integers(1, len(rises) - 1), max_size=4)):
        rises[at] = draw(st.sampled_from((0, 0, -1, -1, -9)))
    kinds = draw(st.lists(st.sampled_from([*[0] * 9, 1, 2, 3, 4]), min_size=90))
    made = [line_of(*one) for one in zip(accumulate(rises), kinds, strict=False)]
    for at in draw(st.sets(st.integers(1, len(made)), max_size=3)):
        made.insert(at, draw(st.sampled_from(ODD)))
    end = draw(st.sampled_from(("\n", "", '\n{"step": 9')))
    return ("\n".join(made) + end).encode()


class Reading:
    """Reads a file, and tells what came of it in a form that does not depend on the turns."""

    def __init__(self, path: Path) -> None:
        self.source = FileSource(path, filelogger, chunk=1000)
        self._segments: list[list[str]] = [[]]

    def part(self, size: int) -> bool:
        """Take the next lines that begin in so many bytes, decoded apart; return whether one
        could.
        """
        begin, decoder = self.source.status().bytes_read, self.source.lone_decoder
        assert decoder is not None
        part = decoded_part(self.source.path, begin, begin + size, decoder)
        records = None if part is None else self.source.take(part)
        self._note(records or ())
        return records is not None

    def to_the_end(self) -> tuple[list[list[str]], object]:
        """Read what is left; return it all."""
        more = True
        while more:
            records, more = self.source.read()
            self._note(records)
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


@settings(max_examples=examples(1), deadline=None)
@given(log=logs(), sizes=st.lists(st.integers(1, 1500), max_size=20))
def test_decoded_in_parts_a_log_says_the_same(log: bytes, sizes: list[int]) -> None:
    with TemporaryDirectory() as directory:
        path = Path(directory) / NAME
        path.write_bytes(log)
        reading = Reading(path)
        for size in sizes:
            reading.part(size)
        assert reading.to_the_end() == Reading(path).to_the_end()


def begun(directory: Path) -> Reading:
    """Return the reading of a log of 200 steps, most of which has been decoded apart."""
    path = directory / NAME
    path.write_text("".join(f"{line_of(at, 0)}\n" for at in range(1, 200)))
    reading = Reading(path)
    assert reading.part(9000)
    assert reading.source.status().bytes_read > 9000
    return reading


def test_what_is_appended_meanwhile_is_read(tmp_path: Path) -> None:
    reading = begun(tmp_path)
    with reading.source.path.open("a") as file:
        file.write(f"{line_of(500, 0)}\n{line_of(90, 0)}\n")
    assert reading.part(2000)
    found = reading.to_the_end()
    assert found == Reading(reading.source.path).to_the_end()
    assert len(found[0]) == 2, "the last row is of a new segment"


def test_a_file_that_is_rewritten_meanwhile_is_read_anew(tmp_path: Path) -> None:
    reading = begun(tmp_path)
    anew = [line_of(at, 0) for at in range(1000, 1300)]
    reading.source.path.write_text("".join(f"{line}\n" for line in anew))
    assert not reading.part(2000)
    segments, _ = reading.to_the_end()
    assert len(segments) == 2
    alone, _ = Reading(reading.source.path).to_the_end()
    assert len(segments[1]) == len(alone[0]) + 1, "and what says that it begins anew"


def test_what_depends_on_lines_before_is_not_decoded_apart(tmp_path: Path) -> None:
    path = tmp_path / NAME
    path.write_text(f"{line_of(1, 0)}\n")
    assert FileSource(path, tutorial).lone_decoder is None
    (tmp_path / f"{NAME}.1").write_text(f"{line_of(0, 0)}\n")
    assert not Reading(path).part(5), "it has an older part"

"""Rows of a dump: what an independent reader finds, however the file came to be."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

from file_writing import write_file
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from verl_tui.records import Sample, SampleFacts, Unreadable
from verl_tui.sources.folders.dumps import DumpFile
from verl_tui.text import safe

EACH = settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def row(**more: Any) -> dict[str, Any]:
    return {"input": "q", "output": "a", "score": 1.0, "step": 3, "uid": "g_0_0"} | more


ROWS = st.lists(
    st.builds(
        row,
        input=st.text(max_size=30),
        output=st.text(max_size=60)
        | st.sampled_from(['"uid": "pad"', "a\nb\n", "😀" * 9]),
        uid=st.sampled_from(["g_0_0", "g_1_0", "h_0_0", "pad_0_0", "pad"]),
        score=st.floats(allow_nan=False) | st.integers(-9, 9),
        acc=st.none() | st.booleans(),
    ),
    max_size=12,
)


def written(rows: list[dict[str, Any]], between: str = "\n") -> bytes:
    return "".join(
        json.dumps(one, ensure_ascii=False) + between for one in rows
    ).encode("utf-8", "surrogatepass")


def read(file: DumpFile) -> list[Sample | Unreadable]:
    file.index()
    return [file.row(i) for i in range(file.count_so_far)]


def plain(rows: list[dict[str, Any]]) -> list[tuple[str, str, float]]:
    """Return what an independent reader makes of rows."""
    return [
        (safe(r["input"]), safe(r["output"]), float(r["score"]))
        for r in rows
        if not r["uid"].startswith("pad")
    ]


def shown(samples: list[Sample | Unreadable]) -> list[tuple[str, str, float | None]]:
    assert all(isinstance(sample, Sample) for sample in samples), samples
    return [
        (sample.prompt, sample.response, sample.score)
        for sample in samples
        if isinstance(sample, Sample)
    ]


@EACH
@given(
    rows=ROWS,
    limit=st.integers(1, 200),
    blank=st.sampled_from(["\n", "\n\n", "\r\n", " \n \n"]),
)
def test_rows_are_those_of_the_file(tmp_path, rows, limit, blank):
    path = write_file(tmp_path / "3.jsonl", written(rows, blank))
    file = DumpFile(path, 3)
    file.index(limit)
    assert shown(read(file)) == plain(rows)
    assert file.generation == 0
    assert file.complete
    facts = file.facts(0, file.count_so_far)
    assert [fact.index for fact in facts] == list(range(len(facts)))
    kept = [one for one in rows if not one["uid"].startswith("pad")]
    assert [fact.length for fact in facts] == [len(one["output"]) for one in kept]
    assert [fact.group for fact in facts] == [one["uid"][0] for one in kept]
    assert [dict(fact.numbers) for fact in facts] == [
        {} if one["acc"] is None else {"acc": float(one["acc"])} for one in kept
    ]


@EACH
@given(rows=ROWS, cuts=st.lists(st.integers(0, 5000), max_size=6), last=st.booleans())
def test_a_file_that_grows_gives_the_same_rows(tmp_path, rows, cuts, last):
    path = write_file(tmp_path / "3.jsonl", b"")
    data = written(rows)
    data = data if last else data[:-1]
    file = DumpFile(path, 3)
    known: list[Sample | Unreadable] = []
    for start, stop in pairwise(
        sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    ):
        with path.open("ab") as out:
            out.write(data[start:stop])
        now = read(file)
        assert now[: len(known)] == known, "what was a row stays one"
        known = now
    assert shown(known) == plain(rows)
    assert file.generation == 0


def test_unreadable_rows_say_where_they_stand(tmp_path):
    path = tmp_path / "3.jsonl"
    path.write_bytes(
        written([row()])
        + b"\n"
        + written([row(uid="pad_1")])
        + b'{"a":\n{"a": 1}\n'
        + written([row()])
    )
    file = DumpFile(path, 3)
    first, broken, nothing, last = read(file)
    assert isinstance(first, Sample)
    assert isinstance(broken, Unreadable)
    assert isinstance(nothing, Unreadable)
    assert isinstance(last, Sample)
    assert (broken.line, nothing.line) == (4, 5)
    assert nothing.reason == "no prompt and response"
    assert broken.reason.startswith("not JSON")
    assert file.facts(1, 2) == [SampleFacts(1, None, None, 0, {}, validation=False)]


def test_lines_are_given_to_the_byte(tmp_path):
    path = tmp_path / "3.jsonl"
    first = b' {"input": "a", "output": NaN}\r'
    broken = b'{"input": \xff'
    last = written([row(output="\ud800")])[:-1]
    path.write_bytes(
        b"\n".join((first, b"", broken, written([row(uid="pad_1")])[:-1], last))
    )
    file = DumpFile(path, 3)
    read(file)
    assert list(file.lines([2, 0, 1])) == [last, first, None]

"""A directory of dumps: listed at once, figures within a budget, noticed when it changes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from log_reading import Followed, drain, read_run, values

from verl_tui.records import Dump, MetricRows, Record, Sample, Unreadable
from verl_tui.runs.samples import Place
from verl_tui.sources.folders import dumps
from verl_tui.sources.folders.dumps import DumpSource, plan

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a directory for dumps, whose name does not speak of tests."""
    path = tmp_path / "rollouts"
    path.mkdir()
    return path


def row(
    score: float = 1.0, group: int = 0, output: str = "so it is", **more: Any
) -> str:
    fields = {"input": f"q{group}", "output": output, "score": score, "uid": f"g{group}_0_0"}  # fmt: skip
    return json.dumps({**fields, **more}) + "\n"


def write(directory: Path, step: int, *rows: str) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{step}.jsonl"
    path.write_text("".join(rows))
    return path


def append(path: Path, *rows: str) -> None:
    with path.open("a") as file:
        file.write("".join(rows))


def reported(records: Sequence[Record]) -> list[tuple[int, float]]:
    """Return step and mean score of each figure."""
    return [
        (rows.steps[0], column[0])
        for rows in records
        if isinstance(rows, MetricRows)
        for key, column in zip(rows.keys, rows.columns, strict=True)
        if key.endswith("samples/score")
    ]


def dumped(records: Sequence[Record]) -> list[int]:
    return [r.step for r in records if isinstance(r, Dump) and not r.removed]


def test_all_steps_are_reported_at_once_and_the_newest_is_read_first(tmp_path):
    for step in (2, 10, 1):
        write(tmp_path / "rollouts", step, row(step / 10) * 2)
    source = DumpSource(tmp_path / "rollouts")
    records, _ = source.read()
    assert [type(record) for record in records[:3]] == [Dump] * 3
    assert dumped(records) == [10, 2, 1]
    records = (*records, *drain(source))
    assert reported(records) == [(10, 1.0), (2, 0.2), (1, 0.1)]
    assert not [record for record in records if isinstance(record, Sample)], (
        "samples stay on disk"
    )
    status = source.status()
    assert (status.records, status.unreadable, status.problem, status.note) == (6, 0, None, None)  # fmt: skip
    sizes = [path.stat().st_size for path in (tmp_path / "rollouts").iterdir()]
    assert status.bytes_read == status.size == sum(sizes)
    assert status.path.endswith("rollouts/*.jsonl")
    assert source.read() == ((), False)


@pytest.mark.parametrize(
    ("name", "validation"),
    [
        ("rollouts", False),
        ("latest", False),
        ("val_generations", True),
        ("my-eval", True),
    ],
)
def test_validations_are_reported_by_the_name_of_their_directory(
    tmp_path, name, validation
):
    write(tmp_path / name, 1, row())
    (dump, *_), _ = DumpSource(tmp_path / name).read()
    assert isinstance(dump, Dump)
    assert dump.validation is validation


def test_a_run_knows_its_dumps(tmp_path):
    (tmp_path / "train.log").write_text(
        "step:1 - critic/score/mean:0.5\nstep:2 - critic/score/mean:0.5\n"
    )
    groups = row(1.0, 0) + row(0.0, 0) + row(0.0, 1) * 2
    write(tmp_path / "rollouts", 2, groups, row(uid="pad_0"))
    write(tmp_path / "validation", 2, row(0.25))
    run = read_run(tmp_path)
    assert run.samples.places == [Place(2, validation=False), Place(2, validation=True)]
    assert values(run, "samples/count") == {2: 4.0}
    assert values(run, "samples/dead_groups") == {2: 0.5}
    assert values(run, "val_samples/score") == {2: 0.25}
    assert run.samples.size == 0
    assert run.last_record is not None


def test_what_comes_and_goes_is_noticed(home):
    first = write(home, 1, row(0.0))
    dumps = Followed(DumpSource(home))
    dumps.read()
    write(home, 2, row(1.0))
    dumps.read()
    assert values(dumps.run, "samples/score") == {1: 0.0, 2: 1.0}
    first.unlink()
    gone = Dump(1, str(first), validation=False, size=0, removed=True)
    assert dumps.read() == [gone]
    assert dumps.run.samples.places == [Place(2, validation=False)]
    assert values(dumps.run, "samples/score") == {1: 0.0, 2: 1.0}, "it stays"


def test_a_growing_dump_is_read_on(home):
    path = write(home, 1, row(0.0))
    source = DumpSource(home)
    drain(source)
    append(path, row(1.0)[:-20])
    assert reported(drain(source)) == [], "half a row is none"
    append(path, row(1.0)[-20:], row(1.0))
    records = drain(source)
    assert reported(records) == [(1, 2 / 3)]
    assert dumped(records) == [1]
    assert source.status().bytes_read == path.stat().st_size
    append(path, row(1.0).rstrip("\n"))
    assert reported(drain(source)) == [(1, 0.75)], "a whole row needs no end"
    append(path, "\n", row(0.0))
    assert reported(drain(source)) == [(1, 0.6)]


def test_rows_that_cannot_be_read_are_reported_with_their_file(home):
    write(home, 7, row(), '{"input": "q", \n', '{"a": 1}\n', row())
    source = DumpSource(home)
    found = [record for record in drain(source) if isinstance(record, Unreadable)]
    assert [(one.line, one.reason.split(":")[0]) for one in found] == [
        (2, "7.jsonl"),
        (3, "7.jsonl"),
    ]
    status = source.status()
    assert (status.unreadable, status.records) == (2, 2)


# -- the budget ------------------------------------------------------------------------------------


def test_what_the_budget_allows_is_read_whole():
    assert set(plan(dict.fromkeys(range(100), 10**6)).values()) == {dumps.WHOLE}
    assert plan({}) == {}
    assert plan({1: 10**12}) == {1: dumps.WHOLE}


def test_figures_of_a_part_say_so(home, monkeypatch):
    monkeypatch.setattr(dumps, "WHOLE", 5_000)
    monkeypatch.setattr(dumps, "BUDGET", 12_000)
    monkeypatch.setattr(dumps, "LEAST", 2_000)
    for step in range(1, 10):
        write(home, step, *(row(float(i % 4 < 2), i // 4, "x" * 50) for i in range(40)))
    size = (home / "9.jsonl").stat().st_size
    assert size < 5_000
    log = Followed(DumpSource(home))
    log.read()
    run, status = log.run, log.source.status()
    assert status.note == "read for figures: 0 whole, 5 in part, 4 not"
    assert status.bytes_read == status.size < 13_000
    assert list(values(run, "samples/score")) == [1, 3, 5, 7, 9]
    share = values(run, "samples/read_share")
    assert all(0.3 < one < 0.8 for one in share.values())
    assert set(values(run, "samples/dead_groups").values()) == {0.0}
    write(home, 10, row(0.5) * 10)
    log.read()
    assert values(run, "samples/score")[10] == 0.5, "what comes later is read whole"
    assert log.source.status().note == status.note

"""CSV: the log's own keys and every digit, one row a step, the newest value where segments
overlap.
"""

from __future__ import annotations

import csv
import io
import math

import pytest

from verl_tui.config import Config
from verl_tui.exporters.csv import export, write_csv
from verl_tui.monitor import load
from verl_tui.records import Batch, MetricRows, Restart, SourceStatus
from verl_tui.runs.run import Run

NOW = 1_790_000_000.0


def run_of(*records: MetricRows | Restart, name: str = "run") -> Run:
    run = Run(name)
    run.apply(Batch(name, SourceStatus("log", "test"), records), NOW)
    return run


def rows(keys: str, *lines: tuple[float, ...], first: int = 0) -> MetricRows:
    """Return rows of which each line begins with its step."""
    steps, *columns = zip(*lines, strict=True)
    places = range(first, first + len(lines))
    return MetricRows(tuple(keys.split()), steps, columns, places)


def text_of(run: Run) -> str:
    out = io.StringIO(newline="")
    write_csv(run, out)
    return out.getvalue()


def test_numbers_keep_every_digit():
    values = [0.1, 1 / 3, 1e-300, 123456789.123456789, 5e-324, 1.7976931348623157e308]
    values += [-0.0, 1e22, 2.0**53]
    run = run_of(rows("a", *enumerate(values)))
    read = [line["a"] for line in csv.DictReader(io.StringIO(text_of(run)))]
    assert [float(cell) for cell in read] == values
    assert math.copysign(1, float(read[6])) == -1


def test_steps_ascend_and_columns_stand_in_order_of_appearance():
    run = run_of(rows("z", (5, 1.0), (9, 2.0)), rows("a", (7, 3.0), (5, 4.0), first=2))
    assert text_of(run) == "step,z,a\n5,1,4\n7,,3\n9,2,\n"


def test_the_newest_holds_where_segments_overlap():
    run = run_of(
        rows("a b", (1, 0.1, 1.5), (2, 0.2, 2.5), (3, 0.3, 3.5)),
        Restart("truncated"),
        rows("a", (2, 20.5), (3, 30.5), (4, 40.5)),
    )
    assert text_of(run) == "step,a,b\n1,0.1,1.5\n2,20.5,2.5\n3,30.5,3.5\n4,40.5,\n"


def test_a_file_logger_is_exported_to_the_letter(tmp_path):
    log = tmp_path / "exp.jsonl"
    lines = [
        '{"step":1,"data":{"critic/score/mean":0.123456789012345678,"actor/lr":1e-06,"perf/total_num_tokens":65536}}',
        '{"step":2,"data":{"critic/score/mean":null,"actor/lr":1e-06,"perf/total_num_tokens":65000}}',
    ]
    log.write_text("\n".join(lines) + "\n", encoding="utf-8")
    (run,) = load([str(log)], Config(), NOW).runs.values()
    assert text_of(run) == (
        "step,critic/score/mean,actor/lr,perf/total_num_tokens\n1,0.12345678901234568,1e-06,65536\n2,nan,1e-06,65000\n"
    )


def test_one_run_goes_into_a_file_or_a_directory(tmp_path):
    run = run_of(rows("a", (1, 2.5)))
    (tmp_path / "there").mkdir()
    assert export([run], str(tmp_path / "out.csv"))[0] == [tmp_path / "out.csv"]
    for place, name in (("there", "there/run.csv"), ("new/", "new/run.csv")):
        assert export([run], f"{tmp_path}/{place}")[0] == [tmp_path / name]
    for path in tmp_path.rglob("*.csv"):
        assert path.read_bytes() == b"step,a\n1,2.5\n"


def test_a_file_is_replaced_as_a_whole_or_not_at_all(tmp_path, monkeypatch):
    target = tmp_path / "out.csv"
    target.write_text("old\n", encoding="utf-8")

    def fail(run: Run, file: io.TextIOBase) -> None:
        file.write("step,a\n")
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("verl_tui.exporters.csv.write_csv", fail)
        with pytest.raises(OSError, match="No space left"):
            export([run_of(rows("a", (1, 2.5)))], str(target))
    assert target.read_text(encoding="utf-8") == "old\n"
    assert list(tmp_path.iterdir()) == [target]
    export([run_of(rows("a", (1, 2.5)))], str(target))
    assert target.read_text(encoding="utf-8") == "step,a\n1,2.5\n"


def test_names_of_ours_are_written_through_no_link(tmp_path):
    theirs = tmp_path / "theirs.txt"
    folder = tmp_path / "out"
    theirs.write_text("theirs")
    folder.mkdir()
    (folder / "run.csv").symlink_to(theirs)
    run = run_of(rows("a", (1, 2.5)))
    (path,) = export([run], f"{folder}/")[0]
    assert theirs.read_text() == "theirs"
    assert not path.is_symlink()
    assert path.read_text() == "step,a\n1,2.5\n"

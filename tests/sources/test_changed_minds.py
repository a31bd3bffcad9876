"""A file of which only the first bytes were there may turn out to be of another format: it is read
once more as what it is.
"""

from __future__ import annotations

import json

import pytest
from file_writing import write_file
from log_reading import NOW, Watch, values

from verl_tui.records import Reread

FIRST = "INFO trainer starts\nstep:1 - actor/pg_loss:0.5 - actor/lr:1 - a/b:1\n"
ROWS = "".join(json.dumps({"step": n, "data": {"a": n}}) + "\n" for n in range(1, 5))


def reread(watch: Watch) -> list[Reread]:
    """Look once; return what is read once more."""
    return [one for one in watch.look() if isinstance(one, Reread)]


def formats(watch: Watch) -> set[str]:
    sources = (one for run in watch.runs.values() for one in run.sources.values())
    return {one.status.format for one in sources} - {"checkpoints"}


@pytest.mark.parametrize("named", [False, True], ids=["found", "named"])
def test_a_file_that_says_only_later_what_it_is(tmp_path, named):
    log = write_file(tmp_path / "train.log", FIRST)
    watch = Watch(log if named else tmp_path)
    assert reread(watch) == []
    assert formats(watch) == {"console"}
    (name,) = watch.runs
    revision = watch.runs[name].revision
    log.write_text(FIRST + ROWS)
    assert reread(watch) == [Reread(name, left=True)]
    assert formats(watch) == {"verl file logger"}
    run = watch.runs[name]
    assert list(run.keys) == ["a"]
    assert values(run, "a") == {1: 1, 2: 2, 3: 3, 4: 4}
    assert run.revision > revision, "else a screen would go on showing what it drew"
    assert reread(watch) == []


def test_what_is_no_log_after_all_is_no_run(tmp_path):
    table = write_file(tmp_path / "progress.csv", "text,loss\na,0.5\n")
    watch = Watch(tmp_path)
    watch.look()
    watch.monitor.judge(NOW)
    assert list(watch.runs) == [tmp_path.name]
    table.write_text("text,loss\na,0.5\nb,0.5\nc,0.25\n")
    assert reread(watch) == [Reread(tmp_path.name, left=False)]
    assert watch.runs == watch.monitor.verdicts == {}


def test_other_runs_and_other_files_stay(tmp_path):
    for name in ("one", "two"):
        write_file(tmp_path / name / "metrics.jsonl", ROWS)
    (tmp_path / "one" / "train.log").write_text("INFO trainer\n")
    watch = Watch(tmp_path)
    watch.look()
    other = watch.runs["two"]
    (tmp_path / "one" / "train.log").write_text(FIRST)
    assert reread(watch) == []
    (tmp_path / "one" / "train.log").write_text(
        FIRST + '{"current_steps":2,"total_steps":9}\n'
    )
    watch.look()
    assert list(watch.runs) == ["one", "two"]
    assert watch.runs["two"] is other
    assert values(watch.runs["one"], "a") == {1: 1, 2: 2, 3: 3, 4: 4}


@pytest.mark.parametrize("named", [False, True], ids=["found", "named"])
def test_zeros_in_place_of_a_log_leave_what_was_read(tmp_path, named):
    log = write_file(tmp_path / "metrics.jsonl", ROWS)
    watch = Watch(log if named else tmp_path)
    watch.look()
    # as after a power failure: the same file, its content lost
    with log.open("r+b") as file:
        file.write(bytes(5000))
    assert reread(watch) == []
    (run,) = watch.runs.values()
    assert values(run, "a") == {1: 1, 2: 2, 3: 3, 4: 4}

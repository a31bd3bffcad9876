"""From paths to runs, in the layouts that trainings leave behind."""

from __future__ import annotations

import bz2
import errno
import lzma
import os
from pathlib import Path

import pytest
from command_line import placed
from log_reading import Watch, read_run
from ordinary_rights import ordinary_rights

from verl_tui.sources.discovery.finder import Finder
from verl_tui.sources.discovery.passed_over import PassedOver, sentences
from verl_tui.sources.files import PACKED, WIDE
from verl_tui.sources.folders.checkpoint_folders import TRACKER
from verl_tui.sources.formats.console import reader as console

CONSOLE = "(TaskRunner pid=1) step:1 - a:1\n"
METRICS = '{"step":1,"data":{"a":1}}\n'
TUTORIAL = '{"scope":"ppo","step":1,"policy_loss":-0.1}\n'


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("model.bin", bytes(range(256)) * 10, "is a binary file, not a log"),
        (
            "train.ipynb",
            b'{"cells": [{"outputs": [{"text": ["step:1 - a/b:1\\n"]}]}]}',
            "is a notebook, not a log: save what was printed as text",
        ),
        (
            "train.log.xz",
            lzma.compress(CONSOLE.encode()),
            "is compressed: unpack it to have it read",
        ),
        (
            "train.log",
            CONSOLE.encode("utf-16"),
            "is UTF-16, as PowerShell writes it: convert it to UTF-8 to have it read",
        ),
        (
            "progress.csv",
            "step,reward\n1,0.5\n2,0.5\n".encode("utf-16"),
            "is UTF-16, as PowerShell writes it: convert it to UTF-8 to have it read",
        ),
    ],
)
def test_files_that_are_no_logs_say_so(tmp_path, name, data, words):
    (tmp_path / name).write_bytes(data)
    discovery = Finder([str(tmp_path / name)]).scan()
    assert discovery.problems == (f"{tmp_path / name}: {words}",)
    assert discovery.runs == ()


def test_logs_that_must_be_unpacked_or_converted_are_passed_over_aloud(tmp_path):
    (tmp_path / "train.log").write_text(CONSOLE)
    packed = ("old.log.xz", "train.log.1.bz2")
    (tmp_path / packed[0]).write_bytes(lzma.compress(CONSOLE.encode()))
    (tmp_path / packed[1]).write_bytes(bz2.compress(CONSOLE.encode()))
    (tmp_path / "windows.log").write_bytes(CONSOLE.encode("utf-16"))
    (tmp_path / "weights.xz").write_bytes(lzma.compress(b"no log"))
    passed = Finder([str(tmp_path)]).scan().passed
    assert {Path(one.path).name: one.reason for one in passed} == {
        packed[0]: PACKED,
        packed[1]: PACKED,
        "windows.log": WIDE,
    }


def test_what_is_missing_and_what_is_waited_for(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "blank.log").touch()
    discovery = Finder(
        [str(tmp_path / name) for name in ("gone", "empty", "blank.log", "later_*")]
    ).scan()
    assert discovery.problems == (f"{tmp_path}/gone: no such file or directory",)
    assert [sentence.split(": ", 1)[1] for sentence in discovery.waiting] == [
        "no log in this directory yet: looking for *.jsonl, *.log, *.out, *.txt, *.csv",
        "empty so far",
        "nothing matches yet",
    ]


def test_a_directory_without_a_log_tells_what_was_looked_at(tmp_path):
    (tmp_path / "config.yaml").write_text("a: 1\n")
    (tmp_path / "train.log").touch()
    for n in range(5):
        (tmp_path / f"notes{n}.txt").write_text("nothing to see\n")
    discovery = Finder([str(tmp_path)]).scan()
    assert discovery.runs == ()
    assert discovery.waiting == (
        f"{tmp_path}: no log in this directory yet: train.log: empty so far; "
        "notes0.txt, notes1.txt, notes2.txt and 2 more: of no known format",
    )


def test_a_directory_that_may_not_be_read(tmp_path):
    tmp_path.chmod(0)
    try:
        with ordinary_rights():
            assert Finder([str(tmp_path)]).scan().problems == (
                f"{tmp_path}: permission denied",
            )
    finally:
        tmp_path.chmod(0o700)


@pytest.fixture
def close(monkeypatch):
    """Have the system refuse paths: root may read everything, so permissions would not do."""
    closed = set()

    def refusing(real, *, below=False):
        def call(path, *args, **options):
            tried = Path(path) if isinstance(path, str | Path) else Path()
            if closed & {*(tried.parents if below else (tried,))}:
                raise PermissionError(errno.EACCES, "Permission denied", str(path))
            return real(path, *args, **options)

        return call

    monkeypatch.setattr(Path, "open", refusing(Path.open))
    monkeypatch.setattr(os, "scandir", refusing(os.scandir))
    monkeypatch.setattr(Path, "stat", refusing(Path.stat, below=True))
    monkeypatch.setattr(os, "stat", refusing(os.stat, below=True))
    return closed.add


def test_logs_and_directories_that_may_not_be_read_are_reported(tree, close):
    top = tree(
        {"good/train.log": CONSOLE, "bad/train.log": CONSOLE, "shut/train.log": CONSOLE}
    )
    finder = Finder([str(top)])
    close(top / "bad/train.log")
    close(top / "shut")
    discovery = finder.scan()
    assert [run.name for run in discovery.runs] == [top.name]
    assert discovery.passed == (
        PassedOver(f"{top}/bad/train.log", "permission denied"),
        PassedOver(f"{top}/shut", "permission denied"),
    )
    assert list(sentences(discovery.passed)) == [
        f"{top}/bad/train.log, {top}/shut: permission denied"
    ]
    assert (discovery.problems, discovery.waiting) == ((), ())


def test_a_named_log_that_may_not_be_read_is_reported_once(tree, close):
    top = tree({"bad.log": CONSOLE, "good.log": CONSOLE})
    close(top / "bad.log")
    discovery = Finder([f"{top}/bad.log", f"{top}/good.log"]).scan()
    assert discovery.problems == (f"{top}/bad.log: permission denied",)
    assert discovery.passed == ()


def test_whatever_goes_wrong_with_a_file_costs_that_file_alone(tree, monkeypatch):
    top = tree({"a/train.log": CONSOLE, "b/train.log": CONSOLE})
    real = console.matches

    def failing(path, head):
        if path.parent.name == "a":
            raise OverflowError("too large")
        return real(path, head)

    monkeypatch.setattr(console, "matches", failing)
    discovery = Finder([str(top), str(top / "a/train.log")]).scan()
    assert [file.path for run in discovery.runs for file in run.files] == [
        top / "b/train.log"
    ]
    (said,) = map(placed, discovery.problems)
    why = "could not be examined: OverflowError in PLACE: too large"
    assert said == f"{top}/a/train.log: {why}"


def test_a_log_that_says_nothing_yet_is_recognised_when_it_does(tree):
    top = tree({"train.log": "hello\n"})
    finder = Finder([str(top)])
    assert finder.scan().runs == ()
    with (top / "train.log").open("a") as file:
        file.write(CONSOLE)
    assert [run.name for run in finder.scan().runs] == [top.name]


def test_a_file_stays_with_the_run_it_was_found_to_be_of(tree):
    top = tree({"a/exp.jsonl": METRICS, "b/verl_logs.jsonl": TUTORIAL})
    watch = Watch(top)
    watch.look()
    tree({"train.log": CONSOLE})
    assert len(Finder([str(top)]).scan().runs) == 1, (
        "with a log above them all it is one run"
    )
    watch.look()
    found = {
        name: {Path(path).name for path in run.paths}
        for name, run in watch.runs.items()
    }
    assert found["a"] >= {"exp.jsonl", "train.log"}
    assert found["b"] >= {"verl_logs.jsonl"}


PIPES = [
    "a.log",
    "b.jsonl",
    "c.log.gz",
    "3.jsonl",
    "config.yaml",
    "trainer_state.json",
    "events.out.tfevents.1",
    "run-x.wandb",
    "job.out",
    "job.err",
]


def test_what_is_no_file_is_not_read(tree):
    """Opening a pipe waits for who writes into it, and what is read from it another misses."""
    top = tree({"run/train.log": CONSOLE})
    for name in (*PIPES, TRACKER):
        os.mkfifo(top / "run" / name)
    assert read_run(top).step == 1
    for name in PIPES[:3]:
        (problem,) = Finder([str(top / "run" / name)]).scan().problems
        assert problem.endswith("not a file; `verl-tui -` reads pipes")

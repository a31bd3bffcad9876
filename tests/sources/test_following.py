"""Files as they grow, shrink, vanish and come back."""

from __future__ import annotations

import errno
import json
import os
import threading
import time
from typing import TYPE_CHECKING

import pytest
from command_line import placed
from log_reading import NOW, Followed, Watch, follow_feed, notes, values

from verl_tui.config import Config
from verl_tui.monitor import Monitor
from verl_tui.records import Restart
from verl_tui.sources import files
from verl_tui.sources.discovery.finder import Discovery
from verl_tui.sources.feed import Feed
from verl_tui.sources.formats import filelogger, lines
from verl_tui.sources.source import FileSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


def line(step: int, value: float = 0.5) -> str:
    return (
        json.dumps({"step": step, "data": {"a": value}}, separators=(",", ":")) + "\n"
    )


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


class Log(Followed):
    """A file logger's log that is followed."""

    def __init__(self, path: Path) -> None:
        super().__init__(FileSource(path, filelogger))
        self.path = path

    def values(self) -> dict[int, float]:
        return values(self.run, "a")


@pytest.fixture
def log(tmp_path):
    (tmp_path / "log.jsonl").touch()
    return Log(tmp_path / "log.jsonl")


def test_only_appended_bytes_are_read(log, monkeypatch):
    append(log.path, line(1) + line(2))
    log.read()
    asked = []
    real = os.pread
    monkeypatch.setattr(
        files.os, "pread", lambda fd, n, at: asked.append((n, at)) or real(fd, n, at)
    )
    append(log.path, line(3))
    log.read()
    assert log.values() == {1: 0.5, 2: 0.5, 3: 0.5}
    assert max(at for n, at in asked if n == files.CHUNK) == len(line(1) * 2)
    asked.clear()
    assert log.read() == []
    assert asked == [], "nothing new costs a stat and nothing else"


def test_a_last_line_without_an_end_is_taken_when_nobody_will_look_again(log):
    append(log.path, line(1) + line(2).rstrip())
    log.read()
    (rows,) = log.source.finish()
    assert list(rows.steps) == [2]
    append(log.path, "\n" + line(3))
    assert [list(r.steps) for r in log.read()] == [[3]], "it is not read twice"


def test_truncated_on_resume_keeps_the_old_points(log):
    """Verl opens its log with `wb`, also when it resumes."""
    append(log.path, "".join(line(n) for n in range(1, 8)))
    log.read()
    log.path.write_text(line(5, 0.9) + line(6, 0.9))
    first = log.read()[0]
    assert first == Restart("file was truncated")
    assert log.values() == {1: 0.5, 2: 0.5, 3: 0.5, 4: 0.5, 5: 0.9, 6: 0.9, 7: 0.5}
    assert [(mark.step, mark.reason) for mark in log.run.restarts] == [
        (5, "file was truncated")
    ]
    assert log.run.step == 6


def test_rewritten_longer_between_two_looks(log):
    append(log.path, line(1))
    log.read()
    log.path.write_text(line(5, 0.9) + line(6, 0.9) + line(7, 0.9))
    assert log.read()[0] == Restart("file was rewritten")
    assert log.values() == {1: 0.5, 5: 0.9, 6: 0.9, 7: 0.9}


def test_replaced_by_a_longer_copy_of_itself(log, tmp_path):
    append(log.path, line(1) + line(2))
    log.read()
    copy = tmp_path / "copy"
    copy.write_text(log.path.read_text() + line(3))
    copy.rename(log.path)
    assert [list(r.steps) for r in log.read()] == [[3]]
    assert log.run.restarts == []


@pytest.mark.parametrize("emptied", [False, True])
@pytest.mark.parametrize("named", [False, True])
def test_a_log_that_is_moved_is_read_where_its_writer_goes_on(tmp_path, named, emptied):
    path = tmp_path / "grpo.jsonl"
    append(path, line(1) + line(2))
    watch = Watch(path if named else tmp_path)
    watch.look()
    moved = path.with_name("grpo.jsonl.2")
    with path.open("ab", 0) as writer:
        if emptied:
            os.truncate(path, 0)
        path.rename(moved)
        path.with_name("grpo.jsonl.3").write_text("another's\n")
        watch.look(search=False)
        writer.write((line(3) + line(4)).encode())
        found = watch.look()[0]
        (run,) = watch.runs.values()
        assert (run.step, len(run.restarts), found.problems) == (4, emptied, ())
        assert notes(run) == "moved while it was written: read as grpo.jsonl.2"
        writer.write(line(5).encode())
        watch.look()
        assert run.step == 5
    append(path, line(6))
    watch.look()
    watch.look()
    assert (run.step, notes(run)) == (6, "")
    moved.unlink()
    path.unlink()
    watch.look()
    assert run.statuses[0].problem == "no such file or directory"


def test_a_line_that_never_ends_is_given_up(log, monkeypatch):
    monkeypatch.setattr(lines, "LONGEST_LINE", 5000)
    append(log.path, line(1))
    for _ in range(20):
        append(log.path, "x" * 1000)
        log.read()
    append(log.path, "\n" + line(2))
    log.read()
    assert log.values() == {1: 0.5, 2: 0.5}
    assert log.run.unreadable == 1


def test_steps_that_go_back_in_one_file_are_a_restart(log):
    append(log.path, "".join(line(n) for n in (1, 2, 3, 4, 3, 4, 5)))
    log.read()
    assert [mark.step for mark in log.run.restarts] == [3]


# -- everything behind a path, in a thread ---------------------------------------------------------


def test_what_a_search_raises_is_reported_and_ends_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("verl_tui.sources.feed.POLL", 0.01)
    append(tmp_path / "log.jsonl", line(1))
    feed = Feed([str(tmp_path)])
    stop = threading.Event()
    ticks = iter(range(0, 10**6, 5))
    news_seen, real = [], feed.scan

    def failing():
        if news_seen:
            raise OverflowError("int too large")
        return real()

    def deliver(news):
        news_seen.append(news)
        if isinstance(news, Discovery) and news.problems:
            stop.set()

    monkeypatch.setattr(feed, "scan", failing)
    follow_feed(feed, stop, deliver, lambda: float(next(ticks)))
    (said,) = map(placed, news_seen[-1].problems)
    assert said.endswith(" logs failed: OverflowError in PLACE: int too large")
    assert news_seen[-1].runs == news_seen[0].runs


def unreadable(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Have every reading of new bytes fail, while what is known can be compared."""
    real = os.pread

    def fails(descriptor: int, count: int, at: int) -> bytes:
        if count == files.CHUNK:
            raise OSError(number, os.strerror(number))
        return real(descriptor, count, at)

    monkeypatch.setattr(files.os, "pread", fails)


def test_a_restart_is_reported_though_reading_failed_at_that_moment(log, monkeypatch):
    append(log.path, line(1) + line(2))
    log.read()
    other = log.path.with_name("new")
    append(other, line(1, 0.75))
    other.replace(log.path)
    with monkeypatch.context() as broken:
        unreadable(broken, errno.ESTALE)
        assert log.read() == [Restart("file was replaced")]
    assert not [record for record in log.read() if isinstance(record, Restart)]
    assert log.values()[1] == 0.75


class FollowedLive:
    """A directory that is followed without notices, on a clock of its own."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = NOW
        self.looks = 0
        self.monitor = Monitor(Config())
        self._feed = Feed([str(path)])
        self._stop = threading.Event()

        def no_notices(*_: object, **__: object) -> Iterator[object]:
            yield from ()
            raise OSError("inotify's limit is reached")

        monkeypatch.setattr("watchfiles.watch", no_notices)
        monkeypatch.setattr("verl_tui.sources.feed.POLL", 0.01)

    def follow(
        self, *stages: tuple[Callable[[], object], Callable[[], object]]
    ) -> None:
        """Follow; do something as soon as a condition holds, stage by stage, then end."""
        waiting, end = list(stages), time.monotonic() + 20

        def clock() -> float:
            self.looks += 1
            while waiting and waiting[0][0]():
                waiting.pop(0)[1]()
            if not waiting or time.monotonic() > end:
                self._stop.set()
            return self.now

        follow_feed(
            self._feed,
            self._stop,
            lambda news: self.monitor.apply(news, self.now),
            clock,
        )
        assert not waiting, "what was waited for never came"


def nothing() -> None:
    """Do nothing more."""


def test_a_last_line_that_may_go_on_is_taken_once_its_log_is_quiet(
    tmp_path, monkeypatch
):
    path = tmp_path / "train.log"
    live, looks = FollowedLive(tmp_path, monkeypatch), []

    def steps() -> list[int | None]:
        return [run.step for run in live.monitor.runs.values()]

    def time_goes_on() -> None:
        assert steps() == [None], "the terminal may have cut the line"
        live.now += 10.1

    append(path, "(T pid=1) step:3 - critic/score/mean:0.25\n")
    os.utime(path, (NOW, NOW))
    live.follow(
        (lambda: live.monitor.loaded() == 1, lambda: looks.append(live.looks)),
        (lambda: live.looks > looks[0] + 9, time_goes_on),
        (lambda: steps() == [3], nothing),
    )


def test_nothing_counts_as_loaded_before_every_file_has_been_looked_at(tmp_path):
    (tmp_path / "train.log").write_text("step:1 - a:1.0\n")
    (tmp_path / "exp.jsonl").write_text(line(1) * 10_000)
    monitor, shares = Monitor(Config()), []
    stop = threading.Event()

    def deliver(news):
        monitor.apply(news, 0.0)
        shares.append(monitor.loaded())
        if isinstance(news, Discovery) and news.read:
            stop.set()

    follow_feed(Feed([str(tmp_path)]), stop, deliver, lambda: 0.0)
    assert len(shares) > 3
    assert shares[-1] == 1.0
    assert max(shares[:-1]) < 1.0


def test_whatever_a_source_raises_costs_that_source_alone(tmp_path, monkeypatch):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        append(tmp_path / name / "m.jsonl", line(1) + line(2))
    watch = Watch(tmp_path)
    real = FileSource.read

    def failing(self):
        if "a" in self.status().path.split("/")[-2]:
            raise OverflowError("int too large")
        return real(self)

    monkeypatch.setattr(FileSource, "read", failing)
    for _ in range(2):
        watch.look(finish=True)
    problems = {
        name: [
            placed(s.status.problem) for s in run.sources.values() if s.status.problem
        ]
        for name, run in watch.runs.items()
    }
    assert problems == {
        "a": ["cannot be read any further: OverflowError in PLACE: int too large"],
        "b": [],
    }
    assert watch.runs["b"].step == 2
    watch.monitor.apply(Discovery((), (), (), read=True), NOW)
    assert watch.monitor.loaded() == 1.0

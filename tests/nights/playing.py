"""Plays a night: its files are written as they were, by a clock of its own, and looked at again and
again as `watch --events` looks; what a supervisor does is noted.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nights.supervisor import SECONDS, Answer, Deed, Question, Supervisor

from verl_tui.config import Config
from verl_tui.explain import explain
from verl_tui.guard import Events, bounded
from verl_tui.monitor import Monitor
from verl_tui.records import Batch, Writer
from verl_tui.replay import Recording
from verl_tui.sources.feed import Feed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from verl_tui.sources.discovery.finder import Discovery

BEGAN = 1_700_000_000.0
"""When all nights begin; whatever was written for longer than a year after was written right now."""
_LOOK = 15.0
"""Seconds between two looks while nothing is written."""
_AFTER = 2400.0
"""Seconds for which a run that says no more is watched."""
_YEAR = 365 * 86_400.0


def nothing() -> None:
    """Write nothing."""


class Scene(NamedTuple):
    """A moment of a night."""

    time: float
    write: Callable[[], object] = nothing
    """Writes what was written at that moment."""
    alive: bool | None = True
    """Whether the training's process lives; None where it is on another host."""
    begins: bool = False
    """True where the fault begins: no stop before is right."""
    shows: bool = False
    """True where its first evidence is there."""


@dataclass
class Log:
    """What happened in a night."""

    start: float
    deeds: list[tuple[float, Deed]] = field(default_factory=list)
    began: float | None = None
    """When the fault began."""
    shown: float | None = None
    """When its first evidence was there."""
    lines: list[str] = field(default_factory=list)
    """The events."""

    def answer(
        self, named: tuple[str, ...], what: str | None = None
    ) -> tuple[float, Deed] | None:
        """Return the first deed, or the first of a kind, that names the fault, once it has begun."""
        for at, deed in self.deeds:
            known = self.began is not None and at >= self.began and deed.why in named
            if known and what in (None, deed.what):
                return at, deed
        return None

    @property
    def stops(self) -> list[tuple[float, Deed]]:
        """The stops."""
        return [(at, deed) for at, deed in self.deeds if deed.what == "stop"]


class Watch:
    """What `watch --events` does, look by look.

    Args:
        news: Yields what there is to be read up to a moment.
    """

    def __init__(self, news: Callable[[float], Iterator[Batch | Discovery]]) -> None:
        self._news = news
        self._events = Events(Monitor(Config()))
        self._statuses: dict[str, Batch] = {}
        self._alive: bool | None = True

    @property
    def done(self) -> bool:
        """True if it would end."""
        return self._events.done

    def look(self, now: float, *, alive: bool | None) -> Iterator[str]:
        """Yield the lines that are written at a moment."""
        monitor = self._events.monitor
        for one in self._news(now):
            held = self._held(one, alive=alive) if isinstance(one, Batch) else one
            monitor.apply(held, now)
        if alive is not self._alive:
            self._alive = alive
            for batch in list(self._statuses.values()):
                monitor.apply(self._held(batch._replace(records=()), alive=alive), now)
        for event in self._events.tick(now):
            yield json.dumps(bounded(event))

    def ask(self, question: Question, since: float, now: float) -> Answer | None:
        """Answer as the commands do that are to be asked, once what is awaited is there."""
        monitor = self._events.monitor
        run = monitor.runs[question.run]
        if question.step is not None and (run.step or 0) < question.step:
            return None
        if question.step is None and now - since < SECONDS:
            return None
        verdict = monitor.verdicts[run.name]
        why = explain(run, verdict, monitor.guide, now)
        explained = why["finding"]["id"] if why["finding"] and why["chain"] else None
        series = run.present(question.key)
        value = series.values[-1] if series is not None else math.nan
        return Answer(
            tuple(one.id for one in verdict.primary),
            value if math.isfinite(value) else None,
            why["state"],
            explained,
        )

    def _held(self, batch: Batch, *, alive: bool | None) -> Batch:
        """Return a batch as the process that writes the file is seen to live, or to be gone."""
        self._statuses[batch.status.path] = batch
        known = (
            None if alive is None else Writer(4711, "python train.py", gone=not alive)
        )
        return batch._replace(status=batch.status._replace(writer=known))


def of_files(folder: Path) -> Callable[[float], Iterator[Batch | Discovery]]:
    """Return what reads the files of a folder as they grow."""
    feed = Feed([str(folder)])

    def news(_: float) -> Iterator[Batch | Discovery]:
        found = feed.scan()
        yield replace(found, read=False)
        yield from feed.read()
        yield replace(found, read=True)

    return news


def of_recording(
    recording: Recording,
) -> Callable[[float], Iterator[Batch | Discovery]]:
    """Return what replays a training, from its beginning."""
    recording.rewind()

    def news(now: float) -> Iterator[Batch | Discovery]:
        yield replace(recording.discovery, read=False)
        for batch in recording.take(now):
            yield batch._replace(live=True)
        yield replace(recording.discovery, read=True)

    return news


class Fault(NamedTuple):
    """The steps at which a fault begins and shows; 0: after the last step, at the end."""

    onset: int = 0
    by: int = 0


def played(
    play: Callable[[Path], Iterator[Scene]] | Path,
    folder: Path,
    fault: Fault | None = None,
) -> Log:
    """Play a night until it is over, or its run is stopped.

    Args:
        play: Writes its files, or the folder of a training to be replayed.
        folder: Where files are written; it is made.
        fault: That of a training that is replayed.
    """
    if isinstance(play, Path):
        recording = Recording.read([str(play)])
        player = Player(lambda: Watch(of_recording(recording)), recording.start)
        player.play(_scenes(recording, fault), None)
    else:
        folder.mkdir()
        player = Player(lambda: Watch(of_files(folder)), BEGAN)
        player.play(play(folder), folder)
    return player.log


def _scenes(recording: Recording, fault: Fault | None) -> Iterator[Scene]:
    """Yield the moments of a training that is replayed."""
    (run,) = recording.runs.values()
    begins, shows = run.moments[-1], recording.end
    if fault is not None and fault.by:
        begins, shows = (run.when(step) or recording.end for step in fault[:2])
    for moment in sorted({*run.moments, begins, shows, recording.end}):
        ill = fault is not None
        yield Scene(
            moment, begins=ill and moment == begins, shows=ill and moment == shows
        )
    yield Scene(recording.end + 1.0, alive=False)


class Player:
    """Lets a night go by; where the watching has ended with the run, it begins anew with the run.

    Args:
        begin: Begins to watch.
        start: When the night begins.
    """

    def __init__(self, begin: Callable[[], Watch], start: float) -> None:
        self.log = Log(start)
        self._begin = begin
        self._watch = begin()
        self._supervisor = Supervisor()
        self._asked: list[tuple[float, Question]] = []
        """Questions that are not answered yet, each with when it was asked."""
        self._now = start
        self._alive: bool | None = True

    @property
    def _busy(self) -> bool:
        return bool(self._asked) or not self._watch.done

    def play(self, scenes: Iterator[Scene], folder: Path | None) -> None:
        """Play until the run is stopped, or nothing is watched any more."""
        for scene in scenes:
            self._pass(scene.time)
            if self.log.stops:
                return
            self._show(scene, folder)
        until = self._now + _AFTER
        while self._now < until and self._busy and not self.log.stops:
            self._pass(self._now + 2 * _LOOK)

    def _pass(self, time: float) -> None:
        """Look on until a moment."""
        while time - self._now > _LOOK and not self.log.stops:
            self._now += _LOOK
            self._look()

    def _show(self, scene: Scene, folder: Path | None) -> None:
        if self._watch.done and scene.alive:
            self._watch = self._begin()
        self._now, self._alive = scene.time, scene.alive
        scene.write()
        if folder is not None:
            _date(folder, self._now)
        log = self.log
        log.began = self._now if scene.begins else log.began
        log.shown = self._now if scene.shows else log.shown
        self._look()

    def _look(self) -> None:
        log, now = self.log, self._now
        lines = () if self._watch.done else self._watch.look(now, alive=self._alive)
        for line in lines:
            log.lines.append(line)
            for one in self._supervisor.read(line):
                if isinstance(one, Question):
                    self._asked.append((now, one))
                else:
                    log.deeds.append((now, one))
        for since, question in list(self._asked):
            answer = self._watch.ask(question, since, now)
            if answer is not None:
                self._asked.remove((since, question))
                deeds = self._supervisor.answered(question, answer)
                log.deeds += [(now, deed) for deed in deeds]


def _date(folder: Path, now: float) -> None:
    """Date what was just written to the night's clock."""
    for path in (folder, *folder.rglob("*")):
        if path.stat().st_mtime > BEGAN + _YEAR:
            os.utime(path, (now, now))

"""Logs of every format that grows, written in pieces as a seed says, and every point in them."""

from __future__ import annotations

import json
import shutil
import struct
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from log_writing import (
    console_log,
    csv_log,
    event_log,
    file_log,
    llama_factory_log,
    swift_log,
    tutorial_log,
    values_of,
    wandb_log,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path
    from random import Random

Points = dict[tuple[str, int], float]
"""Values by key and step."""
_SCALES = (5, 30, 200, 1500)
"""Bytes of a piece on average: those of a log are alike."""
_COPIED = 0.01
"""Share of the pieces before which a log shipper puts a copy in the place of the file."""
_SAMPLES = 4
"""Samples of a dump."""


class Part(NamedTuple):
    """What is written into a file from its first byte on."""

    name: str
    """Of the file, in the log's folder."""
    data: bytes
    points: Points
    clears: bool = False
    """Whether the file is emptied first, as verl does when it resumes."""


class Log:
    """A log in a folder of its own; `append` writes its next piece.

    Args:
        folder: Where to write.
        parts: All that it is to hold.
        random: Chooses the pieces.
        counted: Whether readers say each point as often as it is written.
    """

    def __init__(
        self, folder: Path, parts: Sequence[Part], random: Random, *, counted: bool
    ) -> None:
        self.folder, self.counted = folder, counted
        self.written: Counter[tuple[str, int]] = Counter()
        """How often each point has been written."""
        self.points: Points = {}
        """The values that hold in the end."""
        self._parts = list(parts)
        self._at = 0
        """Bytes of the first part that have been written."""
        self._random = random
        self._scale = random.choice(_SCALES)
        folder.mkdir(parents=True)

    @property
    def over(self) -> bool:
        """True if all has been written."""
        return not self._parts

    @property
    def clears(self) -> bool:
        """True if the next piece takes away what has been written before."""
        return bool(self._parts) and not self._at and self._parts[0].clears

    def append(self) -> None:
        """Write a piece."""
        part = self._parts[0]
        path = self.folder / part.name
        path.parent.mkdir(exist_ok=True)
        if self.clears:
            path.write_bytes(b"")
        elif self._at and self._random.random() < _COPIED:
            copy = path.with_name(f".{path.name}.copy")
            shutil.copy2(path, copy)
            copy.replace(path)
        stop = self._at + 1 + int(self._random.expovariate(1 / self._scale))
        with path.open("ab") as file:
            file.write(part.data[self._at : stop])
        self._at = stop
        if stop >= len(part.data):
            self.written.update(part.points.keys())
            self.points.update(part.points)
            self._at = 0
            del self._parts[0]


# -- formats ---------------------------------------------------------------------------------------


class Form(NamedTuple):
    """How numbers are written in a format."""

    data: Callable[[list[int]], bytes]
    """What the file holds of some steps."""
    prefix: str = ""
    """Of all keys."""
    text: bool = True
    """True if lines may end otherwise, keys be called otherwise, and the file begin anew."""
    single: bool = False
    """True if values are in single precision."""


_FORMS = {
    "train.log": Form(console_log),
    "log.jsonl": Form(file_log),
    "verl_logs.jsonl": Form(tutorial_log, prefix="ppo/"),
    "progress.csv": Form(csv_log),
    "logging.jsonl": Form(swift_log),
    "trainer_log.jsonl": Form(llama_factory_log),
    "events.out.tfevents.1700000000.host.1.0": Form(event_log, text=False, single=True),
    "run-abc.wandb": Form(wandb_log, text=False),
}
_PLAIN, _OTHER = "actor/entropy", "actor/熵"
"""A key, and what it is called in some texts: pieces then end within a character."""


def log(folder: Path, random: Random) -> Log:
    """Return a log of which nothing has been written yet."""
    name = random.choice((*_FORMS, *_OTHERS))
    counted = name in _FORMS
    parts = _numbers(name, random) if counted else _OTHERS[name](random)
    return Log(folder, [*parts], random, counted=counted)


def _numbers(name: str, random: Random) -> Iterator[Part]:
    """Yield the parts of a log: it begins, and may be resumed."""
    form = _FORMS[name]
    line_end = random.choice((b"\n", b"\n", b"\r\n")) if form.text else b"\n"
    key = random.choice((_PLAIN, _OTHER)) if form.text else _PLAIN
    first, last, starts = 1, 0, {1}
    for number in range(random.randint(1, 4) if form.text else 1):
        steps = [*range(first, first + random.randint(5, 50))]
        data = form.data(steps)
        if form.text:
            data = data.replace(b"\n", line_end).replace(_PLAIN.encode(), key.encode())
        yield Part(name, data, _points(form, steps, key), clears=number > 0)
        last = max(last, steps[-1])
        # two beginnings that are alike would be one
        others = [step for step in range(2, last + 2) if step not in starts]
        first = random.choice(others)
        starts.add(first)


def _points(form: Form, steps: list[int], name: str) -> Points:
    points = {}
    for at, step in enumerate(steps):
        for key, value in values_of(at, step).items():
            single = struct.unpack("f", struct.pack("f", value))[0]
            known = form.prefix + key.replace(_PLAIN, name)
            points[known, step] = single if form.single else value
    return points


def _dumps(random: Random) -> Iterator[Part]:
    """Yield dumps of samples: of each step a file."""
    for step in range(1, random.randint(3, 12)):
        rows = [
            {"input": "1 + 1 = ¿?", "output": "二" * n, "score": n * step / 8, "step": step}
            for n in range(1, _SAMPLES + 1)
        ]  # fmt: skip
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        mean = sum(row["score"] for row in rows) / _SAMPLES
        point = {("samples/score", step): mean}
        yield Part(f"rollouts/{step}.jsonl", text.encode(), point)


def _states(random: Random) -> Iterator[Part]:
    """Yield what a trainer saves again and again: all of its history each time."""
    count = random.randint(5, 30)
    history = [
        {"step": step, "epoch": step / 9, "loss": 1 / step, "熵": step / 7}
        for step in range(1, count + 1)
    ]
    ends = sorted({random.randint(1, count), random.randint(1, count), count})
    for number, end in enumerate(ends):
        state = {"global_step": end, "max_steps": count, "log_history": history[:end]}
        rows = history[:end]
        points = {
            (key, row["step"]): row[key] for row in rows for key in ("loss", "熵")
        }
        text = json.dumps(state, indent=2, ensure_ascii=False)
        yield Part("trainer_state.json", text.encode(), points, clears=number > 0)


_OTHERS = {"dumps": _dumps, "trainer_state.json": _states}
"""Formats whose points are said anew as more of a file comes, by name."""

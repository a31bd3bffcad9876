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
    begins: str = "new"
    """What becomes of the file that is there: one of `_BEGINNINGS`."""


class Log:
    """A log in a folder of its own; `append` writes its next piece."""

    def __init__(
        self,
        folder: Path,
        kind: str,
        parts: Sequence[Part],
        random: Random,
        *,
        counted: bool,
    ) -> None:
        """Make the folder.

        Args:
            folder: Where to write.
            kind: What it is called among others.
            parts: All that it is to hold.
            random: Chooses the pieces.
            counted: Whether readers say each point as often as it is written.
        """
        self.folder, self.kind, self.counted = folder, kind, counted
        self.appends = 0
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
        return bool(self._parts) and not self._at and self._parts[0].begins == "cleared"

    def append(self) -> None:
        """Write a piece."""
        part = self._parts[0]
        path = self.folder / part.name
        if not self._at:
            path.parent.mkdir(exist_ok=True)
            _BEGINNINGS[part.begins](path)
        elif self._random.random() < _COPIED:
            _replace_by_copy(path)
        stop = self._at + 1 + int(self._random.expovariate(1 / self._scale))
        with path.open("ab") as file:
            file.write(part.data[self._at : stop])
        self._at = stop
        self.appends += 1
        if stop >= len(part.data):
            self.written.update(part.points.keys())
            self.points.update(part.points)
            self._at = 0
            del self._parts[0]


def _leave(_path: Path) -> None:
    """A new file has nothing before it."""


def _clear(path: Path) -> None:
    """Empty a file, as verl does when it resumes."""
    path.write_bytes(b"")


def _replace_by_copy(path: Path) -> None:
    copy = path.parent / f".{path.name}.copy"
    shutil.copy2(path, copy)
    copy.replace(path)


_BEGINNINGS: dict[str, Callable[[Path], object]] = {
    "new": _leave,
    "cleared": _clear,
}


# -- formats ---------------------------------------------------------------------------------------


class Form(NamedTuple):
    """How numbers are written in a format."""

    name: str
    """Of the file."""
    data: Callable[[list[int]], bytes]
    """What the file holds of some steps."""
    begins: tuple[str, ...] = ()
    """How further parts may begin."""
    prefix: str = ""
    """Of all keys."""
    text: bool = True
    """True if lines may end otherwise, and keys be called otherwise."""
    single: bool = False
    """True if values are in single precision."""


_RESUMED = ("cleared",)
_FORMS = (
    Form("train.log", console_log, _RESUMED),
    Form("log.jsonl", file_log, _RESUMED),
    Form("verl_logs.jsonl", tutorial_log, ("cleared",), prefix="ppo/"),
    Form("progress.csv", csv_log, ("cleared",)),
    Form("logging.jsonl", swift_log, ("cleared",)),
    Form("trainer_log.jsonl", llama_factory_log, ("cleared",)),
    Form("events.out.tfevents.1700000000.host.1.0", event_log, text=False, single=True),
    Form("run-abc.wandb", wandb_log, text=False),
)
_PLAIN, _OTHER = "actor/entropy", "actor/熵"
"""A key, and what it is called in some texts: pieces then end within a character."""


def log(folder: Path, random: Random) -> Log:
    """Return a log of which nothing has been written yet."""
    form = random.choice((*_FORMS, *_OTHERS))
    if isinstance(form, Form):
        return Log(
            folder, form.name, list(_numbers(form, random)), random, counted=True
        )
    return Log(folder, form, list(_OTHERS[form](random)), random, counted=False)


def _numbers(form: Form, random: Random) -> Iterator[Part]:
    """Yield the parts of a log: it begins, and may be resumed."""
    line_end = random.choice((b"\n", b"\n", b"\r\n")) if form.text else b"\n"
    name = random.choice((_PLAIN, _OTHER)) if form.text else _PLAIN
    begins, first, last, starts = "new", 1, 0, {1}
    for _ in range(random.randint(1, 4)):
        steps = [*range(first, first + random.randint(5, 50))]
        data = form.data(steps)
        if form.text:
            data = data.replace(b"\n", line_end).replace(_PLAIN.encode(), name.encode())
        yield Part(form.name, data, _points(form, steps, name), begins)
        last = max(last, steps[-1])
        if not form.begins:
            return
        begins = random.choice(form.begins)
        first = steps[-1] + 1
        if begins == "cleared":  # two beginnings that are alike would be one
            first = random.choice(
                [step for step in range(2, last + 2) if step not in starts]
            )
        starts.add(first)


def _points(form: Form, steps: list[int], name: str) -> Points:
    points = {}
    for at, step in enumerate(steps):
        for key, value in values_of(at, step).items():
            known = (
                struct.unpack("f", struct.pack("f", value))[0] if form.single else value
            )
            points[form.prefix + key.replace(_PLAIN, name), step] = known
    return points


def _dumps(random: Random) -> Iterator[Part]:
    """Yield dumps of samples: of each step a file."""
    for step in range(1, random.randint(3, 12)):
        rows = [
            {
                "input": "1 + 1 = ¿?",
                "output": "二" * n,
                "score": n * step / 8,
                "step": step,
            }
            for n in range(1, _SAMPLES + 1)
        ]
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        mean = sum(row["score"] for row in rows) / _SAMPLES
        yield Part(
            f"rollouts/{step}.jsonl", text.encode(), {("samples/score", step): mean}
        )


def _states(random: Random) -> Iterator[Part]:
    """Yield what a trainer saves again and again: all of its history each time."""
    count = random.randint(5, 30)
    history = [
        {"step": step, "epoch": step / 9, "loss": 1 / step, "熵": step / 7}
        for step in range(1, count + 1)
    ]
    begins = "new"
    for end in sorted({random.randint(1, count), random.randint(1, count), count}):
        state = {"global_step": end, "max_steps": count, "log_history": history[:end]}
        points = {
            (key, row["step"]): row[key]
            for row in history[:end]
            for key in ("loss", "熵")
        }
        text = json.dumps(state, indent=2, ensure_ascii=False)
        yield Part("trainer_state.json", text.encode(), points, begins)
        begins = "cleared"


_OTHERS = {"dumps": _dumps, "trainer_state.json": _states}
"""Formats whose points are said anew as more of a file comes, by name."""

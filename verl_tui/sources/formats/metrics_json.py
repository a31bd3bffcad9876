"""Metrics in JSON that is no JSON lines: a list of step records (`json.dump(history, file)`), also
below a name (`{"history": [...]}`), or records over several lines each.

Such a document is rewritten as a training goes on. One of them is Hugging Face's own
`trainer_state.json`, with the whole history, written with every checkpoint, into `checkpoint-N/`
and, at the end, beside them (transformers/trainer_callback.py, `TrainerState`). Old checkpoints are
removed as new ones come, so `checkpoint-*` stands for the newest, see
`verl_tui.sources.files.newest_checkpoint_file`.
"""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from verl_tui.patterns import pattern
from verl_tui.records import Progress, Record, Records, Restart, Settings, Unreadable
from verl_tui.sources.fields.jsonl import (
    Fields,
    first_value,
    integer,
    names,
    values_in,
    values_of,
)
from verl_tui.sources.fields.row_batcher import (
    Item,
    RowBatcher,
    joined_notes,
)
from verl_tui.sources.fields.steps import TRAINED, is_sure_name
from verl_tui.sources.files import (
    HOMES,
    NEWEST,
    is_checkpoint,
    is_file,
    newest_checkpoint_file,
)
from verl_tui.sources.formats import filelogger, tutorial
from verl_tui.sources.formats.format import FileFormat, WholeReader
from verl_tui.text import decoded, one_line

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from verl_tui.sources.formats.lines import JsonDecoder


name = "metrics JSON"
rank = 5
anchor = True

LARGEST = 64 * 2**20
"""Bytes after which a document is given up: some 75,000 entries of forty figures each."""
_BEFORE = b"\xef\xbb\xbf \t\r\n"
"""What may stand before a document."""
_FIRST = 8
"""Records at its beginning that are looked at."""
_RECORDS = pattern(rb'\s*(?:\{.{0,4000}?"[^"\n]{1,100}"\s*:\s*)?\[\s*(?=\{)', re.DOTALL)
"""What stands before the first record: a list's beginning, also below a name."""
_SIGNS = frozenset({*TRAINED, "epoch", "steps"})
"""Fields by which records are a training's, besides those that certainly are a step."""


def matches(path: Path, head: bytes) -> bool:
    """Return whether a text begins as a document with records of steps."""
    head = head.lstrip(_BEFORE)
    if head[:1] not in (b"[", b"{") or is_a_line(head):
        return False
    records = first_records(head, _FIRST)
    if len(records) == 1 and not _RECORDS.match(head):
        records = []  # a document of its own, such as a model's settings
    return _are_of_steps(records)


def _are_of_steps(records: Sequence[Fields]) -> bool:
    """Return whether records are a training's by more than the length of an episode."""
    names = {name for record in records for name in _scalars(record)}
    sure = any(map(is_sure_name, names)) or not names.isdisjoint(_SIGNS)
    return sure and tutorial.are_measured(records)


def is_a_line(head: bytes) -> bool:
    """Return whether the first line begins with a record of its own."""
    line, _, behind = head.lstrip(b"\0" + _BEFORE).partition(b"\n")
    try:
        record, rest = first_value(line)
    except ValueError:
        return False
    if not isinstance(record, dict):
        return False
    more = rest.strip() or behind.strip()
    return bool(more) or any(map(is_sure_name, _scalars(record)))


def _scalars(record: Fields) -> list[str]:
    return [key for key, value in record.items() if not isinstance(value, list | dict)]


def first_records(head: bytes, most: int) -> list[Fields]:
    """Return the first records of a document, of lines, or of several one after the other."""
    begin = None if is_a_line(head) else _RECORDS.match(head)
    text = decoded(head[begin.end() if begin else 0 :])
    found: list[Fields] = []
    with suppress(ValueError):
        # what comes before a record that is cut is kept
        found += _dicts(islice(values_in(text), most))
    return found


def _dicts(values: Iterable[object]) -> Iterator[Fields]:
    return (value for value in values if isinstance(value, dict))


class HistoryReader(WholeReader):
    """Reads the records of a document, each as a line of JSON with the same words would be;
    remembers those passed on from earlier documents.
    """

    largest = LARGEST

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._batcher = RowBatcher()
        self.decoder: JsonDecoder = tutorial.TutorialDecoder()
        """Reads the records of the newest document."""
        self._reported: list[int] = []
        """A hash of each record of the history passed on so far."""
        self._others: list[str] = []

    @property
    def note(self) -> str | None:
        """Return how steps were found, and what is not read or was replaced."""
        others = one_line(", ".join(self._others), 200)
        return joined_notes(
            self.decoder.note,
            others and f"further records are not read: those below {others}",
            self._batcher.note,
        )

    def read(self, values: list[Any]) -> Iterator[Item]:
        """Yield what a whole document adds to those before."""
        records, self._others = _records(values)
        logged = bool(records) and isinstance(records[0].get("data"), dict)
        decoder = filelogger.FileLoggerDecoder if logged else tutorial.TutorialDecoder
        if not records:
            yield Unreadable(1, "no record of a step in it", "")
        yield from self.added(records, decoder())

    def added(self, records: Sequence[Fields], decoder: JsonDecoder) -> Iterator[Item]:
        """Yield what the records of a history say that have not been passed on, and a restart where
        it does not go on from the one before.
        """
        self.decoder = decoder
        entries = [
            decoder.records([record], b"", number)
            for number, record in enumerate(records, 1)
        ]
        hashes = [hash(repr(entry)) for entry in entries]
        known, self._reported = self._reported, hashes
        if hashes[: len(known)] != known:
            yield Restart("another history was written")
            known = []
        yield from chain.from_iterable(entries[len(known) :])

    def parse(self, data: bytes) -> Records:
        """Return the records of a document, or of several one after the other."""
        self._batcher.add(self.read(values_of(data)))
        return self._batcher.take()

    def _read_on(self) -> None:
        """Keep what is there: more may follow."""

    def finish(self) -> Records:
        """Return a complaint where the document is not whole."""
        held = bytes(self._held).strip()
        try:
            values_of(held)
        except ValueError as error:
            return self._complain(str(error), held[:400])
        return ()

    def goes_on(self) -> bool:
        """Expect the next document, which most likely continues this one."""
        super().__init__(self._path)
        return True


reader = HistoryReader


def _records(values: Sequence[Any]) -> tuple[list[Fields], list[str]]:
    """Return the records of a document, of its first list of records, at its top or below it; and
    the names below which there are further ones, of unknown meaning, which are not read.
    """
    lists = record_lists(values[0] if len(values) == 1 else values)
    found = [one for one in lists if _are_of_steps(one[1][:_FIRST])]
    return found[0][1] if found else [], [name for name, _ in found[1:]]


def record_lists(value: Any, name: str = "") -> Iterator[tuple[str, list[Fields]]]:
    """Yield the lists of records in a document, by the name that they stand below."""
    if isinstance(value, list | tuple):
        yield name, list(_dicts(value))
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from record_lists(one, key)


FILE = "trainer_state.json"
FROM_ZERO = frozenset({"loss", "reward", "learning_rate", "epoch"})
"""Metrics of an entry that LLaMA-Factory's PPO wrote: it counts from 0 here and on the console,
from 1 in its `trainer_log.jsonl` and its event files (llamafactory/train/ppo/trainer.py,
`ppo_train`).
"""
FROM_ZERO_NOTE = (
    "LLaMA-Factory's PPO counts steps from 0 here: shown from 1, as its other files say"
)
_SETTINGS = names("state_setting")


def _is_state(path: Path, head: bytes) -> bool:
    """Return whether the beginning is that of a JSON object with a trainer's fields."""
    return (
        path.suffix.lower() == ".json"
        and head.lstrip(_BEFORE).startswith(b"{")
        and b'"log_history"' in head
        and (b'"best_model_checkpoint"' in head or b'"global_step"' in head)
    )


def in_checkpoints(directory: Path, entries: Iterable[os.DirEntry[str]]) -> Path | None:
    """Return the path of the newest state among a run's checkpoints; None where one lies in its own
    directory.

    Args:
        directory: The run's.
        entries: What lies in it.
    """
    here = {entry.name for entry in entries}
    homes = [directory] if any(map(is_checkpoint, here)) else []
    homes += [directory / name for name in HOMES if name in here]
    for home in homes if FILE not in here else ():
        for path in (home / FILE, home / NEWEST / FILE):
            if is_file(newest_checkpoint_file(path)):
                return path
    return None


class TrainerStateReader(HistoryReader):
    """Reads the history of a trainer's state."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._best: object = None
        self._from_zero: str | None = None

    @property
    def note(self) -> str | None:
        """Return how its steps are counted, and a note on replaced records."""
        return joined_notes(self._from_zero, super().note)

    def read(self, values: list[Any]) -> Iterator[Item]:
        """Yield what a whole document adds to those before."""
        document = values[-1]
        history = document.get("log_history") if isinstance(document, dict) else None
        if not isinstance(history, list):
            yield Unreadable(1, 'no list "log_history"', "")
            return
        entries = [
            one for one in _dicts(history) if integer(one.get("step")) is not None
        ]
        if len(entries) < len(history):
            yield Unreadable(1, 'not all of "log_history" has steps', "")
        yield from self._about(document)
        yield from self.added(self._counted(entries), tutorial.TutorialDecoder())

    def _counted(self, entries: list[Fields]) -> list[Fields]:
        """Return entries whose steps count from 1."""
        from_zero = [one.keys() for one in entries[:1]] == [FROM_ZERO | {"step"}]
        self._from_zero = FROM_ZERO_NOTE if from_zero else None
        return [
            {**one, "step": from_zero + (integer(one["step"]) or 0)} for one in entries
        ]

    def _about(self, document: Fields) -> Iterator[Record]:
        best, before = document.get("best_model_checkpoint"), self._best
        self._best = best
        yield from tutorial.best_checkpoint(best if best != before else None)
        total = integer(document.get("max_steps"))
        step = integer(document.get("global_step"))
        yield Progress(step, total if total and total > 0 else None)
        kept = {key: document[key] for key in _SETTINGS if key in document}
        numbers = {
            key: one for key, one in kept.items() if isinstance(one, int | float)
        }
        if numbers:
            yield Settings(numbers)


trainer_state = FileFormat(
    "trainer state", 5, _is_state, TrainerStateReader, anchor=True
)

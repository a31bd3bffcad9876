"""Hugging Face's `trainer_state.json`: one JSON document with the whole history, written anew with
every checkpoint.

`transformers/trainer_callback.py` (`TrainerState`) writes it into `checkpoint-N/` and, at the end,
beside them. Old checkpoints are removed as new ones come, so `checkpoint-*` stands for the newest:
see `verl_tui.sources.files.tail.NewestTail`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from verl_tui.records import Progress, Settings, Unreadable
from verl_tui.sources.fields.jsonl import integer
from verl_tui.sources.fields.row_batcher import joined_notes
from verl_tui.sources.fields.spellings import names
from verl_tui.sources.files.paths import HOMES, is_file
from verl_tui.sources.files.tail import NEWEST, is_checkpoint, newest_checkpoint_file
from verl_tui.sources.formats import tutorial
from verl_tui.sources.formats.metrics_json import HistoryReader
from verl_tui.sources.formats.trainer_logs import best_checkpoint, finished
from verl_tui.text import one_line

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from verl_tui.records import Record
    from verl_tui.sources.fields.row_batcher import MetricRow

name = "trainer state"
rank = 5
anchor = True

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


def matches(path: Path, head: bytes) -> bool:
    """Return whether the beginning is that of a JSON object with a trainer's fields."""
    return (
        path.suffix.lower() == ".json"
        and head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")
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
    if FILE in here:
        return None
    homes = [directory] if any(map(is_checkpoint, here)) else []
    homes += [directory / name for name in HOMES if name in here]
    for home in homes:
        if is_file(home / FILE):
            return home / FILE
        if is_file(newest_checkpoint_file(home / NEWEST / FILE)):
            return home / NEWEST / FILE
    return None


def reader(path: Path) -> TrainerStateReader:
    """Return a reader for one file."""
    return TrainerStateReader(str(path))


class _EntryDecoder(tutorial.TutorialDecoder):
    """Reads an entry of the history."""

    def read(self, record: dict[str, Any]) -> Iterable[MetricRow | Record]:
        """Return the records of one entry; one of training and one of evaluation may share a step.

        Raises:
            ValueError: It states no step.
        """
        if integer(record.get("step")) is None:
            raise ValueError('no "step" in an entry of "log_history"')
        yield from super().read(record)
        yield from finished(record, self.step)


class TrainerStateReader(HistoryReader):
    """Reads the history of a trainer's state."""

    def __init__(self, origin: str) -> None:
        super().__init__()
        self._origin = one_line(origin, 1000)
        self._best: object = None
        self._settings: dict[str, Any] = {}
        self._from_zero: str | None = None

    @property
    def note(self) -> str | None:
        """Return how its steps are counted, and what is to be said of replaced records."""
        return joined_notes(self._from_zero, super().note)

    def read(self, values: list[Any]) -> Iterator[MetricRow | Record]:
        """Yield what a whole document adds to those before."""
        document = values[-1]
        history = document.get("log_history") if isinstance(document, dict) else None
        if not isinstance(history, list):
            yield Unreadable(1, 'no list "log_history"', "")
            return
        entries = [one if isinstance(one, dict) else {} for one in history]
        self._from_zero = None
        if entries and entries[0].keys() == FROM_ZERO | {"step"}:
            self._from_zero = FROM_ZERO_NOTE
            entries = [{**one, "step": _next(one.get("step"))} for one in entries]
        yield from self._about(document)
        yield from self.added(entries, _EntryDecoder())
        yield from self._best_checkpoint(document)

    def _about(self, document: dict[str, Any]) -> Iterator[Record]:
        step = integer(document.get("global_step"))
        total = integer(document.get("max_steps"))
        yield Progress(step, total if total is not None and total > 0 else None)
        settings = {
            key: document[key]
            for key in _SETTINGS
            if isinstance(document.get(key), int | float)
        }
        if settings != self._settings:
            self._settings = settings
            yield Settings(settings, self._origin)

    def _best_checkpoint(self, document: dict[str, Any]) -> Iterator[Record]:
        best = document.get("best_model_checkpoint")
        if best != self._best:
            self._best = best
            yield from best_checkpoint(best)


def _next(step: object) -> int | None:
    found = integer(step)
    return None if found is None else found + 1

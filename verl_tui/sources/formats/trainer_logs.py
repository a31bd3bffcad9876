"""Logs in JSON of the trainer of Hugging Face and of those built on it: one record a logged step or
evaluation. Another such trainer is one more `TrainerLog`.

- ms-swift's `logging.jsonl` states its step as `"global_step/max_steps": "10/438"`
  (swift/plugin/callback.py, `add_train_message`). A resumed run appends. The last line is a summary
  with the whole history once more; it is written after a crash as well.
- LLaMA-Factory's `trainer_log.jsonl` states `current_steps` of `total_steps` and calls two metrics
  otherwise than the trainer below it, whose names they get back here
  (llamafactory/train/callbacks.py, `LogCallback.on_log`).
- Hugging Face's own `trainer_state.json` is one JSON document with the whole history, written anew
  with every checkpoint, into `checkpoint-N/` and, at the end, beside them
  (transformers/trainer_callback.py, `TrainerState`). Old checkpoints are removed as new ones come,
  so `checkpoint-*` stands for the newest, see `verl_tui.sources.files.tail.newest_checkpoint_file`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from verl_tui.records import Event, EventKind, Progress, Settings, Unreadable
from verl_tui.sources.fields.jsonl import first_object, integer
from verl_tui.sources.fields.row_batcher import joined_notes
from verl_tui.sources.fields.spellings import names
from verl_tui.sources.files.paths import HOMES, checkpoint_step, is_file
from verl_tui.sources.files.tail import NEWEST, is_checkpoint, newest_checkpoint_file
from verl_tui.sources.formats.format import FileFormat, Parts
from verl_tui.sources.formats.lines import LineReader, line_begin
from verl_tui.sources.formats.metrics_json import HistoryReader
from verl_tui.sources.formats.tutorial import TutorialDecoder
from verl_tui.text import one_line

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from verl_tui.records import Record
    from verl_tui.sources.fields.row_batcher import MetricRow


def best_checkpoint(path: object) -> Iterator[Event]:
    """Yield the best checkpoint so far where its path is stated."""
    if isinstance(path, str) and path:
        step = checkpoint_step(path.replace("\\", "/").rstrip("/").rpartition("/")[2])
        yield Event(EventKind.BEST, one_line(path, 1000), 1, step)


@dataclass(eq=False)
class TrainerLog:
    """The log of one trainer, a format."""

    name: str
    signs: tuple[frozenset[str], ...]
    """Sets of fields by each of which the first record shows that it is this trainer's."""
    decoder: Callable[..., TutorialDecoder]
    """Returns what decodes its lines, `skipped` those that are not the first."""
    rank: int = 4  # ms-swift's values are rounded to eight digits
    anchor: bool = True

    def matches(self, path: Path, head: bytes) -> bool:  # noqa: ARG002
        """Return whether the first object has the fields of this trainer."""
        first = first_object(head)
        return first is not None and any(one <= first.keys() for one in self.signs)

    def reader(self, path: Path) -> LineReader:  # noqa: ARG002
        """Return a reader for one file."""
        return LineReader(self.decoder())

    @property
    def parts(self) -> Parts:
        """How to read a part of it."""
        return Parts(line_begin, lambda *_: LineReader(self.decoder(skipped=True)))


_SUMMARY = "log_history"
_OF_STEPS = ("epoch", "train_speed(s/it)", "train_speed(iter/s)", "memory(GiB)")
"""Fields that the record of each step shares with the closing one; the speed by its name before
version 4.
"""


class SwiftDecoder(TutorialDecoder):
    """Decodes the records of a training, its end and its summary."""

    def read(self, record: dict[str, Any]) -> Iterable[MetricRow | Record]:
        """Return the records of one object."""
        if _SUMMARY in record:
            yield from best_checkpoint(record.get("best_model_checkpoint"))
            return
        # The last step has been passed on; the closing record's new figures cover the whole
        # training.
        left_out = _OF_STEPS if "train_runtime" in record else ()
        yield from super().read(
            {name: record[name] for name in record if name not in left_out}
        )


swift = TrainerLog(
    "ms-swift log",
    (
        frozenset(("global_step/max_steps",)),
        frozenset((_SUMMARY, "model_parameter_info")),
    ),
    SwiftDecoder,
)
llama_factory = TrainerLog(
    "LLaMA-Factory log",
    (frozenset(("current_steps", "total_steps")),),
    partial(
        TutorialDecoder,
        spelled={
            "lr": "learning_rate",
            "accuracy": "rewards/accuracies",
            "percentage": "",  # the share of the steps that are done
        },
    ),
)


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
        super().__init__()
        self._origin = one_line(str(path), 1000)
        self._best: object = None
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
        dicts = (one for one in history if isinstance(one, dict))
        entries = [one for one in dicts if integer(one.get("step")) is not None]
        if len(entries) < len(history):
            yield Unreadable(1, 'not all of "log_history" has steps', "")
        self._from_zero = None
        if entries and entries[0].keys() == FROM_ZERO | {"step"}:
            self._from_zero = FROM_ZERO_NOTE
            entries = [{**one, "step": _next(one.get("step"))} for one in entries]
        yield from self._about(document)
        yield from self.added(entries, TutorialDecoder())
        best = document.get("best_model_checkpoint")
        if best != self._best:
            self._best = best
            yield from best_checkpoint(best)

    def _about(self, document: dict[str, Any]) -> Iterator[Record]:
        total = integer(document.get("max_steps"))
        step = integer(document.get("global_step"))
        yield Progress(step, total if total and total > 0 else None)
        kept = {key: document[key] for key in _SETTINGS if key in document}
        numbers = {
            key: one for key, one in kept.items() if isinstance(one, int | float)
        }
        if numbers:
            yield Settings(numbers, self._origin)


def _next(step: object) -> int | None:
    found = integer(step)
    return None if found is None else found + 1


trainer_state = FileFormat(
    "trainer state", 5, _is_state, TrainerStateReader, anchor=True
)

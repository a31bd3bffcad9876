"""The tutorials' JSONL, `{"scope": "ppo", "step": 120, "policy_loss": -0.18}`, and flat records.

Any program's JSONL of flat records with a step is read, under the record's own keys. So are the
logs of trainers built on Hugging Face's, one record a logged step or evaluation; another such
trainer is one more `trainer_log`.

- ms-swift's `logging.jsonl` states its step as `"global_step/max_steps": "10/438"`
  (swift/plugin/callback.py, `add_train_message`). A resumed run appends. The last line is a summary
  with the whole history once more; it is written after a crash as well.
- LLaMA-Factory's `trainer_log.jsonl` states `current_steps` of `total_steps` and calls two metrics
  otherwise than the trainer below it, whose names they get back here
  (llamafactory/train/callbacks.py, `LogCallback.on_log`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from verl_tui.patterns import pattern
from verl_tui.records import Event, EventKind, Progress, Record
from verl_tui.sources.fields.jsonl import (
    Fields,
    first_object,
    flatten,
    is_name,
    names,
    number,
    numbers_in,
    unquoted,
)
from verl_tui.sources.fields.row_batcher import (
    Item,
    MetricRow,
    joined_notes,
    metric_keys,
)
from verl_tui.sources.fields.sample import read_sample
from verl_tui.sources.fields.steps import (
    TRAINED,
    StepFields,
    StepTracker,
    is_sure_name,
    listed_thing,
    stated_step,
    step_fields,
)
from verl_tui.sources.files import checkpoint_step
from verl_tui.sources.formats.format import FileFormat
from verl_tui.sources.formats.lines import JsonDecoder, LineReader
from verl_tui.text import one_line, safe
from verl_tui.times import parse_elapsed, parse_time
from verl_tui.words import counted

name = "tutorial JSONL"
rank = 5
anchor = True

_MEASURED = {"reward", "sample", "system"}
"""Scopes logged many times a step: their numbers are averaged. In others the last record wins."""
_ABOUT = frozenset(names("about"))
"""Fields that state place and time of a record: they are no metrics."""
_HOLDERS = names("holder")
"""Fields that hold the metrics of a record, and whose names carry no meaning."""
_LOG_TEXT = pattern(rb"\b(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL)\b")
_FIRST_LINES = 8
"""Number of first lines one of which must be a record: loggers begin with text of their own."""
_MOST_SCHEMAS = 1000
"""Remembered sets of fields: a file has a handful, a broken one any number."""
_WRITERS = names("writer")


def matches(path: Path, head: bytes) -> bool:
    """Return True if the first object has a scope, or an early one a step or epoch and numbers."""
    lines = head.split(b"\n", _FIRST_LINES)[:_FIRST_LINES]
    found = [record for record in map(first_object, lines) if record is not None]
    if any(isinstance(record.get("scope"), str) for record in found[:1]):
        return True
    document = path.suffix.lower() == ".json" and len(found) == 1
    if document and not any(map(is_sure_name, found[0])):
        return False  # a document of its own, such as a model's settings
    return are_measured(found)


def are_measured(records: Sequence[Fields]) -> bool:
    """Return whether the first records of a file are a training's: they measure steps, and not one
    thing after the other.
    """
    return any(map(measures, records)) and listed_thing(records) is None


def measures(record: Fields) -> bool:
    """Return True if a record has a step or epoch and a metric, or a metric of trainings only."""
    flat = unquoted(flatten(_opened(record)))
    fields, about = _schema(tuple(flat))
    step = None
    with suppress(ValueError):  # a number too large for one
        step = stated_step(flat, fields)[0]
    numbers = numbers_in(flat, {*about, fields.epoch or ""})
    if step is None and number(flat.get(fields.epoch or "", "")) is None:
        return any(key.rpartition("/")[2] in TRAINED for key in numbers)
    return bool(numbers)


def reader(path: Path) -> LineReader:
    """Return a reader for one file."""
    return LineReader(TutorialDecoder())


class TutorialDecoder(JsonDecoder):
    """Decodes scoped and flat records."""

    parted = True
    spelled: Mapping[str, str] = {}
    """What fields are called that a trainer spells otherwise than others, and that leaves none out
    for want of a value.
    """

    def __init__(self) -> None:
        self._place = StepTracker()
        self._total: int | None = None
        """Total of steps last passed on."""
        self._writer = ""
        """The rank or device that wrote the first record which names one."""
        self._others = 0
        """Records of others."""

    @property
    def counts_most(self) -> bool:
        """True if steps were counted: none is stated."""
        return self._place.counts_all

    @property
    def counts_steps(self) -> bool:
        """True if they were counted, or count within epochs; or if the first of several writers,
        whose records are read, may be another one's than before.
        """
        return self._place.relative or self._others > 0

    @property
    def step(self) -> int:
        """Step of the last record."""
        return self._place.step

    @property
    def note(self) -> str | None:
        """Say that steps were counted, and which records are not read."""
        others = counted(self._others, "record of another is", "records of others are")
        only = f"only {self._writer} is read: {others} not"
        return joined_notes(self._place.note, only if self._others else None)

    def odd(self, line: bytes, number: int, reason: str) -> Iterable[Item]:
        """Report a line that is no record, unless it is the plain text of a logger."""
        return () if _LOG_TEXT.search(line[:200]) else super().odd(line, number, reason)

    def read(self, record: Fields) -> Iterable[Item]:
        """Return the row and the sample of one object."""
        if self.spelled:
            given = (name for name in record if record[name] is not None)
            record = {self.spelled.get(name, name): record[name] for name in given}
        found = self._read(record)
        if not self.skipped:
            return found
        records = tuple(found)
        return records if self._place.known else ()  # no record has stated its step

    def _read(self, record: Fields) -> Iterator[Item]:
        scope = _scope(record)
        flat = unquoted(flatten(_opened(record)))
        measured = scope in _MEASURED
        if not measured and self._is_of_another(flat):
            return
        fields, about = _schema(tuple(flat))
        numbers = numbers_in(flat, about)
        keys = metric_keys(tuple(numbers), f"{safe(scope, 100)}/" if scope else "")
        step = self._place.of(flat, fields, keys=None if measured else keys or None)
        yield from self._progress(step, parse_elapsed(record.get("elapsed_time")))
        time = parse_time(record.get("timestamp", record.get("time", record.get("ts"))))
        if numbers:
            yield MetricRow(step, keys, tuple(numbers.values()), time, measured)
        yield from _further(scope, record, step)

    def _progress(self, step: int, elapsed: float | None) -> Iterator[Progress]:
        """Yield the total of steps where it has changed, and the elapsed time of a step."""
        if self._place.total != self._total or elapsed is not None:
            self._total = self._place.total
            yield Progress(None if elapsed is None else step, self._total, elapsed)

    def _is_of_another(self, flat: Fields) -> bool:
        """Return whether a record is of another rank or device than the first that named itself:
        each logs figures of its own.
        """
        own = next((f"{one} {flat[one]}" for one in _WRITERS if one in flat), "")
        self._writer = self._writer or one_line(own, 60)
        is_another = own != "" and one_line(own, 60) != self._writer
        self._others += is_another
        return is_another


def _scope(record: Fields) -> str:
    stated = record.get("scope")
    return stated if isinstance(stated, str) else ""


@lru_cache(_MOST_SCHEMAS)
def _schema(present: tuple[str, ...]) -> tuple[StepFields, frozenset[str]]:
    """Return which of a record's fields state its place, and which are no metrics."""
    fields = step_fields(present)
    return fields, fields.no_metrics | _ABOUT | set(filter(is_name, present))


def _opened(record: Fields) -> Fields:
    """Return a record with its metrics beside what it says of them."""
    holder = next((one for one in _HOLDERS if isinstance(record.get(one), dict)), None)
    if holder is None:
        return record
    others = {key: value for key, value in record.items() if key != holder}
    return {**record[holder], **others}


def _further(scope: str, record: Fields, step: int) -> Iterator[Record]:
    """Yield the sample in a record, if there is one, and the end of a training where it is stated
    how long that took.
    """
    if scope not in _MEASURED or scope == "sample":
        yield from filter(None, [read_sample(record, step)])
    if "train_runtime" in record:  # of Hugging Face's trainer
        took = one_line(str(record["train_runtime"]), 40)
        yield Event(EventKind.FINISHED, f"trained for {took} s", 1, step)


def best_checkpoint(path: object) -> Iterator[Event]:
    """Yield the best checkpoint so far where its path is stated."""
    if isinstance(path, str) and path:
        step = checkpoint_step(path.replace("\\", "/").rstrip("/").rpartition("/")[2])
        yield Event(EventKind.BEST, one_line(path, 1000), 1, step)


def trainer_log(
    name: str, decoder: Callable[[], TutorialDecoder], *signs: set[str]
) -> FileFormat:
    """Return the log of one trainer as a format.

    Args:
        name: Its name.
        decoder: Returns what decodes its lines.
        signs: Sets of fields by each of which the first record shows that it is this trainer's.
    """

    def matches(_: Path, head: bytes) -> bool:
        first = first_object(head)
        return first is not None and any(one <= first.keys() for one in signs)

    # ms-swift's values are rounded to eight digits: others are better
    return FileFormat(name, 4, matches, lambda _: LineReader(decoder()), anchor=True)


_SUMMARY = "log_history"
_OF_STEPS = ("epoch", "train_speed(s/it)", "train_speed(iter/s)", "memory(GiB)")
"""Fields that the record of each step shares with the closing one; the speed by its name before
version 4.
"""


class SwiftDecoder(TutorialDecoder):
    """Decodes the records of a training, its end and its summary."""

    def read(self, record: Fields) -> Iterable[Item]:
        """Return the records of one object."""
        if _SUMMARY in record:
            yield from best_checkpoint(record.get("best_model_checkpoint"))
            return
        # The last step has been passed on; the closing record's new figures cover the whole
        # training.
        left_out = _OF_STEPS if "train_runtime" in record else ()
        kept = {name: record[name] for name in record if name not in left_out}
        yield from super().read(kept)


swift = trainer_log(
    "ms-swift log",
    SwiftDecoder,
    {"global_step/max_steps"},
    {_SUMMARY, "model_parameter_info"},
)


class LlamaFactoryDecoder(TutorialDecoder):
    """Gives metrics the names that the trainer below it has for them."""

    spelled = {  # noqa: RUF012 - never changed
        "lr": "learning_rate",
        "accuracy": "rewards/accuracies",
    }


llama_factory = trainer_log(
    "LLaMA-Factory log", LlamaFactoryDecoder, {"current_steps", "total_steps"}
)

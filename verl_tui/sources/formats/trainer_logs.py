"""Logs in JSON of trainers built on that of Hugging Face: one record a logged step or evaluation,
written as the training goes on. Another such trainer is one more `TrainerLog`.

- ms-swift's `logging.jsonl` states its step as `"global_step/max_steps": "10/438"`
  (swift/plugin/callback.py, `add_train_message`). A resumed run appends. The last line is a summary
  with the whole history once more; it is written after a crash as well.
- LLaMA-Factory's `trainer_log.jsonl` states `current_steps` of `total_steps` and calls two metrics
  otherwise than the trainer below it, whose names they get back here
  (llamafactory/train/callbacks.py, `LogCallback.on_log`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from verl_tui.records import Event, EventKind
from verl_tui.sources.fields.jsonl import first_object
from verl_tui.sources.files.paths import checkpoint_step
from verl_tui.sources.formats.format import Parts
from verl_tui.sources.formats.lines import LineReader, line_begin
from verl_tui.sources.formats.tutorial import TutorialDecoder
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from verl_tui.records import Record
    from verl_tui.sources.fields.row_batcher import MetricRow


def finished(record: Mapping[str, Any], step: int) -> Iterator[Event]:
    """Yield the end of a training where a record states how long it took."""
    if "train_runtime" in record:
        took = one_line(str(record["train_runtime"]), 40)
        yield Event(EventKind.FINISHED, f"trained for {took} s", 1, step)


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
        yield from finished(record, self.step)


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

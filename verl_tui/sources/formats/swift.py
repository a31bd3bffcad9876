"""ms-swift's `logging.jsonl`: one record a logged step, written as the training goes on.

The step stands in `"global_step/max_steps": "10/438"` (swift/plugin/callback.py,
`add_train_message`). A resumed run appends. The last line is a summary with the whole history once
more; it is written after a crash as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from verl_tui.sources.fields.jsonl import Flaw, first_object
from verl_tui.sources.formats.format import Parts
from verl_tui.sources.formats.hugging_face import best_checkpoint, finished
from verl_tui.sources.formats.lines import LineReader, line_begin
from verl_tui.sources.formats.tutorial import TutorialDecoder

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from verl_tui.records import Record
    from verl_tui.sources.fields.row_batcher import MetricRow

name = "ms-swift log"
rank = 4  # its values are rounded to eight digits
anchor = True

_STEP = "global_step/max_steps"
_SUMMARY = "log_history"
_OF_STEPS = ("epoch", "train_speed(s/it)", "train_speed(iter/s)", "memory(GiB)")
"""Fields that the record of each step shares with the closing one; the speed by its name before
version 4.
"""


def matches(path: Path, head: bytes) -> bool:
    """Return whether the first object states its step as ms-swift does."""
    first = first_object(head)
    return first is not None and (
        _STEP in first or {_SUMMARY, "model_parameter_info"} <= first.keys()
    )


def reader(path: Path) -> LineReader:
    """Return a reader for one file."""
    return LineReader(SwiftDecoder())


class SwiftDecoder(TutorialDecoder):
    """Decodes the records of a training, its end and its summary."""

    def read(self, record: dict[str, Any]) -> Iterable[MetricRow | Record | Flaw]:
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


parts = Parts(line_begin, lambda *_: LineReader(SwiftDecoder(skipped=True)))

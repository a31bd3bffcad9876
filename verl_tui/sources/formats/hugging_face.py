"""What trainers built on that of Hugging Face say of a training's end and best checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from verl_tui.records import Event, EventKind
from verl_tui.sources.files.paths import checkpoint_step
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


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

"""Completions in columns, as in ms-swift's `completions.jsonl`: a line a step, a list a column.
ROLL's dumps are such a line, too, with names of its own (roll/pipeline/rlvr/utils.py:19-44).

`{"step": ["1", …], "prompt": […], "completion": […], <a column a reward function>, "advantages":
[…]}` (swift/trainers/rlhf_trainer/grpo_trainer.py, `log_completions`). TRL has the same columns in
Parquet files, see `verl_tui.sources.formats.parquet`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from verl_tui.patterns import pattern
from verl_tui.records import Restart
from verl_tui.sources.fields.jsonl import JsonDecoder, first_object
from verl_tui.sources.fields.rewards import RewardSum
from verl_tui.sources.formats.lines import LineReader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from verl_tui.records import Record, Sample
    from verl_tui.sources.fields.row_batcher import MetricRow

name = "completions"
rank = 7  # the figures of all samples go before those of the few that trainers show
anchor = False

_TEXTS = ("prompt", "completion")
_ROLLS = {"responses": "completion", "scores": "score"}
"""Columns that ROLL calls otherwise."""
_BEGIN = pattern(rb'\s*\{"(?:step|prompt|gen_step|global_step)":\s*\[(?:"|\d)')
"""The beginning of a first line that is longer than the head of the file."""


def matches(path: Path, head: bytes) -> bool:
    """Return True if the first object has prompts and completions in columns."""
    first = first_object(head)
    if first is not None:
        return _length(_named(first)) > 0
    begun = b"\n" not in head and b'"prompt"' in head
    return begun and _BEGIN.match(head) is not None


def reader(path: Path) -> LineReader:
    """Return a reader for one file."""
    return LineReader(CompletionsDecoder(path))


class CompletionsDecoder(JsonDecoder):
    """Decodes the samples of a line; a step that returns after others was trained again.

    ms-swift writes its last line once more as it ends: a line that only repeats the one before is
    read once.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._rewards = RewardSum(path=path)
        self.restart()

    @property
    def note(self) -> str | None:
        """Say how rewards were summed."""
        return self._rewards.note

    def restart(self) -> Sequence[MetricRow | Record]:
        """Forget the steps so far."""
        self._seen: dict[int, None] = {}
        """Steps, the one that is read as the last."""
        self._before: dict[str, Any] = {}
        """The line before."""
        return ()

    def read(self, record: dict[str, Any]) -> Iterable[MetricRow | Record]:
        """Return the samples of one object."""
        record = _named(record)
        if not _length(record):
            raise ValueError("no columns of prompts and completions")
        if record == self._before:
            return
        self._before = record
        for sample in samples_of(record, self._rewards):
            step = sample.step
            if step is not None and step not in [*self._seen][-1:]:
                if step in self._seen:
                    del self._seen[step]
                    yield Restart("step trained again", step)
                self._seen[step] = None
            yield sample


def samples_of(
    columns: Mapping[str, Any], rewards: RewardSum, step: int | None = None
) -> Iterator[Sample]:
    """Yield the samples of a table.

    Args:
        columns: Its columns by name.
        rewards: Sums the rewards of each.
        step: Their step if the table states none.
    """
    length = _length(columns)
    kept = {
        name: column
        for name, column in columns.items()
        if isinstance(column, list) and len(column) == length
    }
    for at in range(length):
        record = {name: column[at] for name, column in kept.items()}
        yield from filter(None, [rewards.row_sample(record, step)])


def _named(columns: dict[str, Any]) -> dict[str, Any]:
    """Return columns under the names that most write."""
    if _ROLLS.keys() <= columns.keys():
        return {_ROLLS.get(name, name): column for name, column in columns.items()}
    return columns


def _length(columns: Mapping[str, Any]) -> int:
    """Return the number of samples in a table, 0 if it is none: prompt and completion of one
    sample may be lists as well, of messages.
    """
    texts = [columns.get(name) or () for name in _TEXTS]
    if any(not isinstance(one, list) or isinstance(one[0], dict) for one in texts):
        return 0
    least, most = sorted(map(len, texts))
    return least if least == most else 0

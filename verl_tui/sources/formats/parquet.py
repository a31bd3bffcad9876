"""TRL's `completions/completions_00010.parquet`: the samples of one step in a file, for which
pyarrow is needed.

`log_completions` writes the columns `step, prompt, completion`, one a reward function, and
`advantage` (trl/trainer/grpo_trainer.py). A Parquet file is complete when its last four bytes are
`PAR1`.

Directories of them are read by `verl_tui.sources.folders.step_files`.
"""

from __future__ import annotations

from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING

from verl_tui.patterns import pattern
from verl_tui.records import Restart
from verl_tui.sources.fields.rewards import RewardSum
from verl_tui.sources.formats.completions import samples_of
from verl_tui.sources.formats.documents import WholeReader
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from verl_tui.records import Record

name = "TRL completions"
rank = 7  # the figures of all samples go before those of the few that trainers show
anchor = False

LARGEST = 256 * 2**20
"""Bytes; a larger file holds no samples of one step."""
MISSING = "needs pyarrow to be read: pip install 'verl-tui[parquet]'"
_NAME = pattern(r"completions_(\d{1,15})\.parquet")
_MAGIC = b"PAR1"


def table_step(name: str) -> int | None:
    """Return the step in the name of a table of completions, None if it is none."""
    found = _NAME.fullmatch(name)
    return int(found[1]) if found else None


def matches(path: Path, head: bytes) -> bool:
    """Return whether a file has a name of TRL's and begins as Parquet does: no data set."""
    return table_step(path.name) is not None and _MAGIC.startswith(head[:4])


def is_readable() -> bool:
    """Return whether there is a library that reads Parquet."""
    with suppress(ValueError):
        return find_spec("pyarrow") is not None
    return False


class ParquetReader(WholeReader):
    """Waits for the whole file, since what is in it stands at its end."""

    ends = (_MAGIC,)
    incomplete = "not complete: still being written, or cut off"

    def __init__(self, path: Path, rewards: RewardSum | None = None) -> None:
        """Begin with nothing.

        Args:
            path: The file, whose name holds the step.
            rewards: Adds up the rewards of each sample.
        """
        super().__init__(LARGEST)
        self._step = table_step(path.name)
        self._rewards = rewards or RewardSum(path=path)
        self._missing = False

    @property
    def note(self) -> str | None:
        """Return how rewards were added, or what is missing to read the file."""
        return MISSING if self._missing else self._rewards.note

    def parse(self, data: bytes) -> Iterator[Record]:
        """Yield the samples of a whole file; none where there is nothing to read it with."""
        if len(data) <= 2 * len(_MAGIC):
            raise ValueError(self.incomplete)
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError:
            self._missing = True
            return
        try:
            columns = pq.read_table(pa.BufferReader(data)).to_pydict()
        except (pa.ArrowException, OSError, ValueError) as error:
            yield from self._complain(f"damaged: {one_line(str(error), 120)}")
            return
        yield from samples_of(columns, self._rewards, self._step)

    def restart(self, reason: str) -> tuple[Record, ...]:
        """Forget everything, the file starts anew."""
        super().restart(reason)
        return (Restart(reason, self._step),)


reader = ParquetReader

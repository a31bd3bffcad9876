"""Read many sources, a little of each in turn; first of all those of the run that is shown.

With two hundred runs, the one on the screen is there at once, not only after the last of them.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from verl_tui.sources.ahead import ahead, is_ahead
from verl_tui.sources.files.paths import file_size
from verl_tui.sources.preview import LONG

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from verl_tui.records import Batch
    from verl_tui.sources.source_reader import SourceReader

_ROUNDS = 8
"""One in so many rounds belongs to all sources: a log that grows faster than it is read must not
hold up all others.
"""

Turn = tuple["SourceReader", "Batch | None", bool]
"""A source, its batch from this turn, and whether more of it waits."""


def nobody() -> None:
    """Return None: no run is shown."""


def in_turn(
    readers: Iterable[SourceReader],
    read: Callable[[SourceReader], tuple[Batch | None, bool]],
    workers: int | None,
    shown: Callable[[], str | None] = nobody,
) -> Iterator[Turn]:
    """Read sources to their present ends, a little of each in turn; those that are read for the
    first time and are large in workers.

    Args:
        readers: The sources.
        read: Reads a little of one.
        workers: How many workers there may be, None for what suits the machine.
        shown: Returns the name of the run that is shown, None where there is none.
    """
    waiting = list(readers)
    with ahead([one for one in waiting if not _stays(one, shown())], workers):
        for number in count(1):
            ended = set()
            for reader in _round(waiting, shown() if number % _ROUNDS else None):
                batch, more = read(reader)
                if not more:
                    ended.add(reader)
                yield reader, batch, more
            waiting = [one for one in waiting if one not in ended]
            if not waiting:
                return


def _stays(reader: SourceReader, shown: str | None) -> bool:
    """Return whether a source is to be read before all others, which needs it here: a long log is
    seen as a preview meanwhile.
    """
    return reader.run == shown and (
        reader.file is None or file_size(reader.file) < LONG
    )


def _round(
    waiting: Sequence[SourceReader], shown: str | None
) -> Sequence[SourceReader]:
    """Return the sources of the next round: those of the shown run as long as there are some.

    Batches that workers send meanwhile from other sources would have to be kept, so sources in
    workers wait for their turn.
    """
    own = [one for one in waiting if one.run == shown and not is_ahead(one)]
    return own or waiting

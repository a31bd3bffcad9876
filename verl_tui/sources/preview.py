"""A preview of a run with long logs, long before they have been read whole.

The beginning of each long log and half a megabyte at its end are read and shown: the state and the
last steps are there as soon for a gigabyte as for a megabyte. Then, for the first few runs, blocks
at regular strides show the shape of the curves. The exact reading goes on behind it and uses
nothing of it, so that a run that was previewed ends up like any other.
"""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple, TypeGuard

from verl_tui import debug_log
from verl_tui.records import Batch, MetricRows, Preview
from verl_tui.sources.files.paths import file_size, status_at
from verl_tui.sources.parts import EndSource, has_parts
from verl_tui.sources.source_reader import source_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

    from verl_tui.records import Record
    from verl_tui.sources.discovery.found import FoundFile
    from verl_tui.sources.source import Source

LONG = 8 * 2**20
"""Bytes from which on a log is previewed: a shorter one is read in a fraction of a second."""
_END = 2**19
"""Bytes read at the end of a long log: some hundred steps, a dozen of a wordy one."""
_SHAPED = 4
"""Number of runs whose blocks at strides are read: the exact reading of all runs waits for them."""
_BLOCKS = 200
"""Most blocks read at strides: about the columns of dots in a chart of the dashboard."""
_BLOCK_BYTES = 3 * 2**20
"""Most bytes read in all blocks of a log."""
_STEPS_A_BLOCK = 2.5
"""Steps' worth of bytes in a block: one that is cut at its beginning, and one that is whole."""

_Row = tuple[int, int, "float | None", "tuple[float, ...]"]
"""Order, step, time and values of a row."""


class PreviewedFile(NamedTuple):
    """A file of a run, with its place among the run's sources."""

    file: FoundFile
    ordinal: int


def previews(
    fresh: Mapping[str, Sequence[PreviewedFile]], shown: str | None = None
) -> Iterator[Preview]:
    """Yield a preview of each run with a long log, the one that is shown first, then those written
    last. A log that cannot be previewed is read as any other.

    Args:
        fresh: The files that are about to be read, by run.
        shown: The run that is shown.
    """
    long = [run for run, files in fresh.items() if any(map(_is_long, files))]
    long.sort(
        key=lambda run: (run == shown, max(map(_modified, fresh[run]))), reverse=True
    )
    for at, run in enumerate(long):
        try:
            yield from islice(_previews(run, fresh[run]), 1 + (at < _SHAPED))
        except Exception as error:  # noqa: BLE001, PERF203 - a net at the border
            debug_log.note_error(f"preview of {run}", error)


def _previews(run: str, files: Sequence[PreviewedFile]) -> Iterator[Preview]:
    """Yield a preview of the ends of a run's logs, and one with what lies between; none if the ends
    do not show its steps, or if it takes all rows between to decide which of several event files
    holds at a step.

    The status of each source says how much of it has been read.

    Raises:
        OSError: A log cannot be read.
    """
    if sum(map(_is_long_by_time, files)) > 1:
        return
    ends: list[Batch] = []
    later: list[tuple[EndSource, Batch]] = []
    """Those with something between."""
    for file, ordinal in files:
        if not has_parts(file.format, file.path):
            if file_size(file.path) <= _END:
                ends.append(_read(run, source_of(file, ordinal)))
            continue
        source = EndSource(file.path, file.format, ordinal, _END)
        end = _read(run, source)
        if not source.start:
            ends.append(end)
            continue
        if source.needs_beginning or source.complete_from is None:
            return  # its steps are known only with what lies before them
        placed = source.log.placed(end.records, source.start)
        ends.append(_of_part(end, source, placed))
        later.append((source, ends[-1]))
    yield Preview(run, tuple(ends))
    between = [_of_part(end, one, _between(one, end.records)) for one, end in later]
    yield Preview(run, tuple(ends), tuple(between))


def _of_part(end: Batch, source: EndSource, records: Sequence[Record]) -> Batch:
    """Return records of a part of a log, with how much of it has been read."""
    read = min(source.cost, source.start)
    return Batch(end.run, end.status._replace(bytes_read=read), tuple(records))


def _read(run: str, source: Source) -> Batch:
    """Return all records of a source, or of the part of a file that it reads."""
    records: list[Record] = []
    more = True
    while more:
        read, more = source.read()
        records += read
    return Batch(run, source.status(), (*records, *source.finish()))


def _between(source: EndSource, end: Sequence[Record]) -> list[MetricRows]:
    """Return rows at strides over what lies before the end of a log."""
    steps = set(chain.from_iterable(one.steps for one in filter(_is_telling, end)))
    length = source.status().size - source.start
    size = int(_STEPS_A_BLOCK * length / max(1, len(steps)))
    count = min(_BLOCKS, _BLOCK_BYTES // size)
    stride = max(size, source.start // (count + 1))
    alike: dict[tuple[str, ...], list[_Row]] = {}
    for at in range(0, min(count * stride, source.start), stride):
        block = source.log.block(at, min(at + size, source.start))
        for rows in filter(_is_telling, block):
            times = rows.times or [None] * len(rows.steps)
            values = zip(*rows.columns, strict=True)
            found = zip(rows.orders, rows.steps, times, values, strict=True)
            alike.setdefault(rows.keys, []).extend(found)
    kept = _of_last_attempt(list(chain(*alike.values())), source.complete_from or 0)
    return [one for keys, rows in alike.items() for one in _joined(keys, rows, kept)]


def _is_telling(record: Record) -> TypeGuard[MetricRows]:
    """Return whether rows state their steps and are complete in themselves."""
    if not isinstance(record, MetricRows):
        return False
    return record.progress and not record.mean and not record.estimated


def _of_last_attempt(rows: Iterable[_Row], end: int) -> set[tuple[int, int]]:
    """Return the places of rows of steps before a step, without those that were made once more
    after a restart.

    The blocks do not show at which step exactly a restart began: as many steps below are left out
    as lie between two blocks at most.
    """
    kept: set[tuple[int, int]] = set()
    least = end - 1
    widest = 0
    went_back = False
    for order, step in sorted({row[:2] for row in rows}, reverse=True):
        if step <= least:
            kept.add((order, step))
            widest = max(widest, least - step)
            least = step
            went_back = False
        elif not went_back:
            least -= widest
            went_back = True
    return kept


def _joined(
    keys: tuple[str, ...], rows: Iterable[_Row], kept: Set[tuple[int, int]]
) -> Iterator[MetricRows]:
    """Yield the rows that are kept of those with the same keys as one record: event files have one
    for each tag in each block.
    """
    if left := [row for row in rows if row[:2] in kept]:
        orders, steps, times, values = zip(*left, strict=True)
        columns = list(zip(*values, strict=True))
        yield MetricRows(keys, steps, columns, orders, () if None in times else times)


def _is_long(one: PreviewedFile) -> bool:
    """Return whether a file is previewed: it has many bytes, and can be read from its end."""
    file = one.file
    return has_parts(file.format, file.path) and file_size(file.path) > LONG


def _is_long_by_time(one: PreviewedFile) -> bool:
    file = one.file
    parted = has_parts(file.format, file.path) and file.format.parts.by_time
    return parted and file_size(file.path) > _END


def _modified(one: PreviewedFile) -> float:
    status = status_at(one.file.path)
    return status.st_mtime if status is not None else 0.0

"""A preview of a run with long logs, long before they have been read whole.

The beginning of each long log and half a megabyte at its end are read and shown: the state and the
last steps are there as soon for a gigabyte as for a megabyte. Then, for the first few runs, blocks
at regular strides show the shape of the curves. The exact reading goes on behind it and uses
nothing of it, so that a run that was previewed ends up like any other.
"""

from __future__ import annotations

from itertools import chain, compress, islice
from typing import TYPE_CHECKING, NamedTuple, TypeGuard, TypeVar

from verl_tui import debug_log
from verl_tui.records import Batch, MetricRows, Preview
from verl_tui.sources.files.paths import file_size
from verl_tui.sources.parts import EndSource, has_parts
from verl_tui.sources.source_reader import source_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence, Set

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

NumberT = TypeVar("NumberT", int, float)


class PreviewedFile(NamedTuple):
    """A file of a run, with its place among the run's sources."""

    file: FoundFile
    ordinal: int


class Previews:
    """The runs that are to be previewed before they are read."""

    def __init__(self) -> None:
        self._files: dict[str, list[PreviewedFile]] = {}

    def add(self, run: str, file: FoundFile, ordinal: int) -> None:
        """Note a file that is about to be read."""
        self._files.setdefault(run, []).append(PreviewedFile(file, ordinal))

    def take(self, shown: str | None = None) -> Iterator[Preview]:
        """Yield previews of each run with a long log, the one that is shown first, then those
        written last: of all of them their ends, then of some also what lies between.

        A log that cannot be previewed is read as any other.
        """
        noted = self._files
        self._files = {}
        long = [run for run, files in noted.items() if any(map(_is_long, files))]
        long.sort(
            key=lambda run: (run == shown, max(map(_modified, noted[run]))),
            reverse=True,
        )
        attempts = [_attempted(run, noted[run]) for run in long]
        for attempt in chain(attempts, attempts[:_SHAPED]):
            yield from islice(attempt, 1)


def _attempted(run: str, files: Sequence[PreviewedFile]) -> Iterator[Preview]:
    """Yield the previews of a run; an error costs those that were still to come."""
    try:
        yield from previews(run, files)
    except Exception as error:  # noqa: BLE001 - a net at the border
        debug_log.note_error(f"preview of {run}", error)


def previews(run: str, files: Sequence[PreviewedFile]) -> Iterator[Preview]:
    """Yield a preview of a run's ends, and one with what lies between; none if the ends of its logs
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
    for one in files:
        file = one.file
        if has_parts(file.format, file.path):
            source = EndSource(file.path, file.format, one.ordinal, _END)
            end = _read(run, source)
            if source.start:
                if source.needs_beginning or source.complete_from is None:
                    return  # its steps are known only with what lies before them
                end = _of_part(
                    end, source, source.log.placed(end.records, source.start)
                )
                later.append((source, end))
            ends.append(end)
        elif file_size(file.path) <= _END:
            ends.append(_read(run, source_of(file, one.ordinal)))
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
    alike: dict[tuple[tuple[str, ...], bool], list[MetricRows]] = {}
    for at in range(0, min(count * stride, source.start), stride):
        block = source.log.block(at, min(at + size, source.start))
        for rows in filter(_is_telling, block):
            alike.setdefault((rows.keys, bool(rows.times)), []).append(rows)
    places = set(chain.from_iterable(map(_places, alike.values())))
    kept = _of_last_attempt(places, source.complete_from or 0)
    return [rows for one in alike.values() for rows in _joined(one, kept)]


def _is_telling(record: Record) -> TypeGuard[MetricRows]:
    """Return whether rows state their steps and are complete in themselves."""
    if not isinstance(record, MetricRows):
        return False
    return record.progress and not record.mean and not record.estimated


def _places(blocks: Sequence[MetricRows]) -> Iterator[tuple[int, int]]:
    """Yield the order and the step of each row."""
    for rows in blocks:
        yield from zip(rows.orders, rows.steps, strict=True)


def _of_last_attempt(places: Set[tuple[int, int]], end: int) -> set[tuple[int, int]]:
    """Return the places of rows of steps before a step, without those that were made once more
    after a restart.

    The blocks do not show at which step exactly a restart began: as many steps below are left out
    as lie between two blocks at most.
    """
    kept: set[tuple[int, int]] = set()
    least = end - 1
    widest = 0
    went_back = False
    for order, step in sorted(places, reverse=True):
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
    blocks: Sequence[MetricRows], kept: Set[tuple[int, int]]
) -> Iterator[MetricRows]:
    """Yield the rows that are kept of blocks with the same keys as one record: event files have one
    for each tag in each block.
    """
    stays = [place in kept for place in _places(blocks)]
    if not any(stays):
        return

    def joined(parts: Iterable[Sequence[NumberT]]) -> list[NumberT]:
        return list(compress(chain.from_iterable(parts), stays))

    columns = zip(*[rows.columns for rows in blocks], strict=True)
    yield blocks[0]._replace(
        steps=joined(rows.steps for rows in blocks),
        columns=tuple(map(joined, columns)),
        orders=joined(rows.orders for rows in blocks),
        times=joined(rows.times for rows in blocks),
    )


def _is_long(one: PreviewedFile) -> bool:
    """Return whether a file is previewed: it has many bytes, and can be read from its end."""
    file = one.file
    return has_parts(file.format, file.path) and file_size(file.path) > LONG


def _is_long_by_time(one: PreviewedFile) -> bool:
    file = one.file
    if not has_parts(file.format, file.path) or not file.format.parts.by_time:
        return False
    return file_size(file.path) > _END


def _modified(one: PreviewedFile) -> float:
    try:
        return one.file.path.stat().st_mtime
    except OSError:
        return 0.0

"""A preview of a run with long logs, long before they have been read whole.

The beginning of each long log and half a megabyte at its end are read and shown: the state and the
last steps are there as soon for a gigabyte as for a megabyte. Then, for the first few runs, blocks
at regular strides show the shape of the curves. The exact reading goes on behind it and uses
nothing of it, so that a run that was previewed ends up like any other.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from itertools import chain, compress, islice
from typing import TYPE_CHECKING

from verl_tui import debug_log
from verl_tui.records import Batch, MetricRows, Preview
from verl_tui.sources.end_source import EndSource
from verl_tui.sources.files.paths import file_size
from verl_tui.sources.parts import has_parts
from verl_tui.sources.source_reader import source_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from verl_tui.records import Record, SourceStatus
    from verl_tui.sources.discovery.found import FoundFile
    from verl_tui.sources.parts import LogParts
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


@dataclass(frozen=True, slots=True)
class PreviewedFile:
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
            if not _tells_steps(source):
                return
            if source.start:
                later.append((source, end))
                end = _in_place(end, source)
            ends.append(end)
        elif file_size(file.path) <= _END:
            ends.append(_read(run, source_of(file, one.ordinal)))
    yield Preview(run, tuple(ends))
    between = [_between(end, source) for source, end in later]
    yield Preview(run, tuple(ends), tuple(between))


def _tells_steps(source: EndSource) -> bool:
    """Return whether the steps of what was read are known without what lies before it."""
    if not source.start:
        return True
    return not source.needs_beginning and source.complete_from is not None


def _in_place(end: Batch, source: EndSource) -> Batch:
    """Return the end of a log with its place in it, and with how much has been read."""
    placed = tuple(_placed(source.parts, end.records, source.start))
    return Batch(end.run, _status(end, source), placed)


def _between(end: Batch, source: EndSource) -> Batch:
    """Return rows at strides over what lies before the end of a log."""
    rows = _joined(_Blocks(source, end.records).read())
    earlier = tuple(_earlier(rows, source.complete_from or 0))
    return Batch(end.run, _status(end, source), earlier)


def _status(end: Batch, source: EndSource) -> SourceStatus:
    return end.status._replace(bytes_read=min(source.cost, source.start))


def _read(run: str, source: Source) -> Batch:
    """Return all records of a source, or of the part of a file that it reads."""
    records: list[Record] = []
    more = True
    while more:
        read, more = source.read()
        records += read
    return Batch(run, source.status(), (*records, *source.finish()))


class _Blocks:
    """Blocks of a log at strides, from its beginning to where its end was read."""

    def __init__(self, source: EndSource, end: Sequence[Record]) -> None:
        steps = set(chain.from_iterable(one.steps for one in _training_rows(end)))
        length = source.status().size - source.start
        self._source = source
        self._size = int(_STEPS_A_BLOCK * length / max(1, len(steps)))

    def read(self) -> Iterator[MetricRows]:
        """Yield the rows that lie whole in a block, in the order of the file."""
        count = min(_BLOCKS, _BLOCK_BYTES // self._size)
        stride = max(self._size, self._source.start // (count + 1))
        for at in range(0, count * stride, stride):
            yield from self._rows(at, min(at + self._size, self._source.start))

    def _rows(self, at: int, stop: int) -> Iterator[MetricRows]:
        start = self._source.parts.begin(at, stop) if at < stop else None
        if start is None:
            return
        part = self._source.parts.part(start, stop)
        if not part.needs_beginning:
            yield from _training_rows(_placed(self._source.parts, part.records, start))


def _training_rows(records: Iterable[Record]) -> Iterator[MetricRows]:
    """Yield the rows that state their step and are complete in themselves."""
    for record in records:
        if not isinstance(record, MetricRows) or record.mean or record.estimated:
            continue
        if record.progress:
            yield record


def _joined(rows: Iterable[MetricRows]) -> Iterator[MetricRows]:
    """Yield the rows of all blocks with the same keys as one record: event files have one for each
    tag in each block.
    """
    alike: dict[tuple[tuple[str, ...], bool], list[MetricRows]] = {}
    for one in rows:
        alike.setdefault((one.keys, bool(one.times)), []).append(one)
    together = chain.from_iterable
    for found in alike.values():
        columns = zip(*[rows.columns for rows in found], strict=True)
        yield found[0]._replace(
            steps=array("q", together([rows.steps for rows in found])),
            columns=tuple([array("d", together(parts)) for parts in columns]),
            orders=list(together([rows.orders for rows in found])),
            times=list(together([rows.times for rows in found])),
        )


def _earlier(rows: Iterable[MetricRows], end: int) -> Iterator[MetricRows]:
    """Yield rows of steps before a step, without those that were made once more after a restart.

    The blocks do not show at which step exactly a restart began: as many steps below are left out
    as lie between two blocks at most.
    """
    found = list(rows)
    places = list(chain.from_iterable(map(_places, found)))
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
    for one in found:
        stays = [place in kept for place in _places(one)]
        yield from _only(one, stays)


def _places(rows: MetricRows) -> Iterable[tuple[int, int]]:
    """Return the order and the step of each row."""
    return zip(rows.orders, rows.steps, strict=True)


def _only(rows: MetricRows, stays: Sequence[bool]) -> Iterator[MetricRows]:
    """Yield the rows that stay, if there are any."""
    if all(stays):
        yield rows
    elif any(stays):
        yield rows._replace(
            steps=array("q", compress(rows.steps, stays)),
            columns=tuple(
                [array("d", compress(column, stays)) for column in rows.columns]
            ),
            orders=list(compress(rows.orders, stays)),
            times=tuple(compress(rows.times, stays)),
        )


def _placed(log: LogParts, records: Iterable[Record], start: int) -> Iterable[Record]:
    """Return the records of a part with its rows' orders counted from its first byte on: no row is
    shorter than one. Orders that are times stay.
    """
    if log.by_time:
        return records
    return [_ordered_from(record, start) for record in records]


def _ordered_from(record: Record, start: int) -> Record:
    if not isinstance(record, MetricRows):
        return record
    return record._replace(orders=[order + start for order in record.orders])


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

"""Logs of records as LevelDB writes them: blocks of 32 KiB, in them chunks of a checksum, a
length, a type and data; a chunk is a whole record or the first, a middle or the last part of one
(https://github.com/google/leveldb/blob/main/doc/log_format.md, core/pkg/leveldb/record.go of
wandb). The checksum is not LevelDB's: it is the plain CRC-32 of type and data, as in zlib.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from struct import Struct

from verl_tui.records import Records, Settings, Unreadable
from verl_tui.sources.fields.protobuf import message
from verl_tui.sources.fields.row_batcher import Item, RowBatcher
from verl_tui.sources.fields.setting_values import flatten_settings
from verl_tui.sources.formats.format import Reader
from verl_tui.toml_tables import toml_table

_TEXTS = toml_table(__file__, "trackers.toml")
"""Names of fields that hold texts about a run, with their numbers."""
BLOCK = 32 * 1024
_CHUNK = Struct("<IHB")
"""Checksum, length and type."""
FULL, FIRST, MIDDLE, LAST = 1, 2, 3, 4


class RecordLog(Reader):
    """Takes a log apart into records; what is damaged costs the rest of its block, which is
    LevelDB's own rule.
    """

    header: bytes
    """What the file begins with."""

    def __init__(self, _path: object = None) -> None:
        self._batcher = RowBatcher()
        self._data = b""
        """Bytes that wait for more."""
        self._place = 0
        """Their place in the file."""
        self._at = 0
        """Where in them, or behind them, the next chunk begins."""
        self._parts: list[bytes] | None = None
        """Chunks of a record whose last one is to come."""
        self._count = 0
        """Records so far."""

    def decode(self, record: bytes, number: int) -> Iterable[Item]:
        """Return what a record says; raises ValueError where it is none.

        Args:
            record: Its bytes.
            number: Its number in the file, from 1.
        """
        raise NotImplementedError

    def about(self, record: bytes, kind: str) -> Iterator[Settings]:
        """Yield the texts in a message of a kind, `wandb.run`, as settings."""
        found = message(record)
        of, _, part = kind.partition(".")
        fields = _TEXTS[of][part].items()
        texts = {one: found.text(field) for one, field in fields if field in found}
        if texts:
            yield Settings(flatten_settings({of: texts}))

    def titles(self, begin: bytes, key: str) -> list[str]:
        """Return what a log that begins so calls its run, at each place that states settings: by
        one of these, or empty.
        """
        settings = (one for one in self.feed(begin) if isinstance(one, Settings))
        return [str(one.values.get(key) or "") for one in settings]

    def lose(self) -> None:
        """Go on behind a part of the log that is lost; most need do nothing."""

    @property
    def note(self) -> str | None:
        """Return a note on replaced records."""
        return self._batcher.note

    def feed(self, data: bytes) -> Records:
        """Return the records that these bytes complete."""
        done = min(self._at, len(self._data))
        self._data = self._data[done:] + data
        self._place += done
        self._at -= done
        if not self._place + self._at and len(self._data) >= len(self.header):
            if not self._data.startswith(self.header):
                self._odd("not the header of such a log, or of an unknown version")
            self._at = len(self.header)
        while self._place + self._at and self._chunk():
            pass
        return self._batcher.take()

    def _chunk(self) -> bool:
        """Read the next chunk; false while it is not there."""
        data, at = self._data, self._at
        left = BLOCK - (self._place + at) % BLOCK
        begin = at + _CHUNK.size
        if left < _CHUNK.size:  # too little for a chunk: filled with zeros
            self._at += left
            return True
        if begin > len(data):
            return False
        checksum, length, kind = _CHUNK.unpack_from(data, at)
        end = begin + length
        if length <= left - _CHUNK.size:
            if end > len(data):
                return False
            body = data[begin - 1 : end]
            if zlib.crc32(body) == checksum:
                self._add_chunk(kind, body[1:])
                self._at = end
                return True
        self._odd("a damaged chunk")
        # The bytes after it may belong to another record and to a later step.
        self._parts = None
        self.lose()
        self._at += left
        return True

    def _add_chunk(self, kind: int, part: bytes) -> None:
        """Add a chunk to its record; a part whose beginning was lost is left out."""
        if kind in (FULL, FIRST):
            if self._parts is not None:
                self._odd("a record without an end before this one")
                self.lose()
            self._parts = []
        if self._parts is None:
            return
        self._parts.append(part)
        if kind in (FULL, LAST):
            record, self._parts = b"".join(self._parts), None
            try:
                self._batcher.add(self.decode(record, self._count + 1))
            except (ValueError, RecursionError) as error:
                self._odd(str(error))
                self.lose()
            self._count += 1

    def _odd(self, reason: str) -> None:
        where = f"{reason} at byte {self._place + self._at:,}"
        self._batcher.add((Unreadable(self._count + 1, where, ""),))

"""SwanLab's log of a run, `swanlog/run-<time>-<id>/run-<id>.swanlab`, as it lies on disk, uploaded
or not: the chunks of W&B's log after another header (swanlab 0.10,
swanlab/sdk/internal/core_python/store/__init__.py), and messages of its own
(protos/swanlab/record/v1/record.proto). SwanLab keeps what it writes in a buffer, so the newest
values come late.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from struct import unpack

from verl_tui.records import Event, EventKind
from verl_tui.sources.fields.protobuf import MessageFields, message, seconds
from verl_tui.sources.fields.row_batcher import Item, MetricRow
from verl_tui.sources.formats.record_log import RecordLog
from verl_tui.text import one_line, safe

name = "SwanLab run"
rank = 4
anchor = True

HEADER = b":SWL\xd6\xe1\x02"
"""Name, magic number 0xE1D6 and version."""
_START, _FINISH, _SCALAR = 10, 11, 13  # Record
_NAME = "swanlab.name"
_STATE, _ERROR = 1, 2  # FinishRecord
_KEY, _STEP, _TIME, _VALUE = 1, 2, 4, 5  # ScalarRecord
_ENDS = {
    1: (EventKind.EXITED, "SwanLab: the run has finished"),
    2: (EventKind.FATAL, "SwanLab: the run has crashed"),
    3: (EventKind.STOPPED, "SwanLab: the run was interrupted by its user"),
}
"""By RunState."""
_MACHINE = "__swanlab__."
"""Begins the names of figures of the machine (swanlab/sdk/internal/pkg/helper/system.py)."""


def matches(path: Path, head: bytes) -> bool:
    """Return whether a `.swanlab` begins as SwanLab begins it, as far as it has been written."""
    return path.suffix == ".swanlab" and HEADER.startswith(head[: len(HEADER)])


def run_title(begin: bytes) -> str:
    """Return the name of the run whose log begins so, empty where that does not state it."""
    return next(iter(SwanLabReader().titles(begin, _NAME)), "")


class SwanLabReader(RecordLog):
    """Reads one file, each of whose records states all that it needs."""

    header = HEADER

    def decode(self, record: bytes, number: int) -> Iterable[Item]:
        """Return the row, the identity of the run, or its end that a record states."""
        found = message(record)
        if part := found.part(_SCALAR):
            return (_scalar(message(part)),)
        if part := found.part(_START):
            return self.about(part, "swanlab.run")
        end = message(found.part(_FINISH) or b"")
        kind, said = _ENDS.get(end.integer(_STATE), (None, ""))
        if not kind:
            return ()
        error = one_line(end.text(_ERROR), 400)
        return (Event(kind, f"{said}: {error}" if error else said, number),)


def _scalar(found: MessageFields) -> MetricRow:
    key = safe(found.text(_KEY), 300)
    own = key.removeprefix(_MACHINE)
    trained = own == key
    value = message(found.part(_VALUE) or b"").part(1)
    return MetricRow(
        found.integer(_STEP),
        (key if trained else f"system/{own}",),
        (unpack("<d", value)[0] if value else 0.0,),
        seconds(found.part(_TIME) or b"") or None,
        mean=not trained,
        progress=trained,
    )


reader = SwanLabReader

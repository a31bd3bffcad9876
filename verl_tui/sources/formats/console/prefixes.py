"""What stands before the text of a console's line, and Ray's count behind it: names of the process
that printed it, and before those the additions of containers, schedulers and log collectors.
"""

from __future__ import annotations

from typing import AnyStr, NamedTuple

from verl_tui.patterns import pattern

_PROCESS = pattern(
    rb"\s?(?:\((?:[^()\s]+ )?(?:pid=[^()]*|raylet[^()]*)\)|\[rank\d+\]:) ?"
)
"""Ray's `(TaskRunner pid=12, ip=10.0.0.2) `, torchrun's `[rank0]: `."""
ANOTHER = r"\s*(?:\((?:[^()\s]+ )?pid=|\[rank\d|\[?20\d\d-\d\d-\d\d|(?:DEBUG|INFO|WARN|ERROR)\w*\b)"
"""Begins what another process prints, also right behind something else."""
_TIME = rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
_ADDED = pattern(
    rb"(?:(?:"
    rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)(?: std(?:out|err) [FP])?"
    rb"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?: [\w.-]{1,80} [\w./-]{1,80}\[\d{1,9}\]:)?"
    rb"|[\w.-]{1,80}-\d{1,9} {1,40}\|"
    rb"|\[pod/[\w./-]{1,200}\]"
    rb"|\[(?!rank)[a-z]{1,20}\d{1,6}\]:"
    rb"|\[[\w@,.-]{1,80}\]<std(?:out|err)>:"
    rb"|\([\w-]{1,80}, (?:rank=\d{1,9}, )?pid=[^()]{1,80}\)"
    rb"| {0,5}\d{1,5}:(?= )|(?:\d{1,3}\.){3}\d{1,3}:(?= )"
    rb"|\[" + _TIME + rb"\](?= )"
    rb")(?: |(?<=:)|$)){1,3}"
)
"""Times with their zones, CRI's with the stream; syslog; Docker Compose; `kubectl --prefix`;
torchrun's `--tee`; `mpirun --tag-output`; SkyPilot; `srun --label`, pdsh by address; `ts`.
"""

_REPEATED = r"\[repeated (\d+)x across cluster\]"
_IN_TEXT = pattern(_REPEATED)
_IN_BYTES = pattern(_REPEATED.encode())
"""Ray's note behind a line that many processes printed."""
_MOST_DIGITS = 9


class LineParts(NamedTuple):
    """A line in its parts."""

    added: bytes
    """What was put before the line after it was printed."""
    prefix: bytes
    """Ray's prefix, or torchrun's."""
    text: bytes


def printed(line: bytes) -> LineParts:
    """Return the parts of a line as it was printed, to which nothing was added."""
    return _parted(line, 0)


def parted(line: bytes) -> LineParts:
    """Return the parts of a line without colours."""
    added = _ADDED.match(line)
    return _parted(line, added.end() if added is not None else 0)


def _parted(line: bytes, at: int) -> LineParts:
    prefix = _PROCESS.match(line, at)
    end = prefix.end() if prefix is not None else at
    return LineParts(line[:at], line[at:end], line[end:])


def unrepeated(line: AnyStr) -> tuple[AnyStr, int]:
    """Return a line without the note, and how often the note says that it was printed."""
    found = _IN_TEXT.search(line) if isinstance(line, str) else _IN_BYTES.search(line)
    if found is None:
        return line, 1
    return line[: found.start()].rstrip(), max(1, int(found[1][:_MOST_DIGITS]))

"""Prefixes of a console's lines: Ray's and torchrun's names of the process that printed them, and
before those the additions of containers, schedulers and log collectors.
"""

from __future__ import annotations

from typing import NamedTuple

from verl_tui.patterns import pattern

PREFIX = pattern(
    rb"^\s?(?:\((?:[^()\s]+ )?(?:pid=[^()]*|raylet[^()]*)\)|\[rank\d+\]:) ?"
)
"""Ray's `(TaskRunner pid=12, ip=10.0.0.2) `, torchrun's `[rank0]: `."""
ANOTHER = r"\s*(?:\((?:[^()\s]+ )?pid=|\[rank\d|\[?20\d\d-\d\d-\d\d|(?:DEBUG|INFO|WARN|ERROR)\w*\b)"
"""Begins what another process prints, also right behind something else."""
_TIME = rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
_CERTAIN = pattern(
    rb"(?:(?:"
    rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)(?: std(?:out|err) [FP])?"
    rb"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?: [\w.-]{1,80} [\w./-]{1,80}\[\d{1,9}\]:)?"
    rb"|[\w.-]{1,80}-\d{1,9} {1,40}\|"
    rb"|\[pod/[\w./-]{1,200}\]"
    rb"|\[(?!rank)[a-z]{1,20}\d{1,6}\]:"
    rb"|\[[\w@,.-]{1,80}\]<std(?:out|err)>:"
    rb"|\([\w-]{1,80}, (?:rank=\d{1,9}, )?pid=[^()]{1,80}\)"
    rb")(?: |(?<=:)|$)){1,3}"
)
"""Times with their zones, CRI's with the stream; syslog; Docker Compose; `kubectl --prefix`;
torchrun's `--tee`; `mpirun --tag-output`; SkyPilot. Nothing that is printed begins like this.
"""
_USUAL = pattern(
    rb"(?:(?P<label> {0,5}\d{1,9}:)"
    rb"|(?P<host>[A-Za-z][\w.-]{0,80}\d[\w.-]{0,80}:|(?:\d{1,3}\.){3}\d{1,3}:)"
    rb"|(?P<number>\d{1,9}\t" + _TIME + rb")"
    rb"|(?P<quote>>)"
    rb"|(?P<time>\[" + _TIME + rb"\]|" + _TIME + rb")"
    rb"|(?P<pod>[a-z0-9]{1,40}(?:-[a-z0-9.]{1,40}){1,9} [a-z0-9]{1,40}(?:-[a-z0-9.]{1,40}){0,9})"
    rb")(?:[ \t]|$)"
)
"""`srun --label`, pdsh, consoles that number their lines, quotes, `ts`, stern: what is printed may
begin like this, too.
"""
_ENOUGH = 20
"""Number of first lines that begin alike without having been printed that way."""


class LineWithLead(NamedTuple):
    """A line without what stands before it."""

    lead: bytes
    """The lead that was added after printing."""
    prefix: bytes
    """Ray's prefix, or torchrun's."""
    text: bytes


def without_hole(line: bytes) -> bytes:
    """Return a line without the zeros that a crash or a cut file with an open writer leaves before
    it: there may be gigabytes.
    """
    if not line.startswith(b"\0"):
        return line
    return line.lstrip(b"\0")


def printed(line: bytes) -> LineWithLead:
    """Return the parts of a line as it was printed."""
    return _parted(line, 0)


def certain_parts(line: bytes) -> LineWithLead:
    """Return the parts of a line by itself, whatever lines before it begin with."""
    certain = _CERTAIN.match(line)
    return _parted(line, certain.end() if certain is not None else 0)


def _parted(line: bytes, at: int) -> LineWithLead:
    lead, text = line[:at], line[at:]
    prefix = PREFIX.match(text)
    if prefix is None:
        return LineWithLead(lead, b"", text)
    return LineWithLead(lead, prefix.group(), text[prefix.end() :])


class LeadReader:
    """Strips the leads from the lines of one console."""

    def __init__(self) -> None:
        self._usual: str | None = ""
        """How all lines so far begin, None once one of the first began otherwise."""
        self._lines = 0
        """Lines that began so."""

    @property
    def are_known(self) -> bool:
        """True once no further line changes how leads are told from what was printed."""
        return self._usual is None or self._lines >= _ENOUGH

    def read(self, line: bytes) -> LineWithLead:
        """Return a line in its parts.

        Args:
            line: The line, from its beginning on and without colours.
        """
        certain = _CERTAIN.match(line)
        at = certain.end() if certain is not None else 0
        if self._usual is not None and line.strip():
            at = self._read_usual(line, at)
        return _parted(line, at)

    def _read_usual(self, line: bytes, at: int) -> int:
        """Return where the text begins behind the lead that all lines share."""
        found = _USUAL.match(line, at)
        kind = found.lastgroup if found is not None else None
        if self._lines == 0:
            self._usual = kind
        if found is not None and kind == self._usual:
            self._lines += 1
            return found.end()
        if self._lines < _ENOUGH:
            self._usual = None
        return at

"""Prefixes of a console's lines: Ray's and torchrun's names of the process that printed them, and
before those the additions of containers, schedulers and log collectors.
"""

from __future__ import annotations

import re
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
_FEW = 3
"""Lines that show what is common to all, where one of them shows that it was printed, too."""
_LEVEL = rb"(?:DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL|std(?:out|err))\b *"
_VARIES = pattern(rb"(?P<number>^ *\d+|\d+)|\b" + _LEVEL)
"""Parts that differ from line to line of the same lead."""
_AS_NUMBER, _AS_LEVEL = b"\x00", b"\x01"
"""Their placeholders in the form of a line."""
_FORM = 160
"""First bytes of a line in which its lead is looked for."""
_LAST_MARK = pattern(rb"^.*[\s:|\]>]", re.DOTALL)
"""A lead ends with one of these."""
_RAY = pattern(rb"\((?:[^()\s]+ )?(?:pid=|raylet)|\[rank\x00\]:")
_PRINTED = pattern(rb"\s*$|\s{2,}\S|\((?:[^()\s]+ )?pid=")
"""Blank and indented lines, and what Ray prefixes: a logger's own sentences are none of these."""


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
    prefix = PREFIX.match(line)
    if prefix is None:
        return LineWithLead(b"", b"", line)
    return LineWithLead(b"", prefix.group(), line[prefix.end() :])


def certain_parts(line: bytes) -> LineWithLead:
    """Return the parts of a line by itself, whatever lines before it begin with."""
    certain = _CERTAIN.match(line)
    return _parted(line, certain.end() if certain is not None else 0)


def _parted(line: bytes, at: int) -> LineWithLead:
    if at:
        return printed(line[at:])._replace(lead=line[:at])
    return printed(line)


class CommonLead:
    """Learns what all lines of a console begin with but for numbers and levels: `grep -n`, `cat
    -n`, loggers that are given what a process prints, CI and schedulers.
    """

    def __init__(self) -> None:
        self._form: bytes | None = None
        """How all lines so far begin, None before the first."""
        self._lines = 0
        self._lead: re.Pattern[bytes] | None = None
        self._has_text = False
        """True once a line said something behind it."""
        self._certain = False
        """True once something was printed behind it that nobody logs."""

    def end(self, text: bytes) -> int:
        """Return where a line's lead ends, 0 if it has none or too few lines have shown it."""
        if self._form == b"":
            return 0
        found = self._lead.match(text) if self._lead is not None else None
        if found is None and not self._certain:
            found = self._learn(text)
        if found is None:
            return 0
        if not self._certain:
            self._certain = (
                self._has_text and _PRINTED.match(text, found.end()) is not None
            )
            self._has_text = self._has_text or bool(text[found.end() :].strip())
        return found.end() if self._certain else 0

    def _learn(self, text: bytes) -> re.Match[bytes] | None:
        """Take another line into account; return where the lead that remains lies in it."""
        form = _VARIES.sub(_stand_in, text[:_FORM])
        self._lines += 1
        self._form = form if self._form is None else _common(self._form, form)
        if ray := _RAY.search(self._form):
            self._form = self._form[: ray.start()]
        if self._lines < _FEW or not self._form:
            return None
        mark = _LAST_MARK.match(self._form)
        self._form = mark.group() if mark is not None else b""
        self._lead = _compiled(self._form) if self._form else None
        if self._lead is None:
            return None
        return self._lead.match(text)


def _common(one: bytes, other: bytes) -> bytes:
    """Return what both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    end = next(
        (i for i, (left, right) in pairs if left != right), min(len(one), len(other))
    )
    return one[:end]


def _stand_in(found: re.Match[bytes]) -> bytes:
    return _AS_NUMBER if found["number"] else _AS_LEVEL


def _compiled(form: bytes) -> re.Pattern[bytes]:
    """Return the pattern of a lead from the form of its lines."""
    escaped = re.escape(form)
    numbered = escaped.replace(re.escape(_AS_NUMBER), rb" *\d+")
    return re.compile(numbered.replace(re.escape(_AS_LEVEL), _LEVEL))


class LeadReader:
    """Strips the leads from the lines of one console."""

    def __init__(self) -> None:
        self._usual: str | None = ""
        """How all lines so far begin, None once one of the first began otherwise."""
        self._lines = 0
        """Lines that began so."""
        self._common = CommonLead()

    def read(self, line: bytes) -> LineWithLead:
        """Return a line in its parts.

        Args:
            line: The line, from its beginning on and without colours.
        """
        certain = _CERTAIN.match(line)
        at = certain.end() if certain is not None else 0
        if self._usual is not None and line.strip():
            at = self._read_usual(line, at)
        return _parted(line, at + self._common.end(line[at:]))

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

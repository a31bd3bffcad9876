"""HTTP addresses among the paths that a user named, and the runs that they tell of, as sources: of
pages of metrics, and of servers.
"""

from __future__ import annotations

import re
from collections import deque
from pathlib import Path
from time import localtime, strftime
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from verl_tui.patterns import pattern
from verl_tui.sources.fields.row_batcher import RowBatcher, joined_notes
from verl_tui.sources.files import Source
from verl_tui.sources.formats.prometheus_text import reader as pages
from verl_tui.sources.formats.prometheus_text.series import PrometheusSeries, StepRows
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.records import Records, SourceStatus
    from verl_tui.sources.formats.prometheus_text.reader import PageSample


_SCHEME = pattern(r"https?://", re.IGNORECASE)
_PORTS = {"http": 80, "https": 443}


class Unreached(NamedTuple):
    """An address that nothing has come from so far."""

    address: str
    reason: str
    since: float | None
    """When it was asked first without an answer, None if it is still being asked for the first
    time.
    """

    @property
    def sentence(self) -> str:
        """Sentence for headless commands."""
        return f"{self.address}: {self.reason}{asked_again(self.since)}"


def asked_again(since: float | None) -> str:
    """Return what is added to a reason for which nothing comes."""
    if since is None:
        return ""
    return f" (since {strftime('%H:%M:%S', localtime(since))}; it is asked again)"


class NoAnswerError(Exception):
    """A question without an answer; its text is a sentence for people without a subject: `refuses
    the connection`.
    """

    def __init__(self, why: str, status: int | None = None, body: bytes = b"") -> None:
        super().__init__(why)
        self.status = status
        """The answer, None if there was none."""
        self.body = body
        """The beginning of what it said."""


def is_meant(spec: str) -> bool:
    """Return whether what the user named is an address."""
    return _SCHEME.match(spec) is not None


def parse_address(spec: str) -> str:
    """Return the address that a user named, in its usual spelling; it holds no login.

    Raises:
        ValueError: It is none that can be asked; the message says why, for people.
    """
    if not spec.isprintable() or not spec.isascii() or " " in spec:
        raise ValueError("an address has only ASCII letters and no spaces")
    try:
        parts = urlsplit(spec)
        port = parts.port
    except ValueError as error:
        raise ValueError(f"is no address: {one_line(str(error), 100)}") from error
    if "@" in parts.netloc:
        raise ValueError(
            "a login in an address is seen by everybody on this machine: "
            "put a header into VERL_TUI_HTTP_AUTHORIZATION"
        )
    if not parts.hostname:
        raise ValueError("has no host in it")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    if port not in (None, _PORTS[parts.scheme]):
        host = f"{host}:{port}"
    return urlunsplit((parts.scheme, host, parts.path or "/", parts.query, ""))


def without_login(spec: str) -> str:
    """Return what the user named as it may be shown, without a login."""
    return one_line(re.sub(r"(?<=://)[^/]*@", "", spec), 200)


# -- what they tell of ----------------------------------------------------------------------------

SERVER = "Prometheus server"
"""The format of what a server tells."""


class AskedAddress:
    """What an address has answered."""

    problem: str | None = None
    """Why it did not answer when it was asked last."""
    since: float | None = None
    """Since when it has not answered."""
    flaw: tuple[int, str] | None = None
    """The line of its newest page from which that could not be read, and why."""
    received = 0
    """Bytes of all answers."""
    rounds = 0
    """Number of completed polls, with an answer or without."""

    def __init__(self, address: str) -> None:
        self.address = address


class AddressRun(Source):
    """One run that an address tells of, as a source: its records are made in one thread and taken
    in another.
    """

    format = SERVER
    rank = 1  # any log of the run knows more
    absolute = True

    def __init__(self, name: str, asked: AskedAddress) -> None:
        super().__init__(Path())
        self.name = name
        self.asked = asked
        self._rows = StepRows()
        self._batcher = RowBatcher()
        self._ready: deque[Records] = deque()

    def add(self, lines: Sequence[PrometheusSeries]) -> bool:
        """Make rows of new series; return whether there are any."""
        self._batcher.add(self._rows.records(lines))
        records = self._batcher.take()
        if records:
            self._ready.append(records)
        return bool(records)

    def read(self) -> tuple[Records, bool]:
        """Return the next records, and whether more wait."""
        records = self._ready.popleft() if self._ready else ()
        return self.counted(records), bool(self._ready)

    @property
    def note(self) -> str | None:
        """Return what should be known of its figures."""
        line, why = self.asked.flaw or (0, "")
        flaw = f"line {line:,} of the page {why}" if why else None
        return joined_notes(self._rows.note, flaw)

    def status(self) -> SourceStatus:
        """Return how the source is doing."""
        asked = self.asked
        return (
            super()
            .status()
            ._replace(
                path=asked.address,
                bytes_read=asked.received if self._records and not self._ready else 0,
                size=asked.received,
                problem=asked.problem and f"{asked.problem}{asked_again(asked.since)}",
                findings=self._rows.findings,
            )
        )


class PageRun(AddressRun):
    """One run that pages tell of."""

    format = pages.name

    def __init__(self, name: str, asked: AskedAddress) -> None:
        super().__init__(name, asked)
        self._figures = pages.PageFigures(pages.instance_of(asked.address))

    def add_page(self, samples: Sequence[PageSample], at: float) -> None:
        """Add its samples of a page that was asked for at a time."""
        if self.add(self._figures.series(samples, at)):
            self._modified = at

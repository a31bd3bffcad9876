"""Files with saved pages of metrics: `curl … > node.prom`, textfiles of node_exporter."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from verl_tui.sources.fields.row_batcher import RowBatcher, joined_notes
from verl_tui.sources.files.compressed import head
from verl_tui.sources.files.paths import escaped, file_and_part, status_at
from verl_tui.sources.formats.documents import WholeReader
from verl_tui.sources.formats.prometheus_text.figures import PageFigures
from verl_tui.sources.formats.prometheus_text.page import (
    NOBODYS,
    SAMPLE,
    TYPE,
    Scrape,
    read_saved,
)
from verl_tui.sources.formats.prometheus_text.rows import StepRows

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from verl_tui.records import Record

name = "Prometheus metrics"
rank = 1  # the newest value that somebody came by to see: any log of the run knows more
anchor = True

LARGEST = 32 * 2**20
"""Bytes of a page; Prometheus itself takes what is given, exporters of large clusters write some
MB.
"""


def matches(path: Path, head: bytes) -> bool:
    """Return True if a file begins like a page of metrics: with a metric's type and sample."""
    begin = b"\n".join(head.split(b"\n", 60)[:60]).decode("utf-8", "replace")
    lines = list(filter(str.strip, begin.split("\n")))
    if not lines:
        return False
    if not lines[0].startswith("#"):
        return path.suffix.lower() == ".prom" and bool(SAMPLE.fullmatch(lines[0]))
    if not any(map(TYPE.fullmatch, lines)):
        return False
    sample = next((line for line in lines if not line.startswith("#")), None)
    return sample is None or SAMPLE.match(sample) is not None


def part_of(run: str) -> str:
    """Return what stands for a run of a page in a path below its file; `-` for what is nobody's."""
    part = escaped(run)
    if part.strip(".") not in ("", "-"):
        return part
    return "".join(f"%{ord(sign):02X}" for sign in part) or "-"


def is_told(scrape: Scrape) -> bool:
    """Return whether samples hold any figure of a run or of a machine."""
    lines, keys = PageFigures(totals=True).take({"": (scrape, None)}, 0.0)
    return any(True for _ in StepRows().take(lines, keys))


def reader(path: Path) -> PageReader:
    """Return a reader for one file."""
    return PageReader(path)


class PageReader(WholeReader):
    """Waits for the whole page; each page that takes the place of the one before is one more
    moment.
    """

    ends = ()  # only the file's end shows that a page is complete

    def __init__(self, path: Path) -> None:
        super().__init__(LARGEST)
        self._path, self._part = file_and_part(path)
        self._lines = 0
        """Lines of the pages before."""
        self._others = 0
        """Runs besides the one shown, where it is unknown which is meant."""
        self._at = -math.inf
        self._figures = PageFigures(totals=True)
        self._rows = StepRows()
        self._batcher = RowBatcher()

    @property
    def note(self) -> str | None:
        """Return a note on what a page leaves open."""
        others = None
        if self._others > 0:
            others = f"holds {self._others + 1} runs; the first one is shown"
        return joined_notes(self._figures.note, others)

    @property
    def findings(self) -> tuple[tuple[str, str], ...]:
        """Return what our exporter has found."""
        return self._rows.findings

    def feed(self, data: bytes) -> tuple[Record, ...]:
        """Take bytes. Each of the runs in a file holding its own would take a hundred times the
        memory: of a part only is known that there is something.
        """
        found = super().feed(data)
        if self._part is not None:
            del self._held[1:]
        return found

    def finish(self) -> tuple[Record, ...]:
        """Return the records of the page, which is only complete at its end."""
        data = bytes(self._held)
        self._held.clear()
        if data and self._part is not None:
            try:
                data = head(self._path, LARGEST)
            except OSError:  # gone meanwhile, which the source says
                data = b""
        if not data:
            return ()
        page = read_saved(data)
        before = self._lines
        self._lines += data.count(b"\n")
        own = self._own(page.runs)
        if own is not None:
            status = status_at(self._path)
            written = None if status is None else status.st_mtime
            # a page that takes another's place comes after it, whatever its time
            later = math.nextafter(self._at, math.inf)
            self._at = max(written or 0.0, later)
            lines, keys = self._figures.take({"": (own, written)}, self._at)
            self._batcher.add(self._rows.take(lines, keys))
        unreadable = [flaw._replace(line=flaw.line + before) for flaw in page.flaws]
        return (*unreadable, *self._batcher.take())

    def restart(self, reason: str) -> tuple[Record, ...]:
        """Take what follows for a further page: node_exporter's textfiles are replaced as a
        whole.
        """
        super().restart(reason)
        self._lines = 0
        return ()

    def _own(self, runs: Mapping[str, Scrape]) -> Scrape | None:
        """Return the figures of the requested run; of the first run and of none if none was
        requested.
        """
        if self._part is not None:
            parts = {part_of(run): scrape for run, scrape in runs.items()}
            return parts.get(self._part)
        self._others = len(runs.keys() - {NOBODYS}) - 1
        shown = [next(iter(runs.values()))]
        if self._others > 0 and NOBODYS in runs:
            shown.append(runs[NOBODYS])
        samples = [sample for one in shown for sample in one.samples]
        return shown[0]._replace(samples=samples)

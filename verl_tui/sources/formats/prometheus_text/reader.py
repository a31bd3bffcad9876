"""Files with saved pages of metrics: `curl … > node.prom`, textfiles of node_exporter."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from verl_tui.patterns import pattern
from verl_tui.records import Unreadable
from verl_tui.sources.fields.row_batcher import RowBatcher
from verl_tui.sources.files.paths import status_at
from verl_tui.sources.formats.format import WholeReader
from verl_tui.sources.formats.prometheus_text.page import (
    MISSING,
    PageFigures,
    read_page,
)
from verl_tui.sources.formats.prometheus_text.rows import StepRows

if TYPE_CHECKING:
    from pathlib import Path

    from verl_tui.records import Record

name = "Prometheus metrics"
rank = 1  # the newest value that somebody came by to see: any log of the run knows more
anchor = True

LARGEST = 32 * 2**20
"""Bytes of a page; Prometheus itself takes what is given, exporters of large clusters write some
MB.
"""
_TYPE = pattern(
    r"#[ \t]+TYPE[ \t]+\S{1,400}[ \t]+"
    r"(?:counter|gauge|histogram|summary|untyped|unknown|info|gaugehistogram|stateset)\s*"
)
_SAMPLE = pattern(r"[A-Za-z_:][\w:]{0,300}(?:\{[^}]*\})?[ \t]+[-+\d.eE]+\s*")


def matches(path: Path, head: bytes) -> bool:
    """Return True if a file begins like a page of metrics: with a metric's type, or by its name
    with a sample.
    """
    lines = [*filter(str.strip, head.decode("utf-8", "replace").split("\n", 60)[:60])]
    if any(map(_TYPE.fullmatch, lines)) and lines[0].startswith("#"):
        return True
    is_named = path.suffix.lower() == ".prom"
    return is_named and bool(lines) and _SAMPLE.fullmatch(lines[0]) is not None


def reader(path: Path) -> PageReader:
    """Return a reader for one file."""
    return PageReader(path)


class PageReader(WholeReader):
    """Waits for the whole page; each page that takes the place of the one before is one more
    moment.
    """

    largest = LARGEST

    ends = ()  # only the file's end shows that a page is complete

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._at = -math.inf
        self._figures = PageFigures(saved=True)
        self._rows = StepRows()
        self._batcher = RowBatcher()

    @property
    def note(self) -> str | None:
        """Return a note on what a page leaves open."""
        return self._figures.note

    @property
    def findings(self) -> tuple[tuple[str, str], ...]:
        """Return what our exporter has found."""
        return self._rows.findings

    def finish(self) -> tuple[Record, ...]:
        """Return the records of the page, which is only complete at its end."""
        data = bytes(self._held)
        self._held.clear()
        if not data:
            return ()
        try:
            page = read_page(data)
        except ModuleNotFoundError:
            return (Unreadable(1, MISSING, ""),)
        if (count := len([*filter(None, page.runs)])) > 1:
            why = f"holds {count:,} runs: name the address of their exporter instead"
            return (Unreadable(1, why, ""),)
        (own,) = page.runs.values()
        status = status_at(self._path)
        written = None if status is None else status.st_mtime
        # a page that takes another's place comes after it, whatever its time
        self._at = max(written or 0.0, math.nextafter(self._at, math.inf))
        lines = self._figures.take({"": (own, written)}, self._at)
        self._batcher.add(self._rows.take(lines, page.keys))
        flaws = (Unreadable(*page.flaw, ""),) if page.flaw else ()
        return (*flaws, *self._batcher.take())

    def restart(self, reason: str) -> tuple[Record, ...]:
        """Take what follows for a further page: node_exporter's textfiles are replaced as a
        whole.
        """
        super().restart(reason)
        return ()

"""Prometheus's text format and OpenMetrics: `/metrics` pages, and files with saved pages.

https://prometheus.io/docs/instrumenting/exposition_formats and
https://prometheus.io/docs/specs/om/open_metrics_spec. A line that is no sample costs nothing but
itself.
"""

from __future__ import annotations

from collections import Counter, deque
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.patterns import pattern
from verl_tui.records import Unreadable
from verl_tui.sources.fields.row_batcher import RowBatcher, joined_notes
from verl_tui.sources.files.compressed import head
from verl_tui.sources.files.paths import escaped, file_and_part, status_at
from verl_tui.sources.formats.documents import WholeReader
from verl_tui.sources.formats.prometheus_text.scraped_rows import ScrapedRows, runs_in
from verl_tui.sources.formats.prometheus_text.scrapes import (
    PrometheusSample,
    Scrape,
    Scrapes,
)
from verl_tui.sources.formats.prometheus_text.series_names import spelled
from verl_tui.text import one_line

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from verl_tui.records import Record

name = "Prometheus metrics"
rank = 1  # the newest value that somebody came by to see: any log of the run knows more
anchor = True

LARGEST = 32 * 2**20
"""Bytes of a page; Prometheus itself takes what is given, exporters of large clusters write some
MB.
"""
NOBODYS = "-"
"""Stands for the figures on a page of several runs that belong to none."""
_MOST_REPORTED = 100
"""Lines of a page that are reported one by one where they cannot be read."""
_TYPE = pattern(
    r"#[ \t]+TYPE[ \t]+(\S{1,400})[ \t]+"
    r"(counter|gauge|histogram|summary|untyped|unknown|info|gaugehistogram|stateset)[ \t]*\r?"
)
_SAMPLE = pattern(
    r"([A-Za-z_:][A-Za-z0-9_:]{0,300})?"
    r'(?:[ \t]*\{((?:[^"{}]|"(?:[^"\\]|\\.)*")*)\})?'
    r"(?:(?<=\})|[ \t])[ \t]*([-+]?(?:[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?|NaN|Inf))"
    r"(?:[ \t]+([-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?))?[ \t]*\r?(?:[ \t]#[ \t].*)?"
)
"""Name, labels, value and time, perhaps with an exemplar behind them."""
_LABEL = pattern(
    r'[ \t]*(?:([A-Za-z_][A-Za-z0-9_]*)|"((?:[^"\\]|\\.)*)")[ \t]*'
    r'(?:=[ \t]*"((?:[^"\\]|\\.)*)"[ \t]*)?(?:,[ \t]*|$)'
)
"""Name or quoted name, and value; a quoted name alone is that of the metric."""
_ESCAPE = pattern(r"\\(.)")


def matches(path: Path, head: bytes) -> bool:
    """Return True if a file begins like a page of metrics: with a metric's type and sample."""
    begin = b"\n".join(head.split(b"\n", 60)[:60]).decode("utf-8", "replace")
    lines = list(filter(str.strip, begin.split("\n")))
    if not lines:
        return False
    if not lines[0].startswith("#"):
        return path.suffix.lower() == ".prom" and bool(_SAMPLE.fullmatch(lines[0]))
    if not any(map(_TYPE.fullmatch, lines)):
        return False
    sample = next((line for line in lines if not line.startswith("#")), None)
    return sample is None or _SAMPLE.match(sample) is not None


class PageParts(NamedTuple):
    """The figures of a page by part: each run, and none."""

    pages: Sequence[Mapping[str, Scrape]]
    """Mostly one; more where pages were saved one behind the other."""
    flaws: Sequence[Unreadable]
    """Lines that could not be parsed."""
    left_out: int
    """Runs that are no part, since there are too many."""


class MetricsPage(NamedTuple):
    """The scrapes of a page, and the lines that could not be read."""

    scrapes: Sequence[Scrape]
    """Mostly one; more where pages were saved one behind the other."""
    flaws: Sequence[Unreadable]
    """Lines that could not be read."""


def read_page(data: bytes) -> MetricsPage:
    """Parse the bytes of a page; never raises for their content."""
    text = data.decode("utf-8", "replace")
    # OpenMetrics has seconds where the text format has milliseconds.
    unit = 1.0 if text.rstrip().endswith("# EOF") else 1e-3
    kinds = {spelled(found[1]): found[2] for found in _TYPE.finditer(text)}
    samples: list[PrometheusSample] = []
    flaws: deque[Unreadable] = deque(maxlen=_MOST_REPORTED)
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            samples.append(_sample(line, unit))
        except ValueError as error:
            flaws.append(
                Unreadable(number, f"no sample: {error}", one_line(line, 80)),
            )
    pages = [Scrape(tuple(part), kinds) for part in _pages(samples)]
    return MetricsPage(pages, tuple(flaws))


def _sample(line: str, unit: float) -> PrometheusSample:
    """Return the sample of a line; `unit`: seconds of one of its times.

    Raises:
        ValueError: It is none; the message says why.
    """
    found = _SAMPLE.fullmatch(line)
    if found is None:
        raise ValueError("not a name, labels and a number")
    called, body, value, time = found.groups()
    quoted, labels = _labels(body or "")
    if not (called or quoted) or (called and quoted):
        raise ValueError("no name")
    return PrometheusSample(
        _name(called or quoted),
        labels,
        float(value),
        None if time is None else float(time) * unit,
    )


@lru_cache(maxsize=16_384)
def _name(written: str) -> str:
    return spelled(one_line(written, 300))


@lru_cache(maxsize=16_384)
def _labels(body: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return the metric's name if it is quoted, and the labels that stand in braces.

    Raises:
        ValueError: They cannot be understood.
    """
    called = ""
    labels: dict[str, str] = {}
    parsed = 0
    while parsed < len(body):
        label = _LABEL.match(body, parsed)
        name, quoted, text = label.groups() if label else ("", "", None)
        key = name or _unescaped(quoted)
        if label is None or key in labels or (name and text is None):
            raise ValueError("labels that cannot be understood")
        parsed = label.end()
        if text is None:
            called = key
        else:
            labels[key] = _unescaped(text)
    shown = ((one_line(key, 300), one_line(labels[key], 300)) for key in labels)
    return called, tuple(sorted(shown))


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    return _ESCAPE.sub(_meant, text)


def _meant(found: re.Match[str]) -> str:
    if found[1] in '\\"':
        return found[1]
    return "\n" if found[1] == "n" else found[0]


def _pages(samples: Iterable[PrometheusSample]) -> Iterator[list[PrometheusSample]]:
    """Split pages that were saved one behind the other: no page has a series twice."""
    page: dict[object, PrometheusSample] = {}
    for sample in samples:
        if sample.series in page:
            yield list(page.values())
            page = {}
        page[sample.series] = sample
    if page:
        yield list(page.values())


@lru_cache(maxsize=2)
def parts_of(data: bytes) -> PageParts:
    """Return the figures of a page by part.

    All runs of a page are read from the same bytes, so that they are gone through once.

    Args:
        data: The page, or some that were saved one behind the other.
    """
    end = data.rfind(b"\n") + 1
    cut = data[end:].strip()
    whole = not cut or cut.startswith(b"#")
    page = read_page(data if whole else data[:end])
    flaws = [*page.flaws]
    if not whole:
        shown = one_line(cut.decode("utf-8", "replace"), 80)
        flaws.append(
            Unreadable(data.count(b"\n") + 1, "its last line has no end", shown)
        )
    found = [(scrape, *runs_in(scrape)) for scrape in page.scrapes]
    left_out = max((count for _, _, count in found), default=0)
    return PageParts(
        [_parts(scrape, runs) for scrape, runs, _ in found], flaws, left_out
    )


def _parts(scrape: Scrape, runs: Mapping[tuple[str, str], Scrape]) -> dict[str, Scrape]:
    """Return the runs of a page by the names of their parts, the figures of none behind them; the
    whole page where it is of one run.
    """
    named = {run: part for run, part in runs.items() if any(run)}
    called = Counter(run for run, _ in named)
    parts = {_part(*run, called): part for run, part in named.items()}
    if len(parts) < 2:
        return dict.fromkeys(parts, scrape) or {NOBODYS: scrape}
    shared = runs.get(("", ""))
    return parts if shared is None else {**parts, NOBODYS: shared}


def _part(run: str, project: str, called: Mapping[str, int]) -> str:
    """Return the name of a run's part: with its project where another one has its name.

    Args:
        run: Its name.
        project: Its project's.
        called: How many runs have each name.
    """
    name = escaped(run if called[run] == 1 or not project else f"{project}/{run}")
    if name.strip(".") not in ("", NOBODYS):
        return name
    return "".join(f"%{ord(sign):02X}" for sign in name)


def reader(path: Path) -> PageReader:
    """Return a reader for one file."""
    return PageReader(path)


class PageReader(WholeReader):
    """Waits for the whole page; each page that takes the place of the one before is one more
    scrape.
    """

    ends = ()  # only the file's end shows that a page is complete

    def __init__(self, path: Path) -> None:
        super().__init__(LARGEST)
        self._path, self._part = file_and_part(path)
        self._lines = 0
        """Lines of the pages before."""
        self._others = 0
        """Runs besides the one shown, where it is unknown which is meant."""
        self._scrapes = Scrapes(totals=True)
        self._rows = ScrapedRows()
        self._batcher = RowBatcher()

    @property
    def note(self) -> str | None:
        """Return a note on what a page leaves open."""
        others = None
        if self._others > 0:
            others = f"holds {self._others + 1} runs; the first one is shown"
        return joined_notes(self._scrapes.note, others)

    @property
    def findings(self) -> tuple[tuple[str, str], ...]:
        """Return what our exporter has found."""
        return self._scrapes.findings

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
        pages, flaws, _ = parts_of(data)
        before = self._lines
        self._lines += data.count(b"\n")
        written = status_at(self._path) if len(pages) == 1 else None
        times = {"": written.st_mtime} if written is not None else {}
        for scrape in filter(None, map(self._own, pages)):
            figures = self._scrapes.take({"": scrape}, times)
            self._batcher.add(self._rows.take(figures, times.get("")))
        unreadable = [flaw._replace(line=flaw.line + before) for flaw in flaws]
        return (*unreadable, *self._batcher.take())

    def restart(self, reason: str) -> tuple[Record, ...]:
        """Take what follows for a further page: node_exporter's textfiles are replaced as a
        whole.
        """
        super().restart(reason)
        self._lines = 0
        return ()

    def _own(self, parts: Mapping[str, Scrape]) -> Scrape | None:
        """Return the figures of the requested run and of none; of the first run if none was
        requested.
        """
        if self._part is not None:
            return parts.get(self._part)
        self._others = len(parts.keys() - {NOBODYS}) - 1
        wanted = dict.fromkeys((next(iter(parts)), NOBODYS))
        shown = [parts[part] for part in wanted if part in parts]
        samples = tuple(chain.from_iterable(one.samples for one in shown))
        return Scrape(samples, shown[0].kinds)

"""Prometheus's text format and OpenMetrics: `/metrics` pages, and files with saved pages.

https://prometheus.io/docs/instrumenting/exposition_formats and
https://prometheus.io/docs/specs/om/open_metrics_spec. The lines are read by prometheus-client; one
that it does not understand costs nothing but itself.
"""

from __future__ import annotations

from collections import Counter, deque
from functools import lru_cache
from importlib.util import find_spec
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.patterns import pattern
from verl_tui.records import Unreadable
from verl_tui.sources.fields.row_batcher import RowBatcher, joined_notes
from verl_tui.sources.files.compressed import head
from verl_tui.sources.files.paths import escaped, file_and_part
from verl_tui.sources.formats.prometheus_text.scraped_rows import ScrapedRows, runs_in
from verl_tui.sources.formats.prometheus_text.scrapes import (
    PrometheusSample,
    Scrape,
    Scrapes,
)
from verl_tui.sources.formats.prometheus_text.series_names import spelled
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from verl_tui.records import Record

name = "Prometheus metrics"
rank = 1  # the newest value that somebody came by to see: any log of the run knows more
anchor = True

MISSING = "needs prometheus-client to be read: pip install 'verl-tui[prometheus]'"
LARGEST = 32 * 2**20
"""Bytes of a page; Prometheus itself takes what is given, exporters of large clusters write some
MB.
"""
NOBODYS = "-"
"""Stands for the figures on a page of several runs that belong to none."""
_MOST_REPORTED = 100
"""Lines of a page that are reported one by one where they cannot be read."""
_TYPE = pattern(
    rb"# TYPE [A-Za-z_:][\w:.]{0,300} "
    rb"(?:counter|gauge|histogram|summary|untyped|unknown|info)[ \t]*\r?"
)
_SAMPLE = pattern(
    rb"[A-Za-z_:][\w:]{0,300}(?:\{[^\n]{0,4000}\})?[ \t]+[-+]?(?:\d[\d.]*(?:[eE][-+]?\d+)?|NaN|Inf)"
    rb"(?:[ \t]+[-\d.]+)?\s*"
)
_TYPED = pattern(r"#[ \t]+TYPE[ \t]+(\S{1,400})[ \t]+(\w{1,20})")
_PLAIN = pattern(
    r"([A-Za-z_:][A-Za-z0-9_:]*)"
    r'(?:\{((?:(?!__)[A-Za-z_][A-Za-z0-9_]*="[^"\\{}#]*"(?:,|(?=\})))*)\})?'
    r"[ \t]+([-+]?(?:[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?|NaN|Inf))[ \t]*"
)
_LABEL = pattern(r'(?<!\w)([A-Za-z_][A-Za-z0-9_]*)="([^"]*)"')
_EXEMPLAR = pattern(r" # \{[^\n]*$")


class MetricsPage(NamedTuple):
    """The scrapes of a page, and the lines that could not be read."""

    scrapes: Sequence[Scrape]
    """Mostly one; more where pages were saved one behind the other."""
    flaws: Sequence[Unreadable]
    """Lines that could not be read."""


def is_readable() -> bool:
    """Return whether there is a library that reads the format."""
    try:
        return find_spec("prometheus_client") is not None
    except ValueError:
        return False


def matches(path: Path, head: bytes) -> bool:
    """Return True if a file begins like a page of metrics: with a metric's type and sample."""
    lines = [line for line in head.split(b"\n", 60)[:60] if line.strip()]
    if not lines:
        return False
    if not lines[0].startswith(b"#"):
        return (
            path.suffix.lower() == ".prom" and _SAMPLE.fullmatch(lines[0]) is not None
        )
    if not any(map(_TYPE.fullmatch, lines)):
        return False
    sample = next((line for line in lines if not line.startswith(b"#")), None)
    return sample is None or _SAMPLE.match(sample) is not None


def read_page(data: bytes) -> MetricsPage:
    """Parse the bytes of a page; never raises for their content.

    Raises:
        ImportError: prometheus-client is not installed.
    """
    from prometheus_client.parser import text_string_to_metric_families

    text = data.decode("utf-8", "replace").replace("\r\n", "\n")
    # OpenMetrics: seconds where the text format has milliseconds
    seconds = text.rstrip().endswith("# EOF")
    kinds = {spelled(found[1]): found[2] for found in _TYPED.finditer(text)}
    samples: list[PrometheusSample] = []
    flaws: deque[Unreadable] = deque(maxlen=_MOST_REPORTED)
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            samples += _plain(line) or _odd(
                text_string_to_metric_families(_EXEMPLAR.sub("", line) + "\n"), seconds
            )
        except Exception as error:  # noqa: BLE001 - whatever the library raises
            flaws.append(
                Unreadable(
                    number, f"no sample: {one_line(str(error), 80)}", one_line(line, 80)
                )
            )
    return MetricsPage(
        [Scrape(tuple(part), kinds) for part in _pages(samples)], tuple(flaws)
    )


def _pages(samples: Iterable[PrometheusSample]) -> Iterator[list[PrometheusSample]]:
    """Split pages that were saved one behind the other: no page has a series twice."""
    page: list[PrometheusSample] = []
    seen: set[object] = set()
    for sample in samples:
        if sample.series in seen:
            yield page
            page = []
            seen = set()
        seen.add(sample.series)
        page.append(sample)
    if page:
        yield page


def _plain(line: str) -> list[PrometheusSample]:
    """Return the sample of a line without escapes, times and exemplars: nearly all are such.
    Nothing of any other.

    prometheus-client looks at every character by itself, and takes ten times as long.
    """
    found = _PLAIN.fullmatch(line)
    if found is None:
        return []
    labels = _LABEL.findall(found[2] or "")
    if len({name for name, _ in labels}) < len(labels):
        return []
    shown = sorted((_shown(name), _shown(value)) for name, value in labels)
    return [PrometheusSample(spelled(_shown(found[1])), tuple(shown), float(found[3]))]


def _odd(families: Iterable[object], seconds: bool) -> Iterator[PrometheusSample]:
    """Yield the samples that prometheus-client reads."""
    for family in families:
        for sample in family.samples:  # type: ignore[attr-defined]
            time = None
            if sample.timestamp is not None:
                time = float(sample.timestamp) * (1000.0 if seconds else 1.0)
            labels = tuple(
                sorted(
                    (_shown(name), _shown(value))
                    for name, value in sample.labels.items()
                )
            )
            yield PrometheusSample(
                spelled(_shown(sample.name)), labels, float(sample.value), time
            )


@lru_cache(maxsize=16_384)
def _shown(text: str) -> str:
    return one_line(text, 300)


class PageParts(NamedTuple):
    """The figures of a page by part: each run, and none."""

    pages: Sequence[Mapping[str, Scrape]]
    """Mostly one; more where pages were saved one behind the other."""
    flaws: Sequence[Unreadable]
    """Lines that could not be parsed."""
    left_out: int
    """Runs that are no part, since there are too many."""


@lru_cache(maxsize=2)
def parts_of(data: bytes) -> PageParts:
    """Return the figures of a page by part.

    All runs of a page are read from the same bytes, so that they are gone through once.

    Args:
        data: The page, or some that were saved one behind the other.

    Raises:
        ImportError: prometheus-client is not installed.
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
    found = [runs_in(scrape) for scrape in page.scrapes]
    left_out = max((count for _, count in found), default=0)
    parts = [
        _parts(scrape, runs)
        for scrape, (runs, _) in zip(page.scrapes, found, strict=True)
    ]
    return PageParts(parts, flaws, left_out)


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


class PageReader:
    """Waits for the whole page; each page that takes the place of the one before is one more
    scrape.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._part = file_and_part(path)
        self._size = 0
        """Bytes of the page so far."""
        self._data = bytearray()
        """The page so far, unless only a part of it is read."""
        self._lines = 0
        """Lines of the pages before."""
        self._others = 0
        """Runs besides the one shown, where it is unknown which is meant."""
        self._scrapes = Scrapes(totals=True)
        self._rows = ScrapedRows()
        self._batcher = RowBatcher()
        self._missing = self._too_large = False

    @property
    def note(self) -> str | None:
        """Return a note on what a page leaves open, or on what is missing to read it."""
        others = None
        if self._others > 0:
            others = f"holds {self._others + 1} runs; the first one is shown"
        if self._missing:
            return MISSING
        return joined_notes(self._scrapes.note, others)

    @property
    def findings(self) -> tuple[tuple[str, str], ...]:
        """Return what our exporter has found."""
        return self._scrapes.findings

    def feed(self, data: bytes) -> tuple[Record, ...]:
        """Take bytes; only at their end is the page known to be complete."""
        self._size += len(data)
        if self._part is None:
            self._data += data
        if self._size > LARGEST:
            self._size = 0
            self._data.clear()
            reported = self._too_large
            self._too_large = True
            if reported:
                return ()
            return (Unreadable(1, f"larger than {LARGEST >> 20} MiB", ""),)
        return ()

    def finish(self) -> tuple[Record, ...]:
        """Return the records of the page, which is only complete at its end."""
        if not self._size or self._missing or self._too_large:
            return ()
        try:
            data = self._page()
            pages, flaws, _ = parts_of(data)
        except ImportError:
            self._missing = True
            return (Unreadable(1, MISSING, ""),)
        except OSError:
            return ()  # gone meanwhile, which the source says
        before = self._lines
        self._lines += data.count(b"\n")
        self._take(pages)
        unreadable = [
            Unreadable(flaw.line + before, flaw.reason, flaw.excerpt) for flaw in flaws
        ]
        return (*unreadable, *self._batcher.take())

    def _take(self, pages: Sequence[Mapping[str, Scrape]]) -> None:
        """Take pages, each as one scrape."""
        time = self._time() if len(pages) == 1 else None
        for parts in pages:
            scrape = self._own(parts)
            if scrape is not None:
                figures = self._scrapes.take(
                    {"": scrape}, {"": time} if time is not None else {}
                )
                self._batcher.add(self._rows.take(figures, time))

    def _page(self) -> bytes:
        """Return the page, and forget it; each of the runs in a file holding its own would take a
        hundred times the memory.

        Raises:
            OSError: The file cannot be read.
        """
        self._size = 0
        if self._part is not None:
            return head(self._path, LARGEST)
        data = bytes(self._data)
        self._data.clear()
        return data

    def restart(self, reason: str) -> tuple[Record, ...]:  # noqa: ARG002
        """Take what follows for a further page: node_exporter's textfiles are replaced as a
        whole.
        """
        self._size = 0
        self._data.clear()
        self._lines = 0
        self._too_large = False
        return ()

    def _own(self, parts: Mapping[str, Scrape]) -> Scrape | None:
        """Return the figures of the requested run and of none; of the first run if none was
        requested.
        """
        if self._part is not None:
            return parts.get(self._part)
        self._others = len(parts.keys() - {NOBODYS}) - 1
        wanted = dict.fromkeys((*list(parts)[:1], NOBODYS))
        shown = [parts[part] for part in wanted if part in parts]
        samples = tuple(chain.from_iterable(one.samples for one in shown))
        if not shown:
            return None
        return Scrape(samples, shown[0].kinds)

    def _time(self) -> float | None:
        try:
            return self._path.stat().st_mtime
        except (OSError, ValueError):
            return None

"""A page of metrics in Prometheus's text format or OpenMetrics.

https://prometheus.io/docs/instrumenting/exposition_formats and
https://prometheus.io/docs/specs/om/open_metrics_spec. A line that is no sample costs nothing but
itself. prometheus-client's parser gives up a metric with its first bad line, takes an exemplar's
value for a time, and needs 0.5 s for a page of 5,000 lines that this reads again in 0.1 s.
"""

from __future__ import annotations

from collections import Counter, deque
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from verl_tui import prometheus_names
from verl_tui.patterns import pattern
from verl_tui.records import Unreadable
from verl_tui.sources.formats.prometheus_text.names import spelled
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from verl_tui.sources.formats.prometheus_text.names import Labels

_MOST_RUNS = 100
"""Runs of one page that are shown: as many as our exporter writes by default."""
NOBODYS = ""
"""Stands for the figures on a page of several runs that belong to none."""
_MOST_REPORTED = 100
"""Lines of a page that are reported one by one where they cannot be read."""
TYPE = pattern(
    r"#[ \t]+TYPE[ \t]+(\S{1,400})[ \t]+"
    r"(counter|gauge|histogram|summary|untyped|unknown|info|gaugehistogram|stateset)[ \t]*\r?"
)
SAMPLE = pattern(
    r"([A-Za-z_:][A-Za-z0-9_:]{0,300})?"
    r'(?:[ \t]*\{((?:[^"{}]|"(?:[^"\\]|\\.)*")*)\})?'
    r"(?:(?<=\})|[ \t])[ \t]*([-+]?(?:[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?|NaN|Inf))"
    r"(?:[ \t]+[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?)?[ \t]*\r?(?:[ \t]#[ \t].*)?"
)
"""Name, labels and value; perhaps with a time and an exemplar behind them."""
_LABEL = pattern(
    r'\s*(?:([A-Za-z_][A-Za-z0-9_]*|"(?:[^"\\]|\\.)*")\s*=\s*)?"((?:[^"\\]|\\.)*)"\s*(?:,|$)\s*'
)
"""Name and value; a value alone is the name of the metric."""
_ESCAPES = {'\\"': '"', "\\\\": "\\", "\\n": "\n"}
_ESCAPE = pattern(r"\\.")


class PrometheusSample(NamedTuple):
    """One line of a page."""

    name: str
    labels: Labels
    value: float

    @property
    def series(self) -> tuple[str, Labels]:
        """Name and labels of its series."""
        return self.name, self.labels


class Scrape(NamedTuple):
    """The samples of one run on a page."""

    samples: Sequence[PrometheusSample]
    kinds: Mapping[str, str]
    """Metric -> its type, as far as the page states it."""
    keys: Mapping[str, str] = {}
    """The log's own keys by the names of their series, as far as our exporter states them."""


class Page(NamedTuple):
    """What a page says of each run."""

    runs: Mapping[str, Scrape]
    """By name, the figures of none under `NOBODYS`; the whole page where it is of one run."""
    flaws: Sequence[Unreadable]
    """Lines that could not be read."""
    left_out: int
    """Runs that are not shown, since there are too many."""


def read_page(data: bytes) -> Page:
    """Parse the bytes of a page; never raises for their content.

    Of a series that it has twice, as where pages were saved one behind the other, the last value
    counts.
    """
    text = data.decode("utf-8", "replace")
    kinds = {spelled(found[1]): found[2] for found in TYPE.finditer(text)}
    samples: dict[tuple[str, Labels], PrometheusSample] = {}
    flaws: deque[Unreadable] = deque(maxlen=_MOST_REPORTED)
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            sample = _sample(line)
        except ValueError as error:
            excerpt = one_line(line, 80)
            flaws.append(Unreadable(number, f"no sample: {error}", excerpt))
        else:
            samples[sample.series] = sample
    keys = {}
    for series in [one for one in samples if one[0] == prometheus_names.INFO]:
        stated = dict(samples.pop(series).labels)
        keys[stated.get("name", "")] = stated.get("key", "")
    runs, left_out = _runs(Scrape(tuple(samples.values()), kinds, keys))
    return Page(runs, tuple(flaws), left_out)


def read_saved(data: bytes) -> Page:
    """Parse a saved page, whose last line may be cut off."""
    end = data.rfind(b"\n") + 1
    cut = data[end:].strip()
    if not cut or cut.startswith(b"#"):
        return read_page(data)
    page = read_page(data[:end])
    shown = one_line(cut.decode("utf-8", "replace"), 80)
    flaw = Unreadable(data.count(b"\n") + 1, "its last line has no end", shown)
    return page._replace(flaws=(*page.flaws, flaw))


def _runs(whole: Scrape) -> tuple[dict[str, Scrape], int]:
    """Return the figures of a page by run, and how many runs are left out: of two that are called
    alike each has its project before its name.
    """
    parts: dict[tuple[str, str], list[PrometheusSample]] = {}
    for sample in whole.samples:
        parts.setdefault(_run_of(dict(sample.labels)), []).append(sample)
    shared = parts.pop(_NO_RUN, None)
    shown = dict([*parts.items()][:_MOST_RUNS])
    called = Counter(run for run, _ in shown)
    runs: dict[str, Scrape] = {}
    for (run, project), samples in shown.items():
        name = f"{project}/{run}" if called[run] > 1 and project else run
        runs[name] = whole._replace(samples=samples)
    if len(runs) < 2:
        return dict.fromkeys(runs or [NOBODYS], whole), 0
    if shared is not None:
        runs[NOBODYS] = whole._replace(samples=shared)
    return runs, len(parts) - len(shown)


_NO_RUN = ("", "")


def _run_of(labels: Mapping[str, str]) -> tuple[str, str]:
    """Return the run and the project of a sample: our exporter's `run`, RL-Insight's
    `experiment_name`.
    """
    run = labels.get("run") or labels.get("experiment_name")
    if not run:
        return _NO_RUN
    return one_line(run, 120), one_line(labels.get("project", ""), 120)


def _sample(line: str) -> PrometheusSample:
    """Return the sample of a line.

    Raises:
        ValueError: It is none; the message says why.
    """
    found = SAMPLE.fullmatch(line)
    if found is None:
        raise ValueError("not a name, labels and a number")
    called, body, value = found.groups()
    quoted, labels = _labels(body or "")
    if not (called or quoted) or (called and quoted):
        raise ValueError("no name")
    return PrometheusSample(_name(called or quoted), labels, float(value))


@lru_cache(maxsize=16_384)
def _name(written: str) -> str:
    return spelled(one_line(written, 300))


@lru_cache(maxsize=16_384)
def _labels(body: str) -> tuple[str, Labels]:
    """Return the metric's name if it is quoted, and the labels that stand in braces.

    Raises:
        ValueError: They cannot be understood.
    """
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(body) and (label := _LABEL.match(body, at)):
        found.append((_unescaped((label[1] or "").strip('"')), _unescaped(label[2])))
        at = label.end()
    if at < len(body) or len(dict(found)) < len(found):
        raise ValueError("labels that cannot be understood")
    called = dict(found).pop("", "")
    return called, tuple(sorted(one for one in found if one[0]))


def _unescaped(text: str) -> str:
    meant = _ESCAPE.sub(lambda found: _ESCAPES.get(found[0], found[0]), text)
    return one_line(meant, 300)

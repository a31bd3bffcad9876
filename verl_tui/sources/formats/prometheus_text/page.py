"""A page of metrics in Prometheus's text format or OpenMetrics.

https://prometheus.io/docs/instrumenting/exposition_formats and
https://prometheus.io/docs/specs/om/open_metrics_spec. A line that is no sample costs nothing but
itself. prometheus-client's parser gives up a metric with its first bad line, takes an exemplar's
value for a time, and needs 0.5 s for a page of 5,000 lines that this reads again in 0.1 s.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from verl_tui import prometheus_names
from verl_tui.patterns import pattern
from verl_tui.records import Unreadable
from verl_tui.sources.formats.prometheus_text.names import spelled
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from verl_tui.sources.formats.prometheus_text.names import Labels, NameAndLabels

NOBODYS = ""
"""Stands for the figures on a page of several runs that belong to none."""
_MOST_REPORTED = 100
"""Lines of a page that are reported one by one where they cannot be read."""
TYPE = pattern(
    r"#[ \t]+TYPE[ \t]+(\S{1,400})[ \t]+"
    r"(counter|gauge|histogram|summary|untyped|unknown|info|gaugehistogram|stateset)[ \t]*\r?"
)
SAMPLE = pattern(
    r"([A-Za-z_:][A-Za-z0-9_:]{0,300})"
    r'(?:[ \t]*\{((?:[^"{}]|"(?:[^"\\]|\\.)*")*)\})?'
    r"(?:(?<=\})|[ \t])[ \t]*([-+]?(?:[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?|NaN|Inf))"
    r"(?:[ \t]+[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?)?[ \t]*\r?(?:[ \t]#[ \t].*)?"
)
"""Name, labels and value; perhaps with a time and an exemplar behind them."""
_LABEL = pattern(r'\s*([A-Za-z_][A-Za-z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*(?:,|$)\s*')
_ESCAPES = {'\\"': '"', "\\\\": "\\", "\\n": "\n"}
_ESCAPE = pattern(r"\\.")


class Scrape(NamedTuple):
    """The samples of one run on a page."""

    samples: Mapping[NameAndLabels, float]
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


def read_page(data: bytes) -> Page:
    """Parse the bytes of a page; never raises for their content.

    Of a series that it has twice, as where pages were saved one behind the other, the last value
    counts. A line without an end may lack digits.
    """
    text = data.decode("utf-8", "replace")
    samples: dict[NameAndLabels, float] = {}
    flaws: deque[Unreadable] = deque(maxlen=_MOST_REPORTED)
    *lines, cut = text.split("\n")
    for number, line in enumerate(lines, 1):
        if (sample := _sample(line)) is not None:
            samples[sample[0]] = sample[1]
        elif line.strip() and not line.startswith("#"):
            flaws.append(Unreadable(number, "no sample", one_line(line, 80)))
    if cut.strip() and not cut.startswith("#"):
        reason = "its last line has no end"
        flaws.append(Unreadable(len(lines) + 1, reason, one_line(cut, 80)))
    kinds = {spelled(found[1]): found[2] for found in TYPE.finditer(text)}
    keys = _keys(samples)
    samples = {one: value for one, value in samples.items() if one[0] != _INFO}
    return Page(_runs(Scrape(samples, kinds, keys)), flaws)


_INFO = prometheus_names.INFO


def _keys(samples: Iterable[NameAndLabels]) -> dict[str, str]:
    infos = [dict(labels) for name, labels in samples if name == _INFO]
    return {one.get("name", ""): one.get("key", "") for one in infos}


def _sample(line: str) -> tuple[NameAndLabels, float] | None:
    found = SAMPLE.fullmatch(line)
    labels = found and _labels(found[2] or "")
    if found is None or labels is None:
        return None
    return (spelled(found[1]), labels), float(found[3])


def _runs(whole: Scrape) -> dict[str, Scrape]:
    """Return the figures of a page by run: of two that are called alike each has its project before
    its name.
    """
    parts: dict[tuple[str, str], dict[NameAndLabels, float]] = defaultdict(dict)
    for sample, value in whole.samples.items():
        parts[_run_of(sample[1])][sample] = value
    shared = parts.pop((NOBODYS, ""), {})
    if len(parts) < 2:
        own = {**shared, **next(iter(parts.values()), {})}
        return {next((run for run, _ in parts), NOBODYS): whole._replace(samples=own)}
    called = Counter(run for run, _ in parts)
    runs = {
        f"{project}/{run}" if called[run] > 1 and project else run: own
        for (run, project), own in parts.items()
    }
    if shared:
        runs[NOBODYS] = shared
    return {run: whole._replace(samples=own) for run, own in runs.items()}


@lru_cache(maxsize=16_384)
def _run_of(labels: Labels) -> tuple[str, str]:
    """Return the run and the project of a sample: our exporter's `run`, RL-Insight's
    `experiment_name`.
    """
    stated = dict(labels)
    run = stated.get("run") or stated.get("experiment_name") or NOBODYS
    project = stated.get("project", "") if run else ""
    return one_line(run, 120), one_line(project, 120)


@lru_cache(maxsize=16_384)
def _labels(body: str) -> Labels | None:
    """Return the labels that stand in braces, None where they cannot be understood."""
    found: dict[str, str] = {}
    at = 0
    while at < len(body) and (label := _LABEL.match(body, at)):
        if label[1] in found:
            return None
        meant = _ESCAPE.sub(lambda sign: _ESCAPES.get(sign[0], sign[0]), label[2])
        found[label[1]] = one_line(meant, 300)
        at = label.end()
    return None if at < len(body) else tuple(sorted(found.items()))

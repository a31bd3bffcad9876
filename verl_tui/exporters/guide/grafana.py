"""A Grafana dashboard: the four panels of verl's tutorials, findings, and all indicators with their
bands.

Each panel shows the series of `verl-tui export prometheus` and those of verl's RL-Insight under one
variable: `run` is the run's name for the former and the experiment's name for the latter.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_tui import prometheus_names as names
from verl_tui.dialects import dialect
from verl_tui.exporters.guide.promql import RL_INSIGHT
from verl_tui.indicators import INDICATORS, factor
from verl_tui.prometheus_names import named

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.health.guide import Guide
    from verl_tui.indicators import Indicator

_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_OURS = 'run=~"$run"'
_THEIRS = 'experiment_name=~"$run"'
_RATE = "15m"
"""Window of rates: steps of large models take minutes."""
_WIDTH, _HEIGHT, _COLUMNS = 6, 8, 4
_UNITS = {"s": "s", "share": "percentunit", "percent": "percentunit", "tokens": "short"}
"""Unit of an indicator -> Grafana's name of its base unit."""
_RUNS = (
    f"query_result(count by (run) ({names.STEPS} or "
    f'label_join({RL_INSIGHT}training_global_step{{experiment_name!=""}}, "run", "", '
    f'"experiment_name")))'
)


class _PanelQuery(NamedTuple):
    expr: str
    legend: str


class _GrafanaPanel(NamedTuple):
    title: str
    queries: Sequence[_PanelQuery]
    unit: str = "short"
    words: str = ""
    kind: str = "timeseries"


def dashboard(guide: Guide) -> str:
    """Return the dashboard as JSON, to be imported as it is.

    Args:
        guide: Bands are those of the rules in force.
    """
    panels = [
        *_tutorials(),
        *_health(),
        *(_indicator(one, guide) for one in INDICATORS.values()),
    ]
    return json.dumps(
        {
            "title": "verl-tui",
            "uid": "verl-tui",
            "description": "verl training runs, from `verl-tui export prometheus` or RL-Insight.",
            "tags": ["verl"],
            "schemaVersion": 39,
            "editable": True,
            "refresh": "30s",
            "time": {"from": "now-6h", "to": "now"},
            "templating": {"list": _variables()},
            "panels": [_drawn(number, panel) for number, panel in enumerate(panels)],
        },
        indent=2,
        ensure_ascii=False,
    )


def _variables() -> list[dict[str, Any]]:
    run = {
        "name": "run",
        "label": "run",
        "type": "query",
        "datasource": _SOURCE,
        "definition": _RUNS,
        "query": {"query": _RUNS, "refId": "run"},
        "regex": '/run="([^"]+)"/',
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "sort": 1,
    }
    return [
        {
            "name": "datasource",
            "label": "Prometheus",
            "type": "datasource",
            "query": "prometheus",
        },
        run,
    ]


def _tutorials() -> Iterator[_GrafanaPanel]:
    legend = "{{run}}{{experiment_name}}"
    yield _GrafanaPanel(
        "Steps per minute",
        [
            _PanelQuery(f"rate({names.STEPS}{{{_OURS}}}[{_RATE}]) * 60", legend),
            _PanelQuery(
                f"rate({_theirs('training/global_step')}[{_RATE}]) * 60", legend
            ),
        ],
    )
    buckets = f"sum by (run, le) (rate({names.GENERATION}_bucket{{{_OURS}}}[{_RATE}]))"
    yield _GrafanaPanel(
        "Generation latency, p95",
        [
            _PanelQuery(f"histogram_quantile(0.95, {buckets})", "{{run}}"),
            _PanelQuery(_theirs("timing_s/gen"), "{{experiment_name}}, batch"),
        ],
        "s",
        "RL-Insight has no histogram of it: there it is the time of the newest batch.",
    )
    yield _GrafanaPanel(
        "GPU memory by device",
        [
            # This machine's own devices belong to no run.
            _PanelQuery(
                f'{names.GPU_MEMORY}{{run=~"$run|"}} / 1e9',
                "{{run}} {{instance}} {{node}} GPU {{device}}",
            ),
            _PanelQuery(
                f"{_theirs('actor/perf/max_memory_allocated_gb')} * {2**30 / 1e9:g}",
                "{{experiment_name}}, peak",
            ),
        ],
        "decgbytes",
        "RL-Insight knows the peak of the actor alone.",
    )
    yield _GrafanaPanel(
        "Average reward",
        [
            _PanelQuery(f"{names.REWARD}{{{_OURS}}}", legend),
            _PanelQuery(_theirs("critic/score/mean"), legend),
        ],
    )


def _health() -> Iterator[_GrafanaPanel]:
    yield _GrafanaPanel(
        "Findings",
        [_PanelQuery(f"{names.FINDING}{{{_OURS}}}", "{{run}}: {{id}} ({{severity}})")],
        words="1 while a finding of the guide holds; `verl-tui check` says since when and what "
        "to do.",
        kind="state-timeline",
    )
    yield _GrafanaPanel(
        "State",
        [_PanelQuery(f"{names.STATE}{{{_OURS}}} == 1", "{{run}}: {{state}}")],
        kind="state-timeline",
    )
    yield _GrafanaPanel(
        "Since the newest record",
        [_PanelQuery(f"time() - {names.LAST_STEP}{{{_OURS}}}", "{{run}}")],
        "s",
    )
    yield _GrafanaPanel(
        "Sources",
        [
            _PanelQuery(f"{names.SOURCE_UP}{{{_OURS}}}", "{{run}}: {{format}}"),
            _PanelQuery(names.LEFT_OUT, "left out: {{kind}}"),
        ],
        words="1 while they can be read; how much is beyond the exporter's limits.",
    )


def _indicator(indicator: Indicator, guide: Guide) -> _GrafanaPanel:
    which = f'{_OURS}, indicator="{indicator.id}"'
    queries = [_PanelQuery(f"{names.INDICATOR}{{{which}}}", "{{run}}")]
    theirs = _key_of_verl(indicator)
    if theirs is not None:
        queries.append(_PanelQuery(theirs, "{{experiment_name}}"))
    if any(band.indicator == indicator.id for band in guide.bands):
        queries.append(
            _PanelQuery(_band(indicator, guide, which), "{{run}} band, {{bound}}")
        )
    return _GrafanaPanel(indicator.label, queries, _UNITS.get(indicator.unit, "short"))


def _key_of_verl(indicator: Indicator) -> str | None:
    if indicator.id == "validation":
        return f'{{__name__=~"{RL_INSIGHT}val_core_.+", {_THEIRS}}}'
    keys = (
        one
        for one in indicator.spellings
        if isinstance(one, str) and dialect((one,)) == "verl"
    )
    key = next(keys, None)
    if key is None:
        return None
    times = named(key).factor * factor(indicator.id, key)
    return _theirs(key) + (f" * {times:g}" if times != 1 else "")


def _band(indicator: Indicator, guide: Guide, which: str) -> str:
    """Return the band of the shown runs; for RL-Insight's, which have verl's names, the guide's."""
    expr = f"{names.BAND}{{{which}}}"
    fixed = [
        band
        for band in guide.bands
        if band.indicator == indicator.id and "verl" in band.dialects and not band.of
    ]
    scale = 0.01 if indicator.unit == "percent" else 1.0
    for band in fixed:
        for bound, value in (("low", band.low), ("high", band.high)):
            if value is not None:
                line = f"vector({value * scale:g})"
                expr += f' or on () label_replace({line}, "bound", "{bound}", "", "")'
    return expr


def _theirs(key: str) -> str:
    flat = "".join(one if one.isalnum() else "_" for one in key)
    return f"{RL_INSIGHT}{flat}{{{_THEIRS}}}"


def _drawn(number: int, panel: _GrafanaPanel) -> dict[str, Any]:
    row, column = divmod(number, _COLUMNS)
    targets = [
        {
            "refId": chr(ord("A") + at),
            "datasource": _SOURCE,
            "expr": query.expr,
            "legendFormat": query.legend,
        }
        for at, query in enumerate(panel.queries)
    ]
    return {
        "id": number + 1,
        "type": panel.kind,
        "title": panel.title[:1].upper() + panel.title[1:],
        "description": panel.words,
        "datasource": _SOURCE,
        "gridPos": {
            "x": column * _WIDTH,
            "y": row * _HEIGHT,
            "w": _WIDTH,
            "h": _HEIGHT,
        },
        "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": [_dashed()]},
        "options": {},
        "targets": targets,
    }


def _dashed() -> dict[str, Any]:
    """Return the override that draws bands as dashed lines."""
    dashes = {"id": "custom.lineStyle", "value": {"fill": "dash", "dash": [6, 6]}}
    grey = {"id": "color", "value": {"mode": "fixed", "fixedColor": "text"}}
    return {
        "matcher": {"id": "byRegexp", "options": ".*band, (low|high)"},
        "properties": [dashes, grey],
    }

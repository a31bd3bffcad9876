"""The guide in force for others: as text; as Prometheus' alert rules, one alert per rule id
(`alerts.yml.jinja`, filled in); as a Grafana dashboard (the panels of `grafana.toml`, and one for
each indicator with its band).

A run that verl-tui exports is judged by verl-tui itself (`verl_finding_active`). Runs known only by
their metrics, as verl's RL-Insight or another exporter writes them, are judged in PromQL if it can
express the rule.

The guide counts logged steps, Prometheus seconds. A window is therefore as long as its steps take
at the usual time of a step, and nothing is found unless so many steps were made in it: a run with
faster steps is found later, one with slower steps not at all.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any

from verl_tui import prometheus_names as names
from verl_tui.health.conditions import KINDS
from verl_tui.indicators import (
    DIALECTS,
    INDICATORS,
    Indicator,
    dialect,
    factor,
    spellings,
)
from verl_tui.means import gathered
from verl_tui.prometheus_names import named
from verl_tui.toml_tables import toml_table

if TYPE_CHECKING:
    from verl_tui.health.guide import Guide, Rule
    from verl_tui.plain_data import Data


def describe(guide: Guide, id: str | None = None) -> Iterator[str]:
    """Yield the lines that describe all rules, in the guide's order, or those with an id."""
    for rule in guide.rules:
        if id in (None, rule.id):
            yield from _rule(rule, silenced=rule.id in guide.silenced)


def _rule(rule: Rule, *, silenced: bool) -> Iterator[str]:
    facts = {
        "why so long": rule.why_window,
        "logs": ", ".join(rule.dialects),
        **{f"not in {dialect}": reason for dialect, reason in rule.not_in.items()},
        "does not apply if": ", ".join(rule.unless),
        "meaning": rule.meaning,
        "advice": rule.advice,
        "consequences, shown under it": ", ".join((*rule.signs, *rule.explains)),
        "false alarms": rule.false_when,
        "source": rule.source,
        "found on runs without a fault": rule.null_rate,
    }
    yield f"{rule.name} ({rule.severity.word}{', silenced' if silenced else ''})"
    yield f"    {condition(rule)}"
    yield from (f"    {label}: {text}" for label, text in facts.items() if text)


def condition(rule: Rule) -> str:
    """Return the condition of a rule in one line."""
    if rule.condition == "diagnosis":
        limit = f", threshold {rule.threshold:g}" if rule.threshold else ""
        window = f", over {rule.window} logged steps" if rule.window > 1 else ""
        return f"a diagnosis{limit}{window}"
    judged = rule.indicator or " or ".join(rule.metric) or rule.title
    beside = rule.beside_indicator or " or ".join(rule.beside_metric)
    if rule.stream != "value":
        judged += f" ({rule.stream}{f' with {beside}' if beside else ''})"
    return f"{judged}: {rule.condition}, " + ", ".join(
        _figure(rule, name) for name in KINDS[rule.condition].fields
    )


def _figure(rule: Rule, name: str) -> str:
    value = getattr(rule, name)
    if name == "window":
        return f"over {value} logged steps"
    scaled = name in ("threshold", "low", "high")
    of = f" × {rule.of}" if rule.of and scaled else ""
    unit = "%" if rule.unit == "percent" and scaled else ""
    return f"{name} {value:g}{unit}{of}"


# -- Prometheus ------------------------------------------------------------------------------------


STEPS = "verl:steps"
"""Series of the recording rule for the step that each run has reached."""
RL_INSIGHT = "rl_insight_monitor_"
"""Prefix that verl's rl_insight adds to every key (`rl_insight/utils/constants.py`, 0.3.0)."""
_SLACK = 1.25
"""A window is longer than its steps by a quarter, or a step a bit slower than usual would fall out
of it.
"""
_CONDITIONS = frozenset({"above", "at-least", "below", "outside", "streak"})
_STREAMS = {"value": "", "absolute": "", "difference": "-", "ratio": "/"}
"""Streams that PromQL can express -> operator between their two inputs."""


def why_not_promql(rule: Rule) -> str | None:
    """Return why a rule cannot be expressed in PromQL, None if it can."""
    if rule.condition == "diagnosis":
        return "looks at several signals, samples or the log's text"
    if rule.unless or rule.of or rule.parts:
        return "depends on the run's settings or on what else it logs"
    if rule.condition not in _CONDITIONS or rule.trend or rule.climb:
        return "compares a run with its own past, step by step"
    if rule.stream not in _STREAMS or "*" in "".join(rule.metric):
        return "is made of several metrics"
    return None


def signal(rule: Rule) -> tuple[str, str]:
    """Return the name of the series by `run` that a rule judges, which a recording rule makes, and
    its expression, in base units.
    """
    expr = series(_keys(rule, rule.indicator, rule.metric), rule.dialects)
    name = _plain(rule.name)
    if rule.stream == "absolute":
        expr = f"abs({expr})"
    elif joined := _STREAMS[rule.stream]:
        keys_beside = _keys(rule, rule.beside_indicator, rule.beside_metric)
        expr += f"\n{joined}\n{series(keys_beside, rule.dialects)}"
    elif rule.indicator:
        # Rules that judge one indicator in the same logs share it.
        whose = rule.dialects if set(rule.dialects) != set(DIALECTS) else ()
        name = "_".join([rule.indicator, *whose])
    return f"verl:{name}", expr


def series(keys: Sequence[str], dialects: Sequence[str]) -> str:
    """Return the newest value of several metrics by run, under all their names: for each run the
    first that it has.
    """
    found = [named(key).name for key in keys]
    if "verl" in dialects:
        found += [rl_insight(key) for key in keys if dialect((key,)) == "verl"]
    return "max by (run) (\n  " + "\n  or ".join(dict.fromkeys(found)) + "\n)"


def rl_insight(key: str) -> str:
    """Return the series of a metric that verl's rl_insight logger writes, in base units, with its
    run as label `run`.
    """
    metric = f'{RL_INSIGHT}{_plain(key)}{{experiment_name!=""}}'
    factor = named(key).factor
    joined = f'label_join({metric}, "run", "/", "project", "experiment_name")'
    return joined if factor == 1 else f"({joined} * {factor:g})"


def breach(rule: Rule, step: float) -> str:
    """Return the expression that has a value for each run in breach of a rule.

    Args:
        rule: One that PromQL can express.
        step: Seconds that a step usually takes.
    """
    points = rule.count if rule.condition == "streak" else rule.window
    window = f"{max(60, math.ceil(_SLACK * points * step))}s"
    name, _ = signal(rule)
    if points > 1:
        found = _breached(rule, f"{name}[{window}]")
        enough = f"and on (run) changes({STEPS}[{window}]) >= {points}\n"
    else:
        outside = (f"{name} {sign} {limit}" for sign, limit in _limits(rule))
        found, enough = "\n  or ".join(outside), ""
    return f"({found})\n{enough}unless on (run) {names.STATE}"


def _keys(rule: Rule, indicator: str, metrics: Sequence[str]) -> Sequence[str]:
    if not indicator:
        return metrics
    return [one for one in spellings(indicator) if dialect((one,)) in rule.dialects]


def _threshold(rule: Rule, limit: float) -> str:
    """Return a limit in base units, as the metrics have it."""
    keys = _keys(rule, rule.indicator, rule.metric)
    return f"{limit * (named(keys[0]).factor if keys and rule.stream != 'ratio' else 1.0):g}"


def _breached(rule: Rule, past: str) -> str:
    """Return the condition of the guide: most of a window's values, and their mean, lie outside."""
    if rule.condition == "streak":
        return f"min_over_time({past}) > {_threshold(rule, rule.threshold)}"
    return "\n  or ".join(
        f"avg_over_time({past}) {sign} {limit}\n  and {_most(rule.share, sign, past)} {sign} "
        f"{limit}"
        for sign, limit in _limits(rule)
    )


def _limits(rule: Rule) -> list[tuple[str, str]]:
    if rule.condition == "outside":
        return [(">", _threshold(rule, rule.high)), ("<", _threshold(rule, rule.low))]
    signs = {"above": ">", "at-least": ">=", "below": "<"}
    return [(signs[rule.condition], _threshold(rule, rule.threshold))]


def _most(share: float, sign: str, past: str) -> str:
    """Return the value that a share of the window is beyond."""
    if share >= 1:
        return f"{'max' if sign == '<' else 'min'}_over_time({past})"
    return (
        f"quantile_over_time({round(share if sign == '<' else 1 - share, 6):g}, {past})"
    )


def _plain(key: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]", "_", key)


# -- the alerts ------------------------------------------------------------------------------------


STEP = 60.0
"""Seconds that a step is assumed to last by default: heuristic."""
_REACHED = (
    f"max by (run) (\n  {names.STEPS}\n  or {rl_insight('training/global_step')}\n)"
)


def alert_rules(guide: Guide, step: float = STEP) -> str:
    """Return the file of rules.

    Args:
        guide: The rules in force.
        step: Seconds that a step usually takes.
    """
    loud = (rule for rule in guide.rules if rule.id not in guide.silenced)
    by_id = gathered((rule.id, rule) for rule in loud)
    expressible = filter(_is_expressible, chain.from_iterable(by_id.values()))
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    files = Environment(  # noqa: S701 - YAML, whose texts are quoted
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    files.filters["quoted"] = partial(json.dumps, ensure_ascii=False)
    return files.get_template("alerts.yml.jinja").render(
        names=names,
        step=step,
        signals={STEPS: _REACHED} | dict(map(signal, expressible)),
        alerts=[_alert(id, rules, step) for id, rules in by_id.items()],
    )


def alert_name(id: str) -> str:
    """Return the name of a rule's alert: `kl-high` -> `VerlKlHigh`."""
    return "Verl" + "".join(word.capitalize() for word in id.split("-"))


def _is_expressible(rule: Rule) -> bool:
    return why_not_promql(rule) is None


def _alert(id: str, rules: Sequence[Rule], step: float) -> dict[str, Any]:
    first = rules[0]
    expressible = list(filter(_is_expressible, rules))
    notes = {
        "summary": f"{id} ({condition(first)})",
        "description": " ".join(filter(None, (first.meaning, first.advice))),
        "source": first.source,
    }
    # Prometheus takes braces in these texts for its own.
    notes = {name: text.replace("{{", "{{ `{{` }}") for name, text in notes.items()}
    notes["summary"] = "{{ $labels.run }}: " + notes["summary"]
    return {
        "id": id,
        "name": alert_name(id),
        "why": None if expressible else why_not_promql(first),
        "breaches": [
            {"expr": breach(rule, step), "severity": rule.severity.word}
            for rule in expressible
        ],
        "notes": notes,
    }


# -- Grafana ---------------------------------------------------------------------------------------


_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_THEIRS = 'experiment_name=~"$run"'
_WIDTH, _HEIGHT, _COLUMNS = 6, 8, 4
_UNITS = {"s": "s", "share": "percentunit", "percent": "percentunit", "tokens": "short"}
"""Unit of an indicator -> Grafana's name of its base unit."""


def dashboard(guide: Guide) -> str:
    """Return the dashboard as JSON, to be imported as it is.

    Args:
        guide: Bands are those of the rules in force.
    """
    table = toml_table(__file__, "grafana.toml")
    panels = [
        *table["panels"],
        *(_indicator(one, guide) for one in INDICATORS.values()),
    ]
    lines = table["lines_of_bands"]
    drawn = [_drawn(number, panel, lines) for number, panel in enumerate(panels)]
    return json.dumps({**table["board"], "panels": drawn}, indent=2, ensure_ascii=False)


def _indicator(indicator: Indicator, guide: Guide) -> Data:
    """Return the panel of an indicator, as `grafana.toml` has them."""
    which = f'run=~"$run", indicator="{indicator.id}"'
    queries = [(f"{names.INDICATOR}{{{which}}}", "{{run}}")]
    theirs = _key_of_verl(indicator)
    if theirs is not None:
        queries.append((theirs, "{{experiment_name}}"))
    if any(band.indicator == indicator.id for band in guide.bands):
        queries.append((f"{names.BAND}{{{which}}}", "{{run}} band, {{bound}}"))
    unit = _UNITS.get(indicator.unit, "short")
    return {"title": indicator.label, "unit": unit, "queries": queries}


def _key_of_verl(indicator: Indicator) -> str | None:
    if indicator.id == "validation":
        return f'{{__name__=~"{RL_INSIGHT}val_core_.+", {_THEIRS}}}'
    keys = (one for one in spellings(indicator.id) if dialect((one,)) == "verl")
    key = next(keys, None)
    if key is None:
        return None
    times = named(key).factor * factor(indicator.id, key)
    flat = "".join(one if one.isalnum() else "_" for one in key)
    scaled = f" * {times:g}" if times != 1 else ""
    return f"{RL_INSIGHT}{flat}{{{_THEIRS}}}{scaled}"


def _drawn(number: int, panel: Data, lines: object) -> Data:
    """Return a panel in Grafana's fields; `lines`: how bands are drawn."""
    row, column = divmod(number, _COLUMNS)
    x, y = column * _WIDTH, row * _HEIGHT
    targets = [
        {"refId": id, "datasource": _SOURCE, "expr": expr, "legendFormat": legend}
        for id, (expr, legend) in zip(ascii_uppercase, panel["queries"], strict=False)
    ]
    return {
        "id": number + 1,
        "type": panel.get("kind", "timeseries"),
        "title": panel["title"][:1].upper() + panel["title"][1:],
        "description": panel.get("words", ""),
        "datasource": _SOURCE,
        "gridPos": {"x": x, "y": y, "w": _WIDTH, "h": _HEIGHT},
        "fieldConfig": {
            "defaults": {"unit": panel.get("unit", "short")},
            "overrides": [lines],
        },
        "options": {},
        "targets": targets,
    }

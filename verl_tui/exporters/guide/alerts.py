"""The guide as Prometheus' alert rules, one alert per rule id.

A run that verl-tui exports is judged by verl-tui itself (`verl_finding_active`). Runs known only by
their metrics, as verl's RL-Insight or another exporter writes them, are judged in PromQL if it can
express the rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from verl_tui import prometheus_names as names
from verl_tui.exporters.guide.as_text import condition
from verl_tui.exporters.guide.promql import (
    STEPS,
    breach,
    rl_insight,
    signal,
    why_not_promql,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.health.guide import Guide, Rule

STEP = 60.0
"""Seconds that a step is assumed to last by default: heuristic."""
_HEAD = """\
# The health rules of verl-tui as Prometheus alerts; `verl-tui guide --format prometheus` \
writes them anew.
# {finding} is what `verl-tui export prometheus` finds. Runs that it does not export are judged by
# their metrics (verl_<key>{{run}}, \
and rl_insight_monitor_<key>{{project,experiment_name}} of RL-Insight):
# a window is as long as its steps take at {step:g} s each (--step), and so many \
steps must lie in it:
# runs with longer steps are not judged. Rules that PromQL cannot express fire by findings alone:
"""
_REACHED = "training/global_step"


def alert_rules(guide: Guide, step: float = STEP) -> str:
    """Return the file of rules.

    Args:
        guide: The rules in force.
        step: Seconds that a step usually takes.
    """
    by_id: dict[str, list[Rule]] = {}
    for rule in guide.rules:
        if rule.id not in guide.silenced:
            by_id.setdefault(rule.id, []).append(rule)
    expressible = [
        rule
        for rules in by_id.values()
        for rule in rules
        if why_not_promql(rule) is None
    ]
    groups = [
        {"name": "verl-signals", "rules": list(_signals(expressible))},
        {
            "name": "verl-alerts",
            "rules": [_alert(id, rules, step) for id, rules in by_id.items()],
        },
    ]
    file = yaml.dump(
        {"groups": groups},
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=110,
    )
    return "\n".join([*_head(by_id, step), "", file])


def alert_name(id: str) -> str:
    """Return the name of a rule's alert: `kl-high` -> `VerlKlHigh`."""
    return "Verl" + "".join(word.capitalize() for word in id.split("-"))


def _head(by_id: dict[str, list[Rule]], step: float) -> Iterator[str]:
    yield from _HEAD.format(finding=names.FINDING, step=step).splitlines()
    for id, rules in by_id.items():
        reasons = [why_not_promql(rule) for rule in rules]
        if all(reasons):
            yield f"#   {id}: {reasons[0]}"


def _signals(rules: Sequence[Rule]) -> Iterator[dict[str, str]]:
    reached = f"max by (run) (\n  {names.STEPS}\n  or {rl_insight(_REACHED)}\n)"
    yield {"record": STEPS, "expr": reached}
    for name, expr in dict(signal(rule) for rule in rules).items():
        yield {"record": name, "expr": expr}


def _alert(id: str, rules: Sequence[Rule], step: float) -> dict[str, Any]:
    first = rules[0]
    found = f'max by (run, id, severity) ({names.FINDING}{{id="{id}"}} == 1)'
    expressible = [
        _labelled(rule, step) for rule in rules if why_not_promql(rule) is None
    ]
    notes = {
        "summary": "{{ $labels.run }}: " + _plain(f"{id} ({condition(first)})"),
        "description": _plain(
            " ".join(part for part in (first.meaning, first.advice) if part)
        ),
        "source": _plain(first.source),
    }
    expr = "\nor\n".join([found, *expressible])
    return {
        "alert": alert_name(id),
        "expr": expr,
        "annotations": {name: text for name, text in notes.items() if text},
    }


def _labelled(rule: Rule, step: float) -> str:
    inside = breach(rule, step)
    for label, value in (("id", rule.id), ("severity", rule.severity.word)):
        inside = f'label_replace(\n{inside}\n, "{label}", "{value}", "", "")'
    return inside


def _plain(text: str) -> str:
    """Return a text with its template braces escaped."""
    return text.replace("{{", '{{ "{{" }}')


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style="|" if "\n" in text else None
    )


_Dumper.add_representer(str, _text)

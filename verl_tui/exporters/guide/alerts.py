"""The guide as Prometheus' alert rules, one alert per rule id: `alerts.yml.jinja`, filled in.

A run that verl-tui exports is judged by verl-tui itself (`verl_finding_active`). Runs known only by
their metrics, as verl's RL-Insight or another exporter writes them, are judged in PromQL if it can
express the rule.
"""

from __future__ import annotations

import json
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

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
    from collections.abc import Sequence

    from verl_tui.health.guide import Guide, Rule

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
    by_id: dict[str, list[Rule]] = {}
    for rule in guide.rules:
        if rule.id not in guide.silenced:
            by_id.setdefault(rule.id, []).append(rule)
    expressible = filter(_is_expressible, chain.from_iterable(by_id.values()))
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

"""The guide in force as text: each rule with its condition, reasons, advice and source."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from verl_tui.health.conditions import KINDS

if TYPE_CHECKING:
    from verl_tui.health.guide import Guide, Rule


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
        window = f", over {rule.window} logged steps" if rule.window > 1 else ""
        return (
            "a diagnosis"
            + (f", threshold {rule.threshold:g}" if rule.threshold else "")
            + window
        )
    judged = rule.indicator or " or ".join(rule.metric)
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
    unit = "%" if rule.percent and scaled else ""
    return f"{name} {value:g}{unit}{of}"

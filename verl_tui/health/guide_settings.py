"""Reads the guide from `guide.toml`, and applies and checks the user's changes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import cache, partial
from typing import Any

from verl_tui.health.finding import Severity
from verl_tui.health.guide import (
    CAUSE_NAMES,
    DIALECTS,
    LIMIT_NAMES,
    NEEDED,
    STREAMS,
    Band,
    Guide,
    Rule,
)
from verl_tui.indicators import INDICATORS
from verl_tui.toml_tables import toml_table

_SEVERITIES = {severity.word: severity for severity in Severity}
_COUNTS = ("window", "count", "hold", "recent", "least", "before", "lag", "within")
_NUMBERS = (
    "threshold",
    "low",
    "high",
    "factor",
    "spread",
    "floor",
    "tail",
    "ignore",
    "share",
    "clear",
    "climb",
)
_LISTS = (
    "metric",
    "beside_metric",
    "dialects",
    "unless",
    "explains",
    "signs",
    "if_first",
)
_FIELDS = {item.name for item in fields(Rule)}
_OLD_NAMES = {"silent": "unless"}
"""Former names of fields, which users may still have in their settings."""
_TRENDS = ("", "rising", "not rising")


def load_guide(overrides: Mapping[str, Any] | None = None) -> Guide:
    """Return the guide, with a user's changes.

    Args:
        overrides: `silence` (list of ids), `response_limit` (tokens) and `rules`: id (or
            `id/variant`) -> fields to change; an id that the guide does not know is a new rule.

    Raises:
        ValueError: A rule, or a change of one, makes no sense; the text names rule and field.
    """
    entries, bands = _read()
    overrides = overrides or {}
    for key in overrides:
        if key not in ("silence", "response_limit", "rules"):
            raise ValueError(
                f"health settings: unknown field `{key}`; known are silence, response_limit, rules"
            )
    rules = _with_changes(entries, overrides.get("rules", {}))
    limit = _response_limit(overrides.get("response_limit"))
    silenced = _silenced(overrides.get("silence", ()), rules)
    return Guide(tuple(rules.values()), bands, silenced, limit)


def _with_changes(entries: tuple[Rule, ...], changes: object) -> dict[str, Rule]:
    """Return the rules by name, with the user's changes and new ones."""
    if not isinstance(changes, Mapping):
        raise ValueError(
            "health settings, field `rules`: must be a table of rules, each with its fields"
        )
    rules = {rule.name: rule for rule in entries}
    for name, change in changes.items():
        if not isinstance(change, Mapping):
            raise ValueError(
                f"rule `{name}`: must be a table of fields, not {change!r}"
            )
        rules[name] = (
            _change(rules[name], change) if name in rules else _new(name, change)
        )
    return rules


def _response_limit(limit: object) -> float | None:
    if limit is None:
        return None
    if isinstance(limit, bool) or not isinstance(limit, int | float) or limit <= 0:
        raise ValueError(
            "health settings, field `response_limit`: "
            f"must be a number of tokens above 0, not {limit!r}"
        )
    return limit


def _silenced(names: object, rules: Mapping[str, Rule]) -> frozenset[str]:
    if isinstance(names, str) or not isinstance(names, list | tuple | set | frozenset):
        raise ValueError(
            f"health settings, field `silence`: must be a list of rule ids, not {names!r}"
        )
    known = {rule.id for rule in rules.values()}
    for name in names:
        if name not in known:
            raise ValueError(
                f"health settings, field `silence`: there is no rule `{name}`"
            )
    return frozenset(names)


@cache
def _read() -> tuple[tuple[Rule, ...], tuple[Band, ...]]:
    data = toml_table(__file__, "guide.toml")
    rules = tuple(_rule({**entry}) for entry in data["rule"])
    bands = tuple(
        Band(
            band["indicator"],
            tuple(band["dialects"]),
            band.get("low"),
            band.get("high"),
            band.get("of", ""),
            band["source"],
        )
        for band in data["band"]
    )
    return rules, bands


def _new(name: str, change: Mapping[str, Any]) -> Rule:
    id, _, variant = name.partition("/")
    for needed in ("severity", "condition"):
        if needed not in change:
            raise ValueError(
                f"rule `{name}`: field `{needed}` is missing; a new rule needs it"
            )
    if change["condition"] == "diagnosis":
        raise ValueError(
            f"rule `{name}`, field `condition`: "
            "a diagnosis is code; a new rule needs another condition"
        )
    title = change.get("title") or change.get("metric") or change.get("indicator")
    title = title[0] if isinstance(title, list) and title else title
    return _rule(
        {
            "source": "your settings",
            **change,
            "id": id,
            "variant": variant,
            "title": title or id,
        }
    )


def _change(rule: Rule, change: Mapping[str, Any]) -> Rule:
    for key in change:
        if key in ("id", "variant"):
            raise ValueError(
                f"rule `{rule.name}`, field `{key}`: a rule's name is public and cannot be changed"
            )
    checked = _checked(rule.name, change)
    # A threshold of the user's own is no longer the document's, and nobody has measured it.
    if checked.keys() & {*_NUMBERS, *_COUNTS}:
        checked = {
            "source": f"{rule.source}, changed in your settings",
            "null_rate": "",
            **checked,
        }
    return _sound(replace(rule, **checked))


def _rule(entry: Mapping[str, Any]) -> Rule:
    name = str(entry.get("id", "?"))
    checked = _checked(name, entry)
    condition = checked["condition"]
    for needed in NEEDED.get(condition, ()):
        if needed not in checked:
            raise ValueError(
                f"rule `{name}`, field `{needed}`: is missing; the condition `{condition}` needs it"
            )
    return _sound(Rule(**checked))


def _checked(name: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields in their own types."""
    checked: dict[str, Any] = {}
    for written, value in entry.items():
        key = _OLD_NAMES.get(written, written)
        if key not in _FIELDS:
            raise ValueError(f"rule `{name}`: unknown field `{written}`")
        checked[key] = _field(f"rule `{name}`, field `{written}`", key, value)
    return checked


def _field(where: str, key: str, value: object) -> object:
    return _CHECKS.get(key, _text)(where, value)


def _severity(where: str, value: object) -> Severity:
    if isinstance(value, Severity):
        return value
    if value not in _SEVERITIES:
        raise ValueError(f"{where}: must be info, warning or critical, not {value!r}")
    return _SEVERITIES[str(value)]


def _switch(where: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{where}: must be true or false, not {value!r}")
    return value


def _table(where: str, value: object) -> Mapping[str, str]:
    if not isinstance(value, Mapping):
        raise ValueError(f"{where}: must be a table, not {value!r}")
    return value


def _text(where: str, value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{where}: must be text, not {value!r}")
    return value


def _number(where: str, value: object, *, whole: bool) -> float:
    if (
        isinstance(value, bool)
        or not isinstance(value, int if whole else int | float)
        or math.isnan(value)
    ):
        raise ValueError(
            f"{where}: must be a {'whole number' if whole else 'number'}, not {value!r}"
        )
    if whole and value < 1:
        raise ValueError(f"{where}: must be at least 1, not {value!r}")
    return value


def _words(where: str, value: object) -> tuple[str, ...]:
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list | tuple) or not all(
        isinstance(word, str) for word in words
    ):
        raise ValueError(f"{where}: must be a text or a list of texts, not {value!r}")
    return tuple(words)


_CHECKS: Mapping[str, Callable[[str, object], object]] = {
    "severity": _severity,
    "percent": _switch,
    "parts": _switch,
    "of_the_end": _switch,
    "not_in": _table,
    **dict.fromkeys(_NUMBERS, partial(_number, whole=False)),
    **dict.fromkeys(_COUNTS, partial(_number, whole=True)),
    **dict.fromkeys(_LISTS, _words),
}
"""Field -> the function that returns its value in its own type; all others are text."""
_CHOICES: Mapping[str, Mapping[str, Any] | tuple[str, ...]] = {
    "condition": NEEDED,
    "stream": STREAMS,
    "trend": _TRENDS,
    "of": LIMIT_NAMES,
    "causes": CAUSE_NAMES,
}
"""Field -> the words that it may have."""


def _sound(rule: Rule) -> Rule:
    """Return the rule if its fields make sense together."""
    where = f"rule `{rule.name}`"
    for name, known in _CHOICES.items():
        _among(f"{where}, field `{name}`", getattr(rule, name), known)
    for name in ("indicator", "beside_indicator"):
        if indicator := getattr(rule, name):
            _among(f"{where}, field `{name}`", indicator, INDICATORS)
    for dialect in (*rule.dialects, *rule.not_in):
        _among(f"{where}, field `dialects`", dialect, DIALECTS)
    _check_inputs(where, rule)
    _check_figures(where, rule)
    return rule


def _check_inputs(where: str, rule: Rule) -> None:
    if rule.condition != "diagnosis" and not rule.indicator and not rule.metric:
        raise ValueError(
            f"{where}, field `metric`: is missing; a rule judges a metric or an indicator"
        )
    if STREAMS[rule.stream] and not rule.beside_indicator and not rule.beside_metric:
        raise ValueError(
            f"{where}, field `beside_metric`: is missing; the stream `{rule.stream}` has two inputs"
        )


def _check_figures(where: str, rule: Rule) -> None:
    if rule.condition == "outside" and not rule.low < rule.high:
        raise ValueError(
            f"{where}, field `low`: must be below `high` ({rule.low} is not below {rule.high})"
        )
    if not 0 <= rule.clear < rule.share <= 1:
        raise ValueError(
            f"{where}, field `clear`: must be from 0 to below `share`, and `share` at most 1"
        )


def _among(where: str, value: str, known: Mapping[str, Any] | tuple[str, ...]) -> None:
    if value not in known:
        names = ", ".join(name for name in known if name)
        raise ValueError(f"{where}: must be one of {names}, not {value!r}")

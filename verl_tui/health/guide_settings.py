"""Reads the guide from `guide.toml`, and applies and checks the user's changes."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
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
_TYPES = {item.name: str(item.type) for item in fields(Rule)}
"""Field of a rule -> its type as it is written there."""
_OLD_NAMES = {"silent": "unless"}
"""Former names of fields, which users may still have in their settings."""


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


def _require(holds: object, where: str, words: str) -> None:
    """Raise an error that says where settings are wrong and what must hold there."""
    if not holds:
        raise ValueError(f"{where}: {words}")


def _with_changes(entries: tuple[Rule, ...], changes: object) -> dict[str, Rule]:
    """Return the rules by name, with the user's changes and new ones."""
    if not isinstance(changes, Mapping):
        raise ValueError(
            "health settings, field `rules`: must be a table of rules, each with its fields"
        )
    rules = {rule.name: rule for rule in entries}
    for name, change in changes.items():
        is_table = isinstance(change, Mapping)
        _require(
            is_table, f"rule `{name}`", f"must be a table of fields, not {change!r}"
        )
        known = rules.get(name)
        rules[name] = _new(name, change) if known is None else _change(known, change)
    return rules


def _response_limit(limit: Any) -> Any:
    if limit is None:
        return None
    is_number = isinstance(limit, int | float) and not isinstance(limit, bool)
    _require(
        is_number and not limit <= 0,
        "health settings, field `response_limit`",
        f"must be a number of tokens above 0, not {limit!r}",
    )
    return limit


def _silenced(names: Any, rules: Mapping[str, Rule]) -> frozenset[str]:
    where = "health settings, field `silence`"
    is_list = isinstance(names, list | tuple | set | frozenset)
    _require(is_list, where, f"must be a list of rule ids, not {names!r}")
    known = {rule.id for rule in rules.values()}
    for name in names:
        _require(name in known, where, f"there is no rule `{name}`")
    return frozenset(names)


@cache
def _read() -> tuple[tuple[Rule, ...], tuple[Band, ...]]:
    data = toml_table(__file__, "guide.toml")
    open_ends = {"low": None, "high": None}
    bands = [
        Band(**{**open_ends, **band, "dialects": tuple(band["dialects"])})
        for band in data["band"]
    ]
    return tuple(map(_rule, data["rule"])), tuple(bands)


def _new(name: str, change: Mapping[str, Any]) -> Rule:
    id, _, variant = name.partition("/")
    for needed in ("severity", "condition"):
        words = f"field `{needed}` is missing; a new rule needs it"
        _require(needed in change, f"rule `{name}`", words)
    _require(
        change["condition"] != "diagnosis",
        f"rule `{name}`, field `condition`",
        "a diagnosis is code; a new rule needs another condition",
    )
    title = change.get("title") or change.get("metric") or change.get("indicator")
    title = title[0] if isinstance(title, list) and title else title
    own = {"id": id, "variant": variant, "title": title or id}
    return _rule({"source": "your settings", **change, **own})


def _change(rule: Rule, change: Mapping[str, Any]) -> Rule:
    for key in change:
        _require(
            key not in ("id", "variant"),
            f"rule `{rule.name}`, field `{key}`",
            "a rule's name is public and cannot be changed",
        )
    checked = _checked(rule.name, change)
    # A threshold of the user's own is no longer the document's, and nobody has measured it.
    if any(_TYPES[key] in ("int", "float") for key in checked):
        source = f"{rule.source}, changed in your settings"
        checked = {"source": source, "null_rate": "", **checked}
    return _sound(replace(rule, **checked))


def _rule(entry: Mapping[str, Any]) -> Rule:
    name = str(entry.get("id", "?"))
    checked = _checked(name, entry)
    condition = checked["condition"]
    for needed in NEEDED.get(condition, ()):
        words = f"is missing; the condition `{condition}` needs it"
        _require(needed in checked, f"rule `{name}`, field `{needed}`", words)
    return _sound(Rule(**checked))


def _checked(name: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields in their own types."""
    checked: dict[str, Any] = {}
    for written, value in entry.items():
        key = _OLD_NAMES.get(written, written)
        _require(key in _TYPES, f"rule `{name}`", f"unknown field `{written}`")
        check = _CHECKS[_TYPES[key]]
        checked[key] = check(f"rule `{name}`, field `{written}`", value)
    return checked


def _severity(where: str, value: Any) -> Severity:
    if isinstance(value, Severity):
        return value
    words = f"must be info, warning or critical, not {value!r}"
    _require(value in _SEVERITIES, where, words)
    return _SEVERITIES[value]


def _of_type(kind: type, words: str, where: str, value: Any) -> Any:
    _require(isinstance(value, kind), where, f"must be {words}, not {value!r}")
    return value


def _number(where: str, value: Any, *, whole: bool) -> Any:
    kinds = int if whole else int | float
    is_number = isinstance(value, kinds) and not isinstance(value, bool)
    words = "whole number" if whole else "number"
    _require(
        is_number and not math.isnan(value), where, f"must be a {words}, not {value!r}"
    )
    _require(not whole or value >= 1, where, f"must be at least 1, not {value!r}")
    return value


def _words(where: str, value: Any) -> tuple[str, ...]:
    words = [value] if isinstance(value, str) else value
    are_texts = isinstance(words, list | tuple) and all(
        isinstance(word, str) for word in words
    )
    _require(are_texts, where, f"must be a text or a list of texts, not {value!r}")
    return tuple(words)


_CHECKS: Mapping[str, Callable[[str, Any], Any]] = {
    "Severity": _severity,
    "str": partial(_of_type, str, "text"),
    "bool": partial(_of_type, bool, "true or false"),
    "int": partial(_number, whole=True),
    "float": partial(_number, whole=False),
    "tuple[str, ...]": _words,
    "Mapping[str, str]": partial(_of_type, Mapping, "a table"),
}
"""Type of a field -> the function that returns its value in it."""
_CHOICES: Mapping[str, Collection[str]] = {
    "condition": NEEDED,
    "stream": STREAMS,
    "trend": ("", "rising", "not rising"),
    "of": LIMIT_NAMES,
    "causes": CAUSE_NAMES,
    "indicator": ("", *INDICATORS),
    "beside_indicator": ("", *INDICATORS),
}
"""Field -> the words that it may have."""


def _sound(rule: Rule) -> Rule:
    """Return the rule if its fields make sense together."""
    where = f"rule `{rule.name}`"
    for name, known in _CHOICES.items():
        _among(f"{where}, field `{name}`", getattr(rule, name), known)
    for dialect in (*rule.dialects, *rule.not_in):
        _among(f"{where}, field `dialects`", dialect, DIALECTS)
    _require(
        rule.condition == "diagnosis" or rule.indicator or rule.metric,
        f"{where}, field `metric`",
        "is missing; a rule judges a metric or an indicator",
    )
    _require(
        not STREAMS[rule.stream] or rule.beside_indicator or rule.beside_metric,
        f"{where}, field `beside_metric`",
        f"is missing; the stream `{rule.stream}` has two inputs",
    )
    _require(
        rule.condition != "outside" or rule.low < rule.high,
        f"{where}, field `low`",
        f"must be below `high` ({rule.low} is not below {rule.high})",
    )
    _require(
        0 <= rule.clear < rule.share <= 1,
        f"{where}, field `clear`",
        "must be from 0 to below `share`, and `share` at most 1",
    )
    return rule


def _among(where: str, value: str, known: Collection[str]) -> None:
    if value not in known:
        names = ", ".join(filter(None, known))
        raise ValueError(f"{where}: must be one of {names}, not {value!r}")

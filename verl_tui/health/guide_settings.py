"""Reads the guide from `guide.toml`, and applies and checks the user's changes."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, replace
from functools import cache
from typing import Any

from verl_tui.health.finding import SEVERITIES, Severity
from verl_tui.health.guide import (
    DIALECTS,
    Band,
    Guide,
    Rule,
)
from verl_tui.health.limits import CAUSES, LIMITS
from verl_tui.indicators import INDICATORS
from verl_tui.toml_tables import toml_table

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
    known = {"silence": (), "response_limit": None, "rules": {}, **(overrides or {})}
    for key in known:
        words = f"unknown field `{key}`; known are silence, response_limit, rules"
        _require(
            key in ("silence", "response_limit", "rules"), "health settings", words
        )
    silenced, limit, changes = known["silence"], known["response_limit"], known["rules"]
    where = "health settings, field"
    words = "must be a table of rules, each with its fields"
    _require(isinstance(changes, Mapping), f"{where} `rules`", words)
    words = f"must be a number of tokens above 0, not {limit!r}"
    is_limit = limit is None or (_is_number(limit) and limit > 0)
    _require(is_limit, f"{where} `response_limit`", words)
    is_list = isinstance(silenced, list | tuple | set | frozenset)
    words = f"must be a list of rule ids, not {silenced!r}"
    _require(is_list, f"{where} `silence`", words)
    rules = {rule.name: rule for rule in entries}
    for name, change in changes.items():
        words = f"must be a table of fields, not {change!r}"
        _require(isinstance(change, Mapping), f"rule `{name}`", words)
        old = rules.get(name)
        rules[name] = _new(name, change) if old is None else _change(old, change)
    ids = {rule.id for rule in rules.values()}
    for name in silenced:
        _require(name in ids, f"{where} `silence`", f"there is no rule `{name}`")
    return Guide(tuple(rules.values()), bands, frozenset(silenced), limit)


def _require(holds: object, where: str, words: str) -> None:
    """Raise an error that says where settings are wrong and what must hold there."""
    if not holds:
        raise ValueError(f"{where}: {words}")


@cache
def _read() -> tuple[tuple[Rule, ...], tuple[Band, ...]]:
    data = toml_table(__file__, "guide.toml")
    open_ends = {"low": None, "high": None}
    bands = [
        Band(**{**open_ends, **band, "dialects": tuple(band["dialects"])})
        for band in data["band"]
    ]
    rules = (Rule(**_checked("?", entry)) for entry in data["rule"])
    return tuple(rules), tuple(bands)


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
    checked = _checked(id, {"source": "your settings", **change, **own})
    return _sound(Rule(**checked), set(checked))


def _change(rule: Rule, change: Mapping[str, Any]) -> Rule:
    for key in change:
        words = "a rule's name is public and cannot be changed"
        where = f"rule `{rule.name}`, field `{key}`"
        _require(key not in ("id", "variant"), where, words)
    checked = _checked(rule.name, change)
    # A threshold of the user's own is no longer the document's, and nobody has measured it.
    if any(_TYPES[key] in ("int", "float") for key in checked):
        source = f"{rule.source}, changed in your settings"
        checked = {"source": source, "null_rate": "", **checked}
    return _sound(replace(rule, **checked), set(_TYPES))


def _checked(name: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields in their own types."""
    checked: dict[str, Any] = {}
    for written, value in entry.items():
        key = _OLD_NAMES.get(written, written)
        _require(key in _TYPES, f"rule `{name}`", f"unknown field `{written}`")
        words, fits, convert = _KINDS[_TYPES[key]]
        where = f"rule `{name}`, field `{written}`"
        _require(fits(value), where, f"must be {words}, not {value!r}")
        if _TYPES[key] == "int":
            _require(value >= 1, where, f"must be at least 1, not {value!r}")
        checked[key] = convert(value)
    return checked


def _is_number(value: object, kinds: Any = int | float) -> bool:
    is_number = isinstance(value, kinds) and not isinstance(value, bool)
    return is_number and not math.isnan(value)  # type: ignore[arg-type]


def _are_words(value: object) -> bool:
    words = value if isinstance(value, list | tuple) else [value]
    return all(isinstance(word, str) for word in words)


def _same(value: Any) -> Any:
    return value


_KINDS: Mapping[str, tuple[str, Callable[[Any], bool], Callable[[Any], Any]]] = {
    "Severity": (
        "info, warning or critical",
        lambda value: isinstance(value, Severity) or value in [*SEVERITIES],
        lambda value: SEVERITIES.get(value, value),
    ),
    "str": ("text", lambda value: isinstance(value, str), _same),
    "bool": ("true or false", lambda value: isinstance(value, bool), _same),
    "int": ("a whole number", lambda value: _is_number(value, int), _same),
    "float": ("a number", _is_number, _same),
    "tuple[str, ...]": (
        "a text or a list of texts",
        _are_words,
        lambda value: (value,) if isinstance(value, str) else tuple(value),
    ),
    "Mapping[str, str]": ("a table", lambda value: isinstance(value, Mapping), _same),
}
"""Type of a field -> what its value must be, whether it is, and what is made of it."""
_TOGETHER: Mapping[str, tuple[Callable[[Rule], object], str]] = {
    "metric": (
        lambda rule: rule.condition == "diagnosis" or rule.indicator or rule.metric,
        "is missing; a rule judges a metric or an indicator",
    ),
    "low": (
        lambda rule: rule.condition != "outside" or rule.low < rule.high,
        "must be below `high` ({low} is not below {high})",
    ),
    "clear": (
        lambda rule: 0 <= rule.clear < rule.share <= 1,
        "must be from 0 to below `share`, and `share` at most 1",
    ),
}
"""Field -> whether it makes sense beside the others, and what must hold."""


def _sound(rule: Rule, given: Collection[str]) -> Rule:
    """Return a rule of the user's if its fields make sense together; the guide's own do.

    Args:
        rule: The rule.
        given: The fields that it states.
    """
    from verl_tui.health.conditions import KINDS
    from verl_tui.health.inputs import COMBINATIONS, SINGLE

    where = f"rule `{rule.name}`, field"
    choices: Mapping[str, Collection[str]] = {
        "condition": (*KINDS, "diagnosis"),
        "stream": (*SINGLE, *COMBINATIONS),
        "trend": ("", "rising", "not rising"),
        "of": ("", *LIMITS),
        "causes": CAUSES,
        "indicator": ("", *INDICATORS),
        "beside_indicator": ("", *INDICATORS),
    }
    for name, known in choices.items():
        _among(f"{where} `{name}`", getattr(rule, name), known)
    for dialect in (*rule.dialects, *rule.not_in):
        _among(f"{where} `dialects`", dialect, DIALECTS)
    kind = KINDS.get(rule.condition)
    for needed in kind.fields if kind else ():
        words = f"is missing; the condition `{rule.condition}` needs it"
        _require(needed in given, f"{where} `{needed}`", words)
    beside = rule.beside_indicator or rule.beside_metric
    words = f"is missing; the stream `{rule.stream}` has two inputs"
    _require(rule.stream in SINGLE or beside, f"{where} `beside_metric`", words)
    for name, (holds, words) in _TOGETHER.items():
        figures = {"low": rule.low, "high": rule.high}
        _require(holds(rule), f"{where} `{name}`", words.format_map(figures))
    return rule


def _among(where: str, value: str, known: Collection[str]) -> None:
    names = ", ".join(filter(None, known))
    _require(value in known, where, f"must be one of {names}, not {value!r}")

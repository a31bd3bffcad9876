"""Reads the guide from `guide.toml`, and applies and checks the user's changes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields, replace
from functools import cache
from typing import Any

from verl_tui.config import TRUTH, Setting, is_number, read_settings
from verl_tui.health.finding import SEVERITIES
from verl_tui.health.guide import Band, Guide, Rule
from verl_tui.indicators import INDICATORS
from verl_tui.toml_tables import toml_table


def _listed(value: Any) -> list[Any]:
    return [value] if isinstance(value, str) else [*value]


def _are_texts(value: Any) -> bool:
    is_list = isinstance(value, str | list | tuple)
    return is_list and all(isinstance(one, str) for one in value)


def _is_table(value: Any) -> bool:
    return isinstance(value, Mapping)


_TEXTS = Setting("a text or a list of texts", _are_texts, lambda v: tuple(_listed(v)))
_KINDS = {
    "Severity": Setting(
        "info, warning or critical", [*SEVERITIES].__contains__, SEVERITIES.get
    ),
    "str": Setting("a text", lambda value: isinstance(value, str)),
    "bool": TRUTH,
    "int": Setting(
        "a whole number above 0", lambda value: type(value) is int and value > 0
    ),
    "float": Setting("a number", is_number),
    "tuple[str, ...]": _TEXTS,
    "Mapping[str, str]": Setting("a table", _is_table),
}
"""Type of a field -> what its value must be."""
_FIELDS = {item.name: _KINDS[str(item.type)] for item in fields(Rule)}
_NAMES = ("id", "variant")
_INDICATORS = ("indicator", "beside_indicator")
_SETTINGS = {
    "silence": _TEXTS,
    "response_limit": Setting(
        "a number of tokens above 0", lambda value: is_number(value) and value > 0
    ),
    "rules": Setting("a table of rules, each with its fields", _is_table),
}


def load_guide(overrides: Mapping[str, Any] | None = None) -> Guide:
    """Return the guide, with a user's changes.

    Args:
        overrides: `silence` (list of ids), `response_limit` (tokens) and `rules`: id (or
            `id/variant`) -> fields to change; an id that the guide does not know is a new rule.

    Raises:
        ValueError: A rule, or a change of one, makes no sense; the text names rule and field.
    """
    entries, bands = _read()
    given = read_settings(overrides or {}, _SETTINGS, "guide.")
    rules = {rule.name: rule for rule in entries}
    for name, change in given.get("rules", {}).items():
        place = f"guide.rules.{name}"
        _require(_is_table(change), place, "be a table of fields")
        known = {key: one for key, one in _FIELDS.items() if key not in _NAMES}
        fresh = read_settings(change, known, f"{place}.")
        old = rules.get(name)
        rules[name] = _changed(old, fresh) if old else _new(name, fresh)
        _check(rules[name], place, _FIELDS if old else fresh)
    ids = {rule.id for rule in rules.values()}
    silenced = frozenset(given.get("silence", ()))
    unknown = ", ".join(sorted(silenced - ids))
    _require(not unknown, "guide.silence", f"name rules: there is no {unknown}")
    return Guide(tuple(rules.values()), bands, silenced, given.get("response_limit"))


def _require(holds: object, place: str, words: str) -> None:
    """Raise an error that says where settings are wrong and what must hold there."""
    if not holds:
        raise ValueError(f"`{place}` must {words}")


@cache
def _read() -> tuple[tuple[Rule, ...], tuple[Band, ...]]:
    data = toml_table(__file__, "guide.toml")
    open_ends = {"low": None, "high": None}
    bands = [
        Band(**{**open_ends, **band, "dialects": tuple(band["dialects"])})
        for band in data["band"]
    ]
    rules = [Rule(**read_settings(entry, _FIELDS)) for entry in data["rule"]]
    return tuple(rules), tuple(bands)


def _new(name: str, given: Mapping[str, Any]) -> Rule:
    id, _, variant = name.partition("/")
    for needed in ("severity", "condition"):
        _require(needed in given, f"guide.rules.{name}", f"have a `{needed}`")
    is_code = given["condition"] == "diagnosis"
    words = "be another condition: a diagnosis is code"
    _require(not is_code, f"guide.rules.{name}.condition", words)
    title = [*given.get("metric", ()), given.get("indicator"), id]
    own = {"title": next(filter(None, title)), "source": "your settings", **given}
    return Rule(id=id, variant=variant, **own)


def _changed(rule: Rule, given: dict[str, Any]) -> Rule:
    # A threshold of the user's own is no longer the document's, and nobody has measured it.
    if any(is_number(value) for value in given.values()):
        source = f"{rule.source}, changed in your settings"
        given = {"source": source, "null_rate": "", **given}
    return replace(rule, **given)


def _beside(rule: Rule) -> object:
    return rule.beside_indicator or rule.beside_metric


@cache
def _choices() -> Mapping[str, Collection[str]]:
    """Return what fields may say: any indicator; of others what some rule of the guide says."""
    names = ("condition", "stream", "trend", "of", "causes", "dialects")
    choices: dict[str, Collection[str]] = {
        name: sorted({one for own in _read()[0] for one in _listed(getattr(own, name))})
        for name in names
    }
    return choices | dict.fromkeys(_INDICATORS, ("", *INDICATORS))


def _check(rule: Rule, place: str, given: Collection[str]) -> None:
    """Raise an error if the fields of a user's rule make no sense together.

    Args:
        rule: The rule.
        place: Where it stands in the settings.
        given: The fields that it states.
    """
    from verl_tui.health.conditions import KINDS

    for name, known in _choices().items():
        fits = {*_listed(getattr(rule, name))} <= {*known}
        words = f"be one of {', '.join(filter(None, known))}"
        _require(fits, f"{place}.{name}", words)
    kind = KINDS.get(rule.condition)
    if kind:
        missing = ", ".join(sorted({*kind.fields} - {*given}))
        _require(not missing, place, f"have {missing}, as its condition needs it")
        _require(rule.parts or rule.indicator or rule.metric, place, "judge a metric")
    alone = {one.stream for one in _read()[0] if not _beside(one)}
    words = f"have a `beside_metric`: `{rule.stream}` has two inputs"
    _require(_beside(rule) or rule.stream in alone, place, words)
    is_ordered = rule.condition != "outside" or rule.low < rule.high
    words = f"be below `high` ({rule.low} is not below {rule.high})"
    _require(is_ordered, f"{place}.low", words)
    is_within = 0 <= rule.clear < rule.share <= 1
    _require(is_within, f"{place}.clear", "be from 0 to below `share`")

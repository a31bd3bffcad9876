"""The guide: all rules as data, read from `guide.toml`, with the user's own changes."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from verl_tui.health.finding import Severity
from verl_tui.indicators import INDICATORS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found,unused-ignore]

_SEVERITIES = {severity.word: severity for severity in Severity}
DIALECTS = ("tutorial", "verl", "other")


@dataclass(frozen=True, slots=True)
class Rule:
    """One entry of the guide. Which fields matter depends on the condition."""

    id: str
    """Public name, e.g. `kl-high`. Several variants of a rule share it where logs differ in what
    they offer.
    """
    severity: Severity
    title: str
    """What is judged, in a few words, as it stands in a sentence."""
    condition: str
    """Kind of the condition, one of `NEEDED`; `diagnosis` has its own file in `verl_tui/health`."""
    variant: str = ""
    indicator: str = ""
    """What is judged: an indicator's id …"""
    metric: tuple[str, ...] = ()
    """… or verl's present name of a metric, alternatives in order; with `*` every matching key on
    its own.
    """
    parts: bool = False
    """Whether each part of the reward is judged, and not the indicator itself."""
    beside_indicator: str = ""
    """A second input, for streams that need one: an indicator's id …"""
    beside_metric: tuple[str, ...] = ()
    """… or a metric."""
    stream: str = "value"
    """How the inputs make the judged number, see `verl_tui.health.streams`."""
    percent: bool = False
    """Whether the number is a percentage, which some logs write as a share of 1."""
    threshold: float = 0.0
    low: float = 0.0
    high: float = 0.0
    of: str = ""
    """A limit of the run's own settings that the threshold is a multiple of, see
    `verl_tui.health.limits`.
    """
    window: int = 1
    """Points (logged steps) looked at."""
    why_window: str = ""
    """Why this many: the guides say `for long` and name no number."""
    count: int = 5
    """Breaches in a row (circuit breakers, a fall to zero)."""
    factor: float = 1.0
    """How many times its own past (jumps, surges, rises)."""
    spread: float = 0.0
    """How many standard deviations of its own past (jumps)."""
    floor: float = 0.0
    """Values below are never found (jumps, surges)."""
    tail: float = 0.0
    """How many times the upper tail of its own past (jumps): what comes again and again is none."""
    ignore: float = -math.inf
    """Share of the floor up to which a value says nothing of what is usual (jumps)."""
    least: int = 0
    """Points of the past without which nothing is told (jumps); 0 = the whole window."""
    hold: int = 10
    """Points after a jump until it is no longer told."""
    recent: int = 5
    """Points that must have surged, or fallen."""
    share: float = 0.8
    """Share of the window that must be in breach for a finding to begin."""
    clear: float = 0.5
    """Share at or below which it ends."""
    trend: str = ""
    climb: float = 0.0
    dialects: tuple[str, ...] = DIALECTS
    """Whose logs it judges."""
    not_in: Mapping[str, str] = field(default_factory=dict)
    """Dialect -> why it is not judged there."""
    unless: tuple[str, ...] = ()
    """Names of the exemptions under which it does not apply, see `verl_tui.health.applicability`."""
    says: str = ""
    """A sentence's beginning that replaces `<title> has stayed <where>`."""
    label: str = ""
    """A remark that belongs to every finding, e.g. what a measurement really is."""
    false_when: str = ""
    """What would make it false on a log of another unit, scale or sparsity, and what is done about
    that.
    """
    meaning: str = ""
    advice: str = ""
    source: str = ""
    """The document that the threshold is from, or `heuristic`."""
    null_rate: str = ""
    """Of how many measured runs without a fault it spoke, e.g. `0 of 600`; empty where its figures
    were changed.
    """
    causes: str = ""
    """Which settings may be to blame and are looked at then, see `verl_tui.health.causes`: `drift`
    or `length`.
    """
    explains: tuple[str, ...] = ()
    """Ids of what only follows from this where it begins no earlier, see
    `verl_tui.health.consequences`.
    """
    signs: tuple[str, ...] = ()
    """Ids of what is a sign of this and may begin earlier."""
    before: int = 300
    """Logged points by which a sign may begin earlier."""

    @property
    def name(self) -> str:
        """Unique name: the id, with the variant where there is one."""
        return f"{self.id}/{self.variant}" if self.variant else self.id


@dataclass(frozen=True, slots=True)
class Band:
    """Where a healthy indicator lies."""

    indicator: str
    dialects: tuple[str, ...]
    low: float | None
    high: float | None
    of: str = ""
    """A limit that low and high are multiples of."""
    source: str = ""


@dataclass(frozen=True)
class Guide:
    """The rules in force."""

    rules: tuple[Rule, ...]
    bands: tuple[Band, ...]
    silenced: frozenset[str] = frozenset()
    """Ids that the user does not want to hear of."""
    response_limit: float | None = None
    """Longest response in tokens, for logs that do not tell."""

    def rule(self, id: str) -> Rule | None:
        """Return the rule of that id (its first variant), None where there is none."""
        return next((rule for rule in self.rules if rule.id == id), None)

    def band(
        self, indicator_id: str, dialect: str, response_limit: float | None = None
    ) -> tuple[float | None, float | None] | None:
        """Return the healthy band of an indicator, for charts.

        Args:
            indicator_id: Public id, e.g. `policy_kl`.
            dialect: Whose names the log uses.
            response_limit: The run's limit of response length; without it the user's setting, else
                the guide's 512.

        Returns:
            Lower and upper limit, each None where open; None where the guide knows no band.
        """
        for band in self.bands:
            if band.indicator == indicator_id and dialect in band.dialects:
                unit = (
                    (response_limit or self.response_limit or ASSUMED_RESPONSE_LIMIT)
                    if band.of
                    else 1.0
                )
                return (
                    None if band.low is None else band.low * unit,
                    None if band.high is None else band.high * unit,
                )
        return None


ASSUMED_RESPONSE_LIMIT = 512.0
"""The tutorials' max_new_tokens, for runs whose own is not known."""

_STEADY = ("threshold", "window")
NEEDED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "above": _STEADY,
        "at-least": _STEADY,
        "below": _STEADY,
        "outside": ("low", "high", "window"),
        "noisy": _STEADY,
        "swings": _STEADY,
        "zero": ("window", "count"),
        "cliff": _STEADY,
        "jump": ("factor", "spread", "window"),
        "surge": ("factor", "window"),
        "rising": ("factor", "window"),
        "streak": ("threshold", "count"),
        "drops": ("threshold", "count"),
        "slide": ("threshold",),
        "fall": ("threshold",),
        "scaled": ("factor", "window"),
        "diagnosis": (),
    }
)
"""Kind of a condition -> the fields that it cannot do without."""

STREAMS: Mapping[str, bool] = MappingProxyType(
    {
        "value": False,
        "absolute": False,
        "ratio": True,
        "difference": True,
        "product": True,
        "widest": True,
        "at limit": True,
        "unbought": True,
        "unbought lately": True,
        "mean of all": False,
    }
)
"""Kind of a stream -> whether it needs a second input."""

LIMIT_NAMES = (
    "",
    "response-limit",
    "target-kl",
    "kl-band",
    "staleness-limit",
    "gradient-clip",
    "kl-scale",
)
"""What a threshold may be a multiple of, see `verl_tui.health.limits`."""

CAUSE_NAMES = ("", "drift", "length")
"""Groups of settings that may be to blame, see `verl_tui.health.causes`."""

_COUNTS = ("window", "count", "hold", "recent", "least", "before")
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
_LISTS = ("metric", "beside_metric", "dialects", "unless", "explains", "signs")
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
    changes = overrides.get("rules", {})
    if not isinstance(changes, Mapping):
        raise ValueError(
            "health settings, field `rules`: must be a table of rules, each with its fields"
        )
    rules = {rule.name: rule for rule in entries}
    for name, change in changes.items():
        if not isinstance(change, Mapping):
            raise ValueError(f"rule `{name}`: must be a table of fields, not {change!r}")
        rules[name] = _change(rules[name], change) if name in rules else _new(name, change)
    limit = overrides.get("response_limit")
    if limit is not None and (
        isinstance(limit, bool) or not isinstance(limit, int | float) or limit <= 0
    ):
        raise ValueError(
            f"health settings, field `response_limit`: must be a number of tokens above 0, not {limit!r}"
        )
    return Guide(
        tuple(rules.values()), bands, _silenced(overrides.get("silence", ()), rules), limit
    )


def _silenced(names: object, rules: Mapping[str, Rule]) -> frozenset[str]:
    if isinstance(names, str) or not isinstance(names, list | tuple | set | frozenset):
        raise ValueError(
            f"health settings, field `silence`: must be a list of rule ids, not {names!r}"
        )
    known = {rule.id for rule in rules.values()}
    for name in names:
        if name not in known:
            raise ValueError(f"health settings, field `silence`: there is no rule `{name}`")
    return frozenset(names)


@cache
def _read() -> tuple[tuple[Rule, ...], tuple[Band, ...]]:
    data = tomllib.loads(Path(__file__).with_name("guide.toml").read_text(encoding="utf-8"))
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
            raise ValueError(f"rule `{name}`: field `{needed}` is missing; a new rule needs it")
    if change["condition"] == "diagnosis":
        raise ValueError(
            f"rule `{name}`, field `condition`: a diagnosis is code; a new rule needs another condition"
        )
    title = change.get("title") or change.get("metric") or change.get("indicator")
    title = title[0] if isinstance(title, list) and title else title
    return _rule(
        {"source": "your settings", **change, "id": id, "variant": variant, "title": title or id}
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
        checked = {"source": f"{rule.source}, changed in your settings", "null_rate": "", **checked}
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


_SWITCHES = ("percent", "parts")


def _field(where: str, key: str, value: object) -> object:
    if key == "severity":
        if isinstance(value, Severity):
            return value
        if value not in _SEVERITIES:
            raise ValueError(f"{where}: must be info, warning or critical, not {value!r}")
        return _SEVERITIES[str(value)]
    if key in _NUMBERS or key in _COUNTS:
        return _number(where, value, whole=key in _COUNTS)
    if key in _LISTS:
        return _words(where, value)
    if key in (*_SWITCHES, "not_in"):
        if not isinstance(value, bool if key in _SWITCHES else Mapping):
            raise ValueError(
                f"{where}: must be {'true or false' if key in _SWITCHES else 'a table'}, not {value!r}"
            )
        return value
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
    if not isinstance(words, list | tuple) or not all(isinstance(word, str) for word in words):
        raise ValueError(f"{where}: must be a text or a list of texts, not {value!r}")
    return tuple(words)


def _sound(rule: Rule) -> Rule:
    """Return the rule if its fields make sense together."""
    where = f"rule `{rule.name}`"
    _among(f"{where}, field `condition`", rule.condition, NEEDED)
    _among(f"{where}, field `stream`", rule.stream, STREAMS)
    _among(f"{where}, field `trend`", rule.trend, _TRENDS)
    _among(f"{where}, field `of`", rule.of, LIMIT_NAMES)
    _among(f"{where}, field `causes`", rule.causes, CAUSE_NAMES)
    for field_, indicator in (
        ("indicator", rule.indicator),
        ("beside_indicator", rule.beside_indicator),
    ):
        if indicator:
            _among(f"{where}, field `{field_}`", indicator, INDICATORS)
    for dialect in (*rule.dialects, *rule.not_in):
        _among(f"{where}, field `dialects`", dialect, DIALECTS)
    if rule.condition != "diagnosis" and not rule.indicator and not rule.metric:
        raise ValueError(
            f"{where}, field `metric`: is missing; a rule judges a metric or an indicator"
        )
    if STREAMS[rule.stream] and not rule.beside_indicator and not rule.beside_metric:
        raise ValueError(
            f"{where}, field `beside_metric`: is missing; the stream `{rule.stream}` has two inputs"
        )
    if rule.condition == "outside" and not rule.low < rule.high:
        raise ValueError(
            f"{where}, field `low`: must be below `high` ({rule.low} is not below {rule.high})"
        )
    if not 0 <= rule.clear < rule.share <= 1:
        raise ValueError(
            f"{where}, field `clear`: must be from 0 to below `share`, and `share` at most 1"
        )
    return rule


def _among(where: str, value: str, known: Mapping[str, Any] | tuple[str, ...]) -> None:
    if value not in known:
        names = ", ".join(name for name in known if name)
        raise ValueError(f"{where}: must be one of {names}, not {value!r}")

"""Map the metrics of several frameworks to indicators: `indicators.toml`.

The ids are public and stable: rules, exporters and users' settings name them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from verl_tui import trainers
from verl_tui.distributions import one_each, spreads
from verl_tui.metrics import modern, slashed
from verl_tui.patterns import NamePattern, pattern
from verl_tui.toml_tables import toml_table

KeysOfLog: TypeAlias = "Collection[str]"
"""The keys of a log, or some of them."""


class Indicator(NamedTuple):
    """One quantity that training is judged by, whatever a log calls it."""

    id: str
    """Public name."""
    label: str
    """A few words for a title."""
    unit: str
    """Unit where all spellings share it, else empty: ask `metrics.describe` about the log's own
    key.
    """
    direction: str
    group: str
    partners: tuple[str, ...]
    """What belongs into a chart with it, the best first."""


_VALIDATIONS: dict[str, Any] = toml_table(__file__, "validations.toml")


_SCORES_OF = [
    NamePattern(
        re.sub(r"<(\w*score)>", lambda named: _VALIDATIONS[named[1]], form).replace(
            "\n", ""
        )
    )
    for form in (*_VALIDATIONS["core"], *_VALIDATIONS["auxiliary"])
]
"""Forms of validation scores, the best first."""
TUTORIALS = "verl's tutorials"
_TABLE = trainers.INDICATOR_TABLE
_MEANS = ("{}", "mean_{}", "avg_{}", "average_{}", "{}_mean", "{}_avg")
"""How home-made logs call a mean."""

INDICATORS: Mapping[str, Indicator] = MappingProxyType(
    {
        id: Indicator(
            id,
            row["label"],
            row.get("unit", ""),
            row.get("direction", ""),
            row["group"],
            tuple(row.get("partners", "").split()),
        )
        for id, row in _TABLE.items()
    }
)
"""Indicator id -> indicator, in the order of showing."""


def _both(names: str) -> list[str]:
    return [one for name in names.split() for one in (name, f"train/{name}")]


@cache
def home_made(id: str) -> Sequence[str]:
    """Return how home-made logs spell an indicator: nobody says whether it is per token or of a
    whole response. Other programs may spell it so, too.
    """
    own = _TABLE[id].get("home_made", "").split()
    return _both(" ".join(form.format(name) for name in own for form in _MEANS))


@cache
def spellings(id: str) -> tuple[str, ...]:
    """Return the names that mean an indicator in any log, in order of preference: none of
    `validation`, which expressions tell.
    """
    others = _both(_TABLE[id].get("others", ""))
    of_trainers = trainers.spellings().get(id, ())
    return tuple(dict.fromkeys((*of_trainers, *others, *home_made(id))))


@cache
def is_home_made(key: str) -> bool:
    """Return whether only home-made logs spell an indicator so."""
    known = trainers.spellings()
    return any(key in home_made(id) and key not in known.get(id, ()) for id in _TABLE)


@cache
def is_tutorials(key: str) -> bool:
    """Return whether a name is one that verl's tutorials use."""
    tutorials = next(one for one in trainers.trainers() if one.name == TUTORIALS)
    return any(key in name.written for name in tutorials.names)


_LOSSES = ("train/loss", "loss", "loss/mean", "Loss", "train/Loss")
"""Losses that are a policy's only beside a reward; alone they are those of supervised fine-tuning,
or of learning from preferences.
"""
_PER_TOKEN = frozenset({"policy/approxkl_avg", "policy/clipfrac_avg"})
"""Names that TRL's PPO and its RLOO up to 0.21 share. PPO's are of tokens, RLOO's of whole
responses (`trl/trainer/rloo_trainer.py`): its KL is no KL per token.
"""
_OF_PPO = "loss/value_avg"
"""The metric that only PPO has: RLOO has no critic."""
_OF_ASYNC_GRPO = "forward_time_s"
"""The metric that only TRL's asynchronous GRPO has: its `kl` is to the policy that sampled, as it
knows no reference.
"""

_SCORES = pattern(r"(^|/)scores?$")
"""Other names of a list of rewards."""


def resolve(keys: KeysOfLog) -> dict[str, str]:
    """Find a log's own key for each indicator.

    The first spelling present wins, where there is none the mean or the median of a distribution of
    such a name; of several keys with one meaning, the one spelled verl's present way, then the
    alphabetically first. `truncated_share` may be `response_length/clip_ratio`, which is a share of
    truncated responses only before verl v0.9; the caller knows the version.

    Args:
        keys: All keys of the log, in any order.

    Returns:
        Indicator id -> key, for the indicators that the log has.
    """
    found, others = _of_trainers(keys)
    own, spread = _own_keys(keys, others), _of_distributions(keys)
    for id in INDICATORS:
        for known in (own, spread):
            for name in filter(known.get, spellings(id)):
                if id not in found and _means_it(id, name, known, found):
                    found[id] = known[name]
    if scores := validation_keys(tuple(keys)):
        found.setdefault("validation", scores[0])
    return found


def _of_trainers(keys: KeysOfLog) -> tuple[dict[str, str], set[str]]:
    """Find the keys of the indicators by what the trainers say of them whose own metrics a log has,
    and the keys that look like an indicator and are none.
    """
    found: dict[str, str] = {}
    others: set[str] = set()
    for trainer in trainers.writers(tuple(keys)):
        for name in trainer.names:
            key = min(filter(name.key.fullmatch, keys), default=None)
            if key is not None:
                found.setdefault(name.indicator, key)
        others.update(
            key for key in keys for one in trainer.others if one.fullmatch(key)
        )
    return found, others


def _means_it(id: str, name: str, known: KeysOfLog, found: KeysOfLog) -> bool:
    """Return whether a name that others use for something else means its indicator.

    Args:
        id: The indicator.
        name: One of its spellings.
        known: All names in the log.
        found: The indicators that were found before.
    """
    if name in _LOSSES:
        return "reward" in found
    prefix = "train/" if name.startswith("train/") else ""
    own = name.removeprefix(prefix)
    if own == "kl":
        return (prefix + _OF_ASYNC_GRPO in known) == (id == "policy_kl")
    return own not in _PER_TOKEN or prefix + _OF_PPO in known


def loss_alone(keys: KeysOfLog) -> str | None:
    """Return the loss of a training without rewards, whose fall is what it learns; None where there
    are rewards, or none is known by its name.
    """
    if "reward" in resolve(keys):
        return None
    own = _own_keys(keys)
    return next((own[name] for name in _LOSSES if name in own), None)


@lru_cache(256)
def validation_keys(keys: tuple[str, ...]) -> tuple[str, ...]:
    """Return a log's validation scores, the best first: `mean@N` of accuracy, then of reward, then
    other core scores.

    Auxiliary ones (`val-aux/…`) come only where there is nothing else; counts, lengths, times and
    losses never.
    """
    # Asked for at each judging, while keys hardly ever change.
    _, others = _of_trainers(keys)
    own = _own_keys(keys, others)
    ranked = sorted((rank, name) for name in own if (rank := _rank(name)) is not None)
    core = [(rank, name) for rank, name in ranked if rank < len(_VALIDATIONS["core"])]
    return tuple(own[name] for _, name in core or ranked)


@cache
def factor(indicator: str, key: str) -> float:
    """Return the factor from a key's values to the indicator's: -1 for a negated one, 0.01 for
    percents, mostly 1.
    """
    spelled = (key, modern(key))
    for name in (name for trainer in trainers.trainers() for name in trainer.names):
        is_of = name.factor != 1 and name.indicator == indicator
        if is_of and any(map(name.key.fullmatch, spelled)):
            return name.factor
    return 1.0


def _own_keys(keys: KeysOfLog, others: KeysOfLog = ()) -> dict[str, str]:
    """Map verl's present names to the log's own keys, except some, and one of each distribution;
    where two keys mean the same, the present name itself wins.
    """
    keys = one_each([key for key in keys if key not in others])
    own = {modern(key): key for key in sorted(keys, reverse=True)}
    return own | {key: key for key in keys if modern(key) == key}


def _of_distributions(keys: KeysOfLog) -> dict[str, str]:
    """Map what single numbers would be called to the lines of distributions: lists have names in
    the plural.
    """
    found: dict[str, str] = {}
    for stem, spread in spreads(keys).items():
        name = _SCORES.sub(r"\1rewards", modern(stem))
        one = re.sub("ies$", "ys", name).removesuffix("s")
        for spelling in (name, one):
            for form in ("{}", "{}/mean", "{}_mean"):
                found.setdefault(form.format(spelling), spread.line)
    return found


@cache
def _rank(name: str) -> int | None:
    """Return how good a validation score a name is, 0 for the best, None for what is no score."""
    ranks = enumerate(_SCORES_OF)
    return next((rank for rank, form in ranks if form.fullmatch(name)), None)


DIALECTS = ("tutorial", "verl", "other")
"""Whose names a log may use."""
_FORMS: dict[str, dict[str, NamePattern]] = {
    kind: {whose: NamePattern("|".join(words.split())) for whose, words in row.items()}
    for kind, row in toml_table(__file__, "dialects.toml").items()
}
"""Names that several write, and those that tell whose they are: `shared`, `clear`."""


def dialect(keys: KeysOfLog) -> str:
    """Say whose names a log uses: verl's own, those of its tutorials, or another framework's.

    The own metrics of a trainer that has a file of its own decide, then one name that only verl
    writes. Otherwise clear names are counted, then names that
    several share; a tie is `other`, since the tutorials' thresholds must not judge what they were
    not written for.
    """
    return "other" if trainers.writers(tuple(keys)) else _by_names(keys)


def _by_names(keys: KeysOfLog) -> str:
    count = Counter(evidence for key in one_each(keys) for evidence in _evidence(key))
    if count["verl", True]:
        return "verl"
    for clear in (True, False):
        most = max(count[whose, clear] for whose in DIALECTS)
        theirs = [whose for whose in DIALECTS if count[whose, clear] == most > 0]
        if theirs:
            return theirs[0] if len(theirs) == 1 else "other"
    return "other"


@cache
def _evidence(key: str) -> tuple[tuple[str, bool], ...]:
    """Return whose name a key is, each with whether it is theirs alone."""
    shared = tuple(
        (name, False) for name, form in _FORMS["shared"].items() if form.fullmatch(key)
    )
    if shared:
        return shared
    name = slashed(key)
    return tuple(
        (whose, True) for whose, form in _FORMS["clear"].items() if form.fullmatch(name)
    )

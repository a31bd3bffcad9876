"""Run identity: project, group, algorithm, model, and the settings that people compare first.

Everything is given as the settings state it, with the setting it was read from; facts that no
setting states are left out. How frameworks spell them stands in `identity.toml`.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_tui.patterns import pattern
from verl_tui.runs.settings import NAMES, RunSettings, is_open, number
from verl_tui.toml_tables import toml_table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence, Set

    from verl_tui.runs.run import Run


class Fact(NamedTuple):
    """One fact about a run."""

    label: str
    value: str
    key: str
    """The settings (or the metric) that state it."""


_TABLE: dict[str, dict[str, str]] = toml_table(__file__, "identity.toml")
_SPELLINGS = {
    label: tuple(names.split())
    for label, names in (*_TABLE["names"].items(), *_TABLE["known"].items())
} | {"responses per prompt": NAMES["responses"]}
"""Label of a fact -> the settings that state it."""
_ABOVE_ZERO = frozenset({"LoRA rank", "epochs", "total steps"})
"""Facts that only have a meaning above 0."""
_KL_SWITCHES = {"loss": "use_kl_loss", "reward": "use_kl_in_reward"}
"""Place of verl's KL penalty -> its switch."""
_ESTIMATOR = ("adv_estimator", "advantage_estimator")
_PARTS = ("prompts", "responses", "gpus", "nodes")
_IDENTIFYING = frozenset(
    (
        *(name for label in _TABLE["known"] for name in _SPELLINGS[label]),
        *(name for part in _PARTS for name in NAMES[part]),
        *_KL_SWITCHES.values(),
        *(*_ESTIMATOR, "loss_mode"),
    )
)


_NAMED = (*_TABLE["names"], "algorithm", "model")


def identity(run: Run) -> dict[str, Fact]:
    """Return what is known of the experiment that a run is, by label, in the order of showing: its
    names, algorithm and model, then the settings that people ask for first.
    """
    settings = run.config
    model = _fact(settings, "model")
    if model:
        model = model._replace(value=model_name(model.value))
    found = [
        *(_fact(settings, label) for label in _TABLE["names"]),
        _by_settings(settings) or by_metrics(run),
        model,
        *(
            _fact(settings, one) if isinstance(one, str) else one(settings)
            for one in _HYPERPARAMETERS
        ),
    ]
    return {fact.label: fact for fact in found if fact}


def as_data(found: Mapping[str, Fact]) -> dict[str, Any]:
    """Return the identity ready for JSON: names, then the hyperparameters by their labels."""
    data: dict[str, Any] = {label: _data(found.get(label)) for label in _NAMED}
    asked = {label: _data(found[label]) for label in found if label not in _NAMED}
    return {**data, "hyperparameters": asked}


def _data(fact: Fact | None) -> dict[str, str] | None:
    return {"value": fact.value, "key": fact.key} if fact else None


def stated_as(run: Run, name: str) -> Any:
    """Return a setting by its full name, by a fact that it states or what any trainer calls that,
    or by the last parts of its name; None where the run states none.
    """
    settings = run.config
    spelled = (names for label, names in _SPELLINGS.items() if name in (label, *names))
    names = (
        (name, *next(spelled, ()))
        if name in settings.values
        else (*next(spelled, ()), name)
    )
    found = settings.stated(names)
    return found[1] if found else None


def is_known(key: str) -> bool:
    """Return whether a setting identifies the experiment, beside its names."""
    parts = key.replace("/", ".").split(".")
    return any(".".join(parts[at:]) in _IDENTIFYING for at in range(len(parts)))


def short(value: object) -> str:
    """Return a setting's value in few characters: `1e-06`, and as configurations spell it: `false`,
    `null`.
    """
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    # YAML reads `1e-6` as text
    if isinstance(value, str) and re.fullmatch(
        r"[-+]?\d+(?:\.\d*)?[eE][-+]?\d+", value
    ):
        value = float(value)
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _fact(settings: RunSettings, label: str) -> Fact | None:
    """Return the first setting that states a fact."""
    found = settings.stated(_SPELLINGS[label])
    if not found or (label in _ABOVE_ZERO and not (number(found[1]) or 0.0) > 0):
        return None
    return Fact(label, short(found[1]), found[0])


# -- hyperparameters -------------------------------------------------------------------------------


def _batch(settings: RunSettings) -> Fact | None:
    """Return the number of responses per step; TRL's batches count responses already, others' count
    prompts.
    """
    return (
        _times(settings, "batch", ("prompts", "responses"), "response")
        or _fact(settings, "responses per prompt")
        or _fact(settings, "batch")
    )


def _gpus(settings: RunSettings) -> Fact | None:
    return _times(settings, "GPUs", ("gpus", "nodes"), "node")


def _times(
    settings: RunSettings, label: str, parts: Sequence[str], word: str
) -> Fact | None:
    """Return a product of two figures, `1024 × 5 responses`, or the first of them alone."""
    one, other = (settings.stated(NAMES[part]) for part in parts)
    if not one or not other:
        return Fact(label, short(one[1]), one[0]) if one else None
    many = f"{short(other[1])} {word}{'s' * (other[1] != 1)}"
    return Fact(label, f"{short(one[1])} × {many}", f"{one[0]}, {other[0]}")


def _kl(settings: RunSettings) -> Fact | None:
    """Return the KL penalty in force: verl has one in the loss and one in the reward, each with a
    switch. Without a switch (before v0.3) the penalty is in one place only.
    """
    in_force: dict[str, str] = {}
    off: list[str] = []
    for place, name in _KL_SWITCHES.items():
        key, switch = settings.stated((name,)) or ("", None)
        coefficient = settings.stated(_SPELLINGS[place])
        if switch is False:
            off.append(key)
        elif coefficient and (key or not in_force):
            where = f" in the {place}" * bool(key)
            in_force[coefficient[0]] = f"{short(coefficient[1])}{where}"
    stated = ", ".join(in_force or off)
    words = ", ".join(in_force.values()) or "none"
    return Fact("KL penalty", words, stated) if stated else None


def _clip(settings: RunSettings) -> Fact | None:
    """Return the clip range, both ends where they are set apart and differ."""
    ends = [settings.stated(_SPELLINGS[f"{side} clip"]) for side in ("lower", "upper")]
    sizes = [(one[0], number(one[1])) for one in ends if one]
    if len({size for _, size in sizes} - {None}) < 2:
        return _fact(settings, "clip")
    (one, low), (other, high) = sizes
    return Fact("clip", f"{low:g} to {high:g}", f"{one}, {other}")


def _engine(settings: RunSettings) -> Fact | None:
    found = _fact(settings, "engine")
    if not found or not found.key.endswith("use_vllm"):
        return found
    return found._replace(value="vllm") if found.value == "true" else None


_HYPERPARAMETERS: tuple[str | Callable[[RunSettings], Fact | None], ...] = (
    "learning rate", _batch, "batch per device", "mini batch", _kl, _clip, "entropy bonus",
    "longest prompt", "longest response", "temperature", "LoRA rank", "epochs", "total steps",
    _gpus, _engine,
)  # fmt: skip


_CACHED = pattern(r"models--([^/]+?)--([^/]+)")
_NO_NAME = pattern(
    r"(?:checkpoint[-_]|global_step_?)\d+|huggingface|hf|actor|model|snapshots?|[0-9a-f]{20,}"
)


def model_name(path: str) -> str:
    """Return the part of a model's path that people call it by: `/cache/models--Qwen--Qwen3-8B/…`
    is Qwen/Qwen3-8B, and a checkpoint is named by its owner.
    """
    if cached := _CACHED.search(path):
        return f"{cached[1]}/{cached[2]}"
    parts = list(filter(None, path.split("/")))
    if len(parts) <= 2 and not path.startswith(("/", "~", ".")):
        return "/".join(parts)
    at = max(0, len(parts) - 1)
    while at and _NO_NAME.fullmatch(parts[at]):
        at -= 1
    return "/".join(parts[at:])


# -- algorithm -------------------------------------------------------------------------------------


def _by_settings(settings: RunSettings) -> Fact | None:
    """Return the algorithm that the settings state: by a value of one, by their estimator, by a
    word, such as the tutorials', or by arguments that only one trainer has.
    """
    for row, word in _TABLE["stated"].items():
        name, _, value = row.partition("=")
        found = settings.stated((name,))
        if found and str(found[1]) == value:
            return Fact("algorithm", word, found[0])
    estimator = settings.stated(_ESTIMATOR)
    if estimator:
        return _with_loss(estimator, settings.stated(("policy_loss.loss_mode",)))
    for name in ("algorithm", "algorithm.name", "algo", "rl_algorithm"):
        stated = settings.values.get(name)
        if isinstance(stated, str) and stated and not is_open(stated):
            return Fact("algorithm", _usual(stated), name)
    return _by_names("arguments", settings.values.keys())


def _with_loss(estimator: tuple[str, Any], mode: tuple[str, Any] | None) -> Fact:
    """Return the algorithm of an estimator, and of a loss that gives it another name."""
    key, name = estimator[0], _usual(str(estimator[1]))
    origin, loss = mode or ("", "")
    named = _TABLE["losses"].get(str(loss).lower(), name)
    if named != name:
        return Fact("algorithm", named, f"{origin}, {key}")
    added = _TABLE["added"].get(str(loss).lower())
    if added:
        return Fact("algorithm", f"{name} with {added}", f"{key}, {origin}")
    return Fact("algorithm", name, key)


def _usual(word: str) -> str:
    return _TABLE["estimators"].get(word.lower(), word)


def by_metrics(run: Run) -> Fact | None:
    """Return the only algorithm that writes some of the metrics; fine-tuning has no rewards."""
    found = _by_names("metrics", set(run.keys), "metric ", ("", "train/"))
    if not found and "reward" not in run.indicators:
        return _by_names("supervised", set(run.keys), "metric ")
    return found


def _by_names(
    table: str, known: Set[str], what: str = "", prefixes: Sequence[str] = ("",)
) -> Fact | None:
    """Return what a table's first row says whose names are all known."""
    for names, word in _TABLE[table].items():
        for prefix in prefixes:
            asked = [prefix + name for name in names.split()]
            if known >= {*asked}:
                return Fact("algorithm", word, what + ", ".join(asked))
    return None

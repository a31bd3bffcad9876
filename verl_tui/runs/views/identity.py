"""Run identity: project, group, algorithm, model, and the settings that people compare first.

Everything is given as the settings state it, with the setting it was read from; facts that no
setting states are left out. How frameworks spell them stands in `identity.toml`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_tui.patterns import pattern
from verl_tui.runs.settings import NAMES, is_open, number
from verl_tui.toml_tables import toml_table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from verl_tui.runs.run import Run
    from verl_tui.runs.settings import RunSettings


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
_PARTS = ("prompts", "responses", "gpus", "nodes")
_IDENTIFYING = frozenset(
    (
        *(name for label in _TABLE["known"] for name in _SPELLINGS[label]),
        *(name for part in _PARTS for name in NAMES[part]),
        *_KL_SWITCHES.values(),
        *("adv_estimator", "advantage_estimator", "loss_mode"),
    )
)


class Identity(NamedTuple):
    """Names and settings that identify a run; None where nothing states one."""

    project: Fact | None
    experiment: Fact | None
    group: Fact | None
    algorithm: Fact | None
    model: Fact | None
    hyperparameters: tuple[Fact, ...]
    """In the order in which people ask for them; only those that are stated."""

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Everything that is known, in the order of showing."""
        *named, hyperparameters = self
        return (*filter(None, named), *hyperparameters)


def identity(run: Run) -> Identity:
    """Return what is known of the experiment that a run is."""
    settings = run.config
    project, experiment, group = (_fact(settings, label) for label in _TABLE["names"])
    asked = (
        _fact(settings, one) if isinstance(one, str) else one(settings)
        for one in _HYPERPARAMETERS
    )
    hyperparameters = tuple(found for found in asked if found is not None)
    algorithm = by_settings(settings) or by_metrics(run)
    model = _model(settings)
    return Identity(project, experiment, group, algorithm, model, hyperparameters)


def as_data(found: Identity) -> dict[str, Any]:
    """Return the identity ready for JSON: names, then the hyperparameters by their labels."""
    *named, hyperparameters = found
    data: dict[str, Any] = dict(zip(found._fields, map(_data, named), strict=False))
    data["hyperparameters"] = {fact.label: _data(fact) for fact in hyperparameters}
    return data


def _data(fact: Fact | None) -> dict[str, str] | None:
    return None if fact is None else {"value": fact.value, "key": fact.key}


def is_known(key: str) -> bool:
    """Return whether a setting identifies the experiment, beside its names."""
    parts = key.replace("/", ".").split(".")
    return any(".".join(parts[at:]) in _IDENTIFYING for at in range(len(parts)))


def short(value: object) -> str:
    """Return a setting's value in few characters: `1e-06`, `off`."""
    if isinstance(value, bool):
        return "on" if value else "off"
    # YAML reads `1e-6` as text
    if isinstance(value, str) and re.fullmatch(
        r"[-+]?\d+(?:\.\d*)?[eE][-+]?\d+", value
    ):
        value = float(value)
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _fact(settings: RunSettings, label: str) -> Fact | None:
    """Return the first setting that states a fact."""
    found = settings.stated(_SPELLINGS[label])
    if found is None or (label in _ABOVE_ZERO and not (number(found[1]) or 0.0) > 0):
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
    if one is None or other is None:
        return None if one is None else Fact(label, short(one[1]), one[0])
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
        elif coefficient is not None and (key or not in_force):
            where = f" in the {place}" * bool(key)
            in_force[coefficient[0]] = f"{short(coefficient[1])}{where}"
    stated = ", ".join(in_force or off)
    words = ", ".join(in_force.values()) or "none"
    return Fact("KL penalty", words, stated) if stated else None


def _clips(settings: RunSettings) -> list[tuple[str, float]]:
    """Return the lower and the upper clip range where they are set apart and differ, each with its
    key; else none.
    """
    stated = (
        settings.stated(_SPELLINGS[f"{side} clip"]) for side in ("lower", "upper")
    )
    sizes = [(one[0], number(one[1])) for one in stated if one is not None]
    found = [(key, size) for key, size in sizes if size is not None]
    return found if len(found) > 1 and found[0][1] != found[1][1] else []


def _clip(settings: RunSettings) -> Fact | None:
    found = _clips(settings)
    if not found:
        return _fact(settings, "clip")
    (one, low), (other, high) = found
    return Fact("clip", f"{low:g} to {high:g}", f"{one}, {other}")


def _engine(settings: RunSettings) -> Fact | None:
    found = _fact(settings, "engine")
    if found is None or not found.key.endswith("use_vllm"):
        return found
    return found._replace(value="vllm") if found.value == "on" else None


_HYPERPARAMETERS: tuple[str | Callable[[RunSettings], Fact | None], ...] = (
    "learning rate", _batch, "batch per device", "mini batch", _kl, _clip, "entropy bonus",
    "longest prompt", "longest response", "temperature", "LoRA rank", "epochs", "total steps",
    _gpus, _engine,
)  # fmt: skip


# -- model -----------------------------------------------------------------------------------------

_CACHED = pattern(r"models--([^/]+?)--([^/]+)")
_NO_NAME = pattern(
    r"(?:checkpoint[-_]|global_step_?)\d+|huggingface|hf|actor|model|snapshots?|[0-9a-f]{20,}"
)


def _model(settings: RunSettings) -> Fact | None:
    found = settings.stated(_SPELLINGS["model"])
    if found is None or not isinstance(found[1], str):
        return None
    return Fact("model", model_name(found[1]), found[0])


def model_name(path: str) -> str:
    """Return the part of a model's path that people call it by: `/cache/models--Qwen--Qwen3-8B/…`
    is Qwen/Qwen3-8B.
    """
    cached = _CACHED.search(path)
    if cached:
        return f"{cached[1]}/{cached[2]}"
    parts = [part for part in path.split("/") if part]
    if len(parts) <= 2 and not path.startswith(("/", "~", ".")):
        return "/".join(parts)
    name = parts[-1:]
    for before in reversed(parts[:-1]):
        if not _NO_NAME.fullmatch(name[0]):
            break
        name.insert(0, before)  # a checkpoint is named by its owner
    return "/".join(name)


# -- algorithm -------------------------------------------------------------------------------------

_ESTIMATORS = _TABLE["estimators"]
_LOSSES = _TABLE["losses"]
_ADDED = _TABLE["added"]
_DAPO = {
    # DAPO is GRPO with dynamic sampling and its own reward manager (verl's recipe `dapo`).
    ("algorithm.filter_groups.enable",): True,
    ("reward_model.reward_manager", "reward.reward_manager.name"): "dapo",
}
_SFT_METRICS = ("train/loss", "train/lr", "train/lr(1e-3)", "val/loss")
"""verl's SFT trainer; two of these keys identify it."""


def by_settings(settings: RunSettings) -> Fact | None:
    """Return the algorithm that the settings state."""
    for names, word in _DAPO.items():
        found = settings.stated(names)
        if found is not None and found[1] == word:
            return Fact("algorithm", "DAPO", found[0])
    return _by_estimator(settings) or _by_word(settings) or _by_arguments(settings)


def _by_estimator(settings: RunSettings) -> Fact | None:
    found = settings.stated(
        ("algorithm.adv_estimator", "adv_estimator", "advantage_estimator")
    )
    if found is None:
        return None
    key = found[0]
    name = _ESTIMATORS.get(str(found[1]).lower(), short(found[1]))
    origin, mode = settings.stated(("policy_loss.loss_mode",)) or ("", "")
    loss = str(mode).lower()
    if _LOSSES.get(loss, name) != name:
        return Fact("algorithm", _LOSSES[loss], f"{origin}, {key}")
    if loss in _ADDED:
        return Fact("algorithm", f"{name} with {_ADDED[loss]}", f"{key}, {origin}")
    clips = _clips(settings)
    if clips and clips[1][1] > clips[0][1]:
        return Fact("algorithm", f"{name} with clip-higher", f"{key}, {clips[1][0]}")
    return Fact("algorithm", name, key)


def _by_word(settings: RunSettings) -> Fact | None:
    """Return the algorithm that a setting simply names, such as the tutorials'."""
    for name in ("algorithm", "algorithm.name", "algo", "rl_algorithm"):
        word = settings.values.get(name)
        if isinstance(word, str) and word and not is_open(word):
            return Fact("algorithm", _ESTIMATORS.get(word.lower(), short(word)), name)
    return None


def _by_arguments(settings: RunSettings) -> Fact | None:
    """Return the algorithm by arguments that only one trainer has, and those arguments."""
    nemo = next((key for key in settings.values if key.startswith("grpo.")), "grpo.")
    # TRL: `GRPOConfig`, and `RLOOConfig`, which alone has the other
    for keys, word in (
        (("num_generations", "normalize_advantages"), "RLOO"),
        (("num_generations",), "GRPO"),
        (("model.partial_pretrain",), "SFT"),
        ((nemo,), "GRPO"),
    ):
        if settings.values.keys() >= set(keys):
            return Fact("algorithm", word, ", ".join(keys))
    return None


def by_metrics(run: Run) -> Fact | None:
    """Return the only algorithm that writes some of the metrics."""
    keys = set(run.keys)
    for names, words in _TABLE["metrics"].items():
        metrics = names.split()
        for prefix in ("", "train/"):
            if keys.issuperset(prefix + metric for metric in metrics):
                return Fact("algorithm", words, f"metric {prefix}{metrics[0]}")
    tuned = [key for key in _SFT_METRICS if key in keys]
    if len(tuned) > 1 and "reward" not in run.indicators:
        return Fact("algorithm", "SFT", f"metric {tuned[0]}")
    return None

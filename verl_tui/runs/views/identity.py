"""Run identity: project, group, algorithm, model, and the settings that people compare first.

Everything is given as the settings state it, with the setting it was read from; facts that no
setting states are left out. Names are those of verl (`verl/trainer/config/ppo_trainer.yaml`,
`sft_trainer.yaml`), of TRL's and Hugging Face's arguments as they reach W&B, of OpenRLHF, slime and
NeMo-RL, and of the tutorials.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from verl_tui.patterns import pattern
from verl_tui.runs.stated_sizes import stated_setting
from verl_tui.runs.views.algorithm import by_metrics, by_settings
from verl_tui.runs.views.facts import Fact, fact
from verl_tui.runs.views.hyperparameters import HYPERPARAMETERS, KNOWN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from verl_tui.runs.run import Run
    from verl_tui.runs.settings import RunSettings

_PROJECT = (
    "wandb.project",
    "trainer.project_name",
    "project_name",
    "wandb_project",
    "logger.wandb.project",
)
_EXPERIMENT = (
    "wandb.name",
    "trainer.experiment_name",
    "experiment_name",
    "run_name",
    "exp_name",
    "wandb_run_name",
)
_GROUP = (
    "wandb.group",
    "wandb_group",
    "trainer.group_name",
    "run_group",
    "WANDB_RUN_GROUP",
)
_MODEL = (
    "actor_rollout_ref.model.path",
    "model.partial_pretrain",  # verl's SFT trainer
    "model.path",
    "model_name_or_path",
    "policy.model_name",  # NeMo-RL
    "hf_checkpoint",  # slime
    "pretrain",  # OpenRLHF
    "model_name",
    "_name_or_path",  # Hugging Face's own configuration of the model
    "model",
)
_CACHED = pattern(r"models--([^/]+?)--([^/]+)")
_NO_NAME = pattern(
    r"(?:checkpoint[-_]|global_step_?)\d+|huggingface|hf|actor|model|snapshots?|[0-9a-f]{20,}"
)
_IDENTIFYING = KNOWN.union(
    _MODEL, ("adv_estimator", "advantage_estimator", "loss_mode")
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
        named = (self.project, self.experiment, self.group, self.algorithm, self.model)
        return (*(fact for fact in named if fact is not None), *self.hyperparameters)


def identity(run: Run) -> Identity:
    """Return what is known of the experiment that a run is."""
    settings = run.config
    hyperparameters = [made(settings) for made in HYPERPARAMETERS]
    return Identity(
        fact(settings, "project", _PROJECT),
        fact(settings, "experiment", _EXPERIMENT),
        fact(settings, "group", _GROUP),
        by_settings(settings) or by_metrics(run),
        _model(settings),
        tuple(found for found in hyperparameters if found is not None),
    )


def is_known(key: str) -> bool:
    """Return whether a setting identifies the experiment, beside its names."""
    parts = key.replace("/", ".").split(".")
    return any(".".join(parts[at:]) in _IDENTIFYING for at in range(len(parts)))


def _model(settings: RunSettings) -> Fact | None:
    found = stated_setting(settings, _MODEL)
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


def as_data(found: Identity) -> Iterator[tuple[str, Any]]:
    """Yield the identity ready for JSON: names, then the hyperparameters by their labels."""
    for name in ("project", "experiment", "group", "algorithm", "model"):
        one: Fact | None = getattr(found, name)
        yield name, None if one is None else {"value": one.value, "key": one.key}
    yield (
        "hyperparameters",
        {
            fact.label: {"value": fact.value, "key": fact.key}
            for fact in found.hyperparameters
        },
    )

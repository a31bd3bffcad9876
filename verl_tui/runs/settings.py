"""A run's settings, each with the value of the most trusted source that states it.

A run leaves its settings in several places (verl v0.9: `verl/trainer/main_ppo.py` prints the
resolved configuration, `verl/utils/tracking.py` gives it to W&B; hydra writes `.hydra/config.yaml`
before anything is resolved, and `.hydra/overrides.yaml` with what was asked for on the command
line).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from operator import methodcaller
from pathlib import PurePath
from typing import Any

from verl_tui.patterns import pattern
from verl_tui.records import CONSOLE, LAUNCH, Settings
from verl_tui.runs.cached import cached_by_revision
from verl_tui.secrets import hide_setting
from verl_tui.toml_tables import toml_table

_OPEN = pattern(r"\$\{")
_PARTS = pattern(r"[./]")
_REFERENCE = pattern(r"\$\{([\w./-]+)\}")
"""A value that is another setting's (OmegaConf); relative ones and resolvers are left as they
are.
"""
_ROUNDING = 1e-6
"""Share of its size by which a number in single precision may be off."""
_DEEPEST = 8
"""References followed one after the other."""


class SettingsLayer(IntEnum):
    """Kinds of sources of settings, the most trusted first."""

    TRAINER = 0
    """Printed by the trainer at its start, or in its own state: resolved, and what it runs with."""
    WANDB = 1
    """Given to W&B by the trainer: resolved as well."""
    OVERRIDES = 2
    """Asked for on the command line, as Hydra wrote it down or the console shows it."""
    HYDRA = 3
    """Composed from files and command line; references to other settings are not resolved."""
    FILE = 4
    """A configuration beside the log, which may be older than the command line."""


def layer_of(origin: str) -> SettingsLayer:
    """Return the kind of source that settings came from, by its path."""
    path = PurePath(origin)
    if origin == CONSOLE or path.name == "trainer_state.json":
        return SettingsLayer.TRAINER
    if path.suffix == ".wandb" or path.parent.name == "files":
        return SettingsLayer.WANDB
    if path.stem in ("overrides", LAUNCH):
        return SettingsLayer.OVERRIDES
    if path.parent.name == ".hydra":
        return SettingsLayer.HYDRA
    return SettingsLayer.FILE


class RunSettings:
    """All settings that a run's sources state, and those in force."""

    def __init__(self) -> None:
        self.revision = 0
        """Grows with every change."""
        self._by_origin: dict[str, dict[str, Any]] = {}
        """Origin -> its settings, the source that was read last at the end."""

    def apply(self, settings: Settings, path: str = "") -> None:
        """Take in the settings of a source with a path; of two sources of one kind, the one read
        last holds.

        Secrets are hidden here, before anything is shown.
        """
        origin = settings.origin or path
        known = self._by_origin.pop(origin, {})
        shown = {
            key: hide_setting(key, value) for key, value in settings.values.items()
        }
        self._by_origin[origin] = {**known, **shown}
        self.revision += 1

    @property
    def values(self) -> dict[str, Any]:
        """Flat settings that hold, e.g. `data.max_response_length`."""
        return self._merged()[0]

    @property
    def origins(self) -> Mapping[str, str]:
        """Setting -> where its value was read."""
        return self._merged()[1]

    def statements(self, key: str) -> Iterator[tuple[str, Any]]:
        """Yield the value of a setting in each source, the most trusted first."""
        for origin in self._trusted():
            if key in self._by_origin[origin]:
                yield origin, self._by_origin[origin][key]

    def find(self, names: Sequence[str]) -> tuple[str, Any] | None:
        """Return a setting by the last parts of its dotted name; earlier names first, then the
        shortest full name.
        """
        return next(self._known(names), None)

    def named(self, what: str) -> tuple[str, Any]:
        """Return a setting by its name in `settings.toml`, behind its full name, which is empty
        where there is none.
        """
        return self.find(NAMES[what]) or ("", None)

    def positive(self, what: str) -> tuple[str, float]:
        """Return the same of the first of its spellings that is a number above 0."""
        for key, value in self._known(NAMES[what]):
            found = number(value) or 0.0
            if found > 0:
                return key, found
        return "", 0.0

    def stated(self, names: Sequence[str]) -> tuple[str, Any] | None:
        """Return a setting that has a value: neither empty nor a reference that was not looked up;
        earlier names first.
        """
        known = self._known(names)
        return next(
            (one for one in known if one[1] not in (None, "") and not is_open(one[1])),
            None,
        )

    def _known(self, names: Sequence[str]) -> Iterator[tuple[str, Any]]:
        values, _, by_end = self._merged()
        for key in filter(None, map(by_end.get, names)):
            yield key, values[key]

    def _trusted(self) -> Sequence[str]:
        newest_first = list(self._by_origin)[::-1]
        return sorted(newest_first, key=layer_of)

    @cached_by_revision
    def _merged(self) -> tuple[dict[str, Any], dict[str, str], dict[str, str]]:
        """Return the settings that hold, their origins, and of the last parts of a dotted name the
        shortest name that ends so.
        """
        values: dict[str, Any] = {}
        origins: dict[str, str] = {}
        by_end: dict[str, str] = {}
        for resolved in (True, False):
            for origin in self._trusted():
                for key, value in self._by_origin[origin].items():
                    if key not in values and is_open(value) is not resolved:
                        values[key] = value
                        origins[key] = origin
        for key in sorted(values, key=lambda key: (len(key), key)):
            for start in (0, *map(methodcaller("end"), _PARTS.finditer(key))):
                by_end.setdefault(key[start:], key)
        for key, value in values.items():
            if is_open(value):
                values[key] = _resolved(value, values)
        return values, origins, by_end


def _resolved(value: Any, values: Mapping[str, Any]) -> Any:
    """Return the value that a reference stands for, the reference itself if that is unknown."""
    found = value
    for _ in range(_DEEPEST):
        named = _REFERENCE.fullmatch(found) if isinstance(found, str) else None
        if not named or named[1] not in values:
            break
        found = values[named[1]]
    return value if is_open(found) else found


def is_open(value: object) -> bool:
    """Return whether a value refers to others that have not been looked up:
    `${data.train_batch_size}`.
    """
    return isinstance(value, str) and _OPEN.search(value) is not None


def number(value: object) -> float | None:
    """Return a number that may have been written as text (YAML reads `1e-6` as text); None for
    anything else.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except ValueError:
        return None
    except OverflowError:
        return math.inf


def as_whole_number(value: object) -> int | None:
    """Return a whole number above 0, however it was written; None for anything else."""
    found = number(value) or 0.0
    return int(found) if 0 < found < math.inf and found == int(found) else None


NAMES = {
    what: tuple(names.split())
    for what, names in toml_table(__file__, "settings.toml").items()
}
"""What frameworks call a setting."""


def batch_size(settings: RunSettings) -> int | None:
    """Return how many responses a step works on, None where the settings do not state it."""
    prompts, responses = (_size(settings, what) for what in ("prompts", "responses"))
    return prompts and responses and prompts * responses


def gpu_count(settings: RunSettings) -> int | None:
    """Return how many GPUs the trainer has, None where the settings do not state it."""
    gpus, nodes = _size(settings, "gpus"), _size(settings, "nodes", unstated=1)
    return gpus and nodes and gpus * nodes


def gpu_counts(settings: RunSettings) -> tuple[int, int] | None:
    """Return how many GPUs the trainer has, and how many others only generate; None where the
    settings do not state it.
    """
    names = ("rollout.n_gpus_per_node", "rollout.nnodes")
    gpus, nodes = (as_whole_number(settings.values.get(name)) for name in names)
    trainer = gpu_count(settings)
    return (trainer, (gpus or 0) * (nodes or 0)) if trainer else None


def planned_steps(
    settings: RunSettings, per_epoch: int | None, shares: Iterable[tuple[int, float]]
) -> int | None:
    """Return the steps that the settings mean, None if they do not show them.

    Args:
        settings: Of the run.
        per_epoch: Steps of one pass over the data, if the trainer states them; else by the size of
            the data without an incomplete last batch, which verl drops.
        shares: Steps with the epochs that had passed: they tell where they are not rounded.
    """
    totals = (settings.values.get(key) for key in NAMES["total_steps"])
    epochs = (settings.values.get(key) for key in NAMES["epochs"])
    if total := next(filter(None, map(as_whole_number, totals)), None):
        return total
    passes = next(filter(None, map(number, epochs)), 0.0)
    prompts, batch = _size(settings, "data"), _size(settings, "batch")
    by_data = prompts // batch if prompts and batch else 0
    steps = passes * (
        per_epoch or by_data or next(filter(None, map(_epoch, shares)), 0)
    )
    # A part of a step is one, as Hugging Face's trainer counts.
    return math.ceil(steps * (1 - _ROUNDING)) if 0 < steps < 1e12 else None


def _epoch(seen: tuple[int, float]) -> float | None:
    step, share = seen
    if not 0 < share < math.inf:
        return None
    exact = abs(share - round(share, 4)) > _ROUNDING * max(1.0, share)
    return step / share if exact else None


def _size(settings: RunSettings, what: str, unstated: int | None = None) -> int | None:
    found = settings.stated(NAMES[what])
    return as_whole_number(found[1]) if found else unstated

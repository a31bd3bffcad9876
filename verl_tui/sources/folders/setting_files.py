"""Settings of a run from the YAML files beside its log: `config.yaml`, hydra's
`.hydra/{config,overrides}.yaml`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from verl_tui.given_files import why
from verl_tui.records import Records, Settings, Unreadable
from verl_tui.sources.fields.jsonl import Fields, loads, names, unreadable
from verl_tui.sources.fields.setting_values import (
    flatten_settings,
    is_training,
    load_yaml,
    scalar,
)
from verl_tui.sources.files import Source, opened
from verl_tui.text import one_line

NAMES = names("setting_file")
"""Files that hold settings."""
_AMBIGUOUS = "config.json"
"""The settings of a training of tinker-cookbook, and those of a model of transformers."""
_LARGEST = 2**20
"""Bytes; a larger file is no configuration."""
_TOO_LARGE = f"larger than {_LARGEST >> 20} MiB: not a configuration"


def is_settings(path: Path) -> bool:
    """Return whether a file holds the settings of a training, by its name, and by its content where
    a model's are called so, too.
    """
    if path.name != _AMBIGUOUS:
        return path.name in NAMES
    try:
        with opened(path) as file:
            found = loads(file.read(_LARGEST))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(found, dict) and is_training(found, 1)


class SettingsSource(Source):
    """One YAML file, read again as a whole when it changes; its age is not the run's."""

    format = "settings"
    _stamp = (0, 0)

    def read(self) -> tuple[Records, bool]:
        """Return the settings if the file has changed."""
        try:
            stat = self.path.stat()
            stamp = stat.st_mtime_ns, stat.st_size
            if stamp == self._stamp:
                return (), False
            with opened(self.path) as file:
                text = file.read(_LARGEST + 1)
        except OSError as error:
            self._problem = why(error)
            return (), False
        self._stamp, self._bytes = stamp, stat.st_size
        self._problem = _TOO_LARGE if len(text) > _LARGEST else None
        if self._problem or not text.strip():
            return (), False
        values = read_settings(text)
        if isinstance(values, Unreadable):
            self._unreadable += 1
            return (values,), False
        self._records += 1
        return (Settings(values),), False


def read_settings(text: bytes) -> Fields | Unreadable:
    """Return flat settings from YAML, or what is wrong with it. A list holds hydra overrides
    (`a.b=c`).
    """
    import yaml  # 20 ms, only for runs that have a configuration

    try:
        found = _flat(load_yaml(text))
        reason = "neither settings nor overrides"
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason, found = f"not YAML: {error}", None
    return unreadable(text[:200], 1, one_line(reason, 200)) if found is None else found


def _flat(loaded: object) -> Fields | None:
    if isinstance(loaded, list):
        pairs = (str(entry).lstrip("+~").partition("=") for entry in loaded)
        return {name: scalar(value) for name, equals, value in pairs if equals}
    if not isinstance(loaded, dict):
        return None
    return flatten_settings(_values_of_wandb(loaded) or loaded)


def _values_of_wandb(loaded: dict[Any, Any]) -> dict[Any, Any]:
    """Return what W&B's own `config.yaml` says (`lr: {desc: null, value: 1e-6}`), nothing where it
    is another's.
    """
    kept = {key: loaded[key] for key in loaded.keys() - {"_wandb", "wandb_version"}}
    for one in kept.values():
        if not (isinstance(one, dict) and {"value"} <= one.keys() <= {"value", "desc"}):
            return {}
    return {key: kept[key]["value"] for key in loaded if key in kept}

"""Settings of a run from the YAML files beside its log: `config.yaml`, hydra's
`.hydra/{config,overrides}.yaml`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from verl_tui.patterns import pattern
from verl_tui.records import LAUNCH, Record, Settings, Unreadable
from verl_tui.sources.fields.jsonl import loads
from verl_tui.sources.fields.setting_values import flatten_settings, load_yaml, scalar
from verl_tui.sources.fields.spellings import names
from verl_tui.sources.files.paths import why
from verl_tui.sources.files.polled import PolledSource
from verl_tui.sources.files.tail import opened
from verl_tui.sources.formats.console.settings import of_command
from verl_tui.text import one_line

if TYPE_CHECKING:
    from pathlib import Path

_METADATA = "wandb-metadata.json"
NAMES = (
    "config.yaml",
    "config.yml",
    "overrides.yaml",
    "args.json",
    "experiment_config.json",
    _METADATA,
)
"""Files that hold settings; `args.json` is ms-swift's, `experiment_config.json` EasyR1's."""
_AMBIGUOUS = "config.json"
"""The settings of a training of tinker-cookbook, and those of a model of transformers."""
_OF_TRAININGS = frozenset(names("training_setting"))
_IDENTITY = pattern(r"(?:host|program|python|cudaVersion|gpu|gpu_count|git\.\w+)$")
"""Entries of W&B's metadata that tell one run from another."""
_LARGEST = 2**20
"""Bytes; a larger file is no configuration."""


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
    return isinstance(found, dict) and not _OF_TRAININGS.isdisjoint(found)


class SettingsSource(PolledSource):
    """One YAML file, read again as a whole when it changes; its age is not the run's."""

    format = "settings"

    def __init__(self, path: Path, ordinal: int = 0) -> None:
        super().__init__(path, ordinal)
        self._stamp: tuple[float, int] | None = None

    def read(self) -> tuple[tuple[Record, ...], bool]:
        """Return the settings if the file has changed."""
        try:
            text = self._changed_text()
        except OSError as error:
            self._problem = why(error)
            return (), False
        if text is None or not text.strip():
            return (), False
        values = read_settings(text)
        if isinstance(values, Unreadable):
            self._unreadable += 1
            return (values,), False
        self._records += 1
        origin = str(self.path)
        if self.path.name != _METADATA:
            return (Settings(values, origin),), False
        # what tells one run from another, and the command that started it
        kept = {f"wandb.{key}": values[key] for key in values if _IDENTITY.match(key)}
        arguments = load_yaml(text).get("args")
        launch = of_command(arguments if isinstance(arguments, list) else [])
        stated = (Settings(launch, LAUNCH),) if launch else ()
        return (Settings(kept, origin), *stated), False

    def _changed_text(self) -> bytes | None:
        """Return the file's content, None if it has not changed or is too large."""
        stat = self.path.stat()
        if self._stamp == (stat.st_mtime, stat.st_size):
            return None
        self._stamp = (stat.st_mtime, stat.st_size)
        self._bytes = stat.st_size
        with opened(self.path) as file:
            if stat.st_size <= _LARGEST:
                self._problem = None
                return file.read()
        self._problem = f"larger than {_LARGEST >> 20} MiB: not a configuration"
        return None


def read_settings(text: bytes) -> dict[str, Any] | Unreadable:
    """Return flat settings from YAML, or what is wrong with it. A list holds hydra overrides
    (`a.b=c`).
    """
    import yaml  # 20 ms, only for runs that have a configuration

    try:
        found = _flat(load_yaml(text))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        reason = f"not YAML: {getattr(error, 'problem', None) or 'unreadable'}"
        return Unreadable(mark.line + 1 if mark else 1, one_line(reason), "")
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        return Unreadable(1, one_line(f"not YAML: {error}"), "")
    if found is None:
        return Unreadable(
            1,
            "neither settings nor overrides",
            one_line(text[:200].decode("utf-8", "replace")),
        )
    return found


def _flat(loaded: object) -> dict[str, Any] | None:
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
    kept = [key for key in loaded if key not in ("_wandb", "wandb_version")]
    if not all(_is_described(loaded[key]) for key in kept):
        return {}
    return {key: loaded[key]["value"] for key in kept}


def _is_described(value: object) -> bool:
    described = isinstance(value, dict) and "value" in value
    return described and value.keys() <= {"value", "desc"}  # type: ignore[attr-defined]

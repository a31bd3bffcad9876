"""Settings as logs write them: nested or dotted names, values of YAML and of Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from verl_tui.sources.fields import yaml_text
from verl_tui.sources.fields.jsonl import number
from verl_tui.sources.fields.spellings import names
from verl_tui.text import one_line, safe

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


def scalar(text: str) -> Any:
    """Return what YAML reads in a text, as Hydra does on the command line."""
    import yaml  # 20 ms, only for runs that have such settings

    try:
        value = yaml_text.load_yaml(text)
    # A number of thousands of digits, an invalid date, a thousand brackets.
    except (yaml.YAMLError, ValueError, RecursionError):
        value = text
    return plain_setting(one_line(value, 1000) if isinstance(value, str) else value)


def flatten_settings(
    config: Mapping[Any, Any], prefix: str = "", depth: int = 0
) -> dict[str, Any]:
    """Return a nested configuration as one level, with dots between the names; text is made
    safe.
    """
    flat: dict[str, Any] = {}
    for key, value in config.items():
        name = safe(f"{prefix}.{key}" if prefix else str(key), 300)
        if isinstance(value, dict) and depth < 40:
            flat.update(flatten_settings(value, name, depth + 1))
        else:
            flat[name] = plain_setting(value)
    return flat


def plain_setting(value: object) -> bool | float | str | None:
    """Return a setting as what a run keeps: text made safe, a whole number beyond 64 bits as a
    float.
    """
    if isinstance(value, int) and value.bit_length() > 64:
        return number(value)
    if isinstance(value, bool | int | float | None):
        return value
    return safe(str(value), 1000)


_OF_TRAINING = frozenset(names("training_setting"))
_ENOUGH = 2


def is_training(settings: Collection[Any]) -> bool:
    """Tell by their names whether these are those of a training (a heuristic: two well-known
    ones).
    """
    return len(_OF_TRAINING.intersection(map(str, settings))) >= _ENOUGH

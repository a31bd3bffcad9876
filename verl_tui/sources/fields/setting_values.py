"""Settings as logs write them: nested or dotted names, values of YAML and of Python."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

from verl_tui.sources.fields.jsonl import Fields, flatten, names, number
from verl_tui.text import one_line, safe

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from yaml import Node

_MOST = 2**22
"""Values and characters that a YAML text may stand for: large configurations have some 100,000."""


def scalar(text: str) -> Any:
    """Return what YAML reads in a text, as Hydra does on the command line."""
    import yaml  # 20 ms, only for runs that have such settings

    try:
        value = load_yaml(text)
    # A number of thousands of digits, an invalid date, a thousand brackets.
    except (yaml.YAMLError, ValueError, RecursionError):
        value = text
    return plain_setting(one_line(value, 1000) if isinstance(value, str) else value)


def flatten_settings(config: Mapping[Any, Any]) -> Fields:
    """Return a nested configuration as one level, with dots between the names; text is made
    safe.
    """
    flat = flatten(config, ".").items()
    return {safe(name, 300): plain_setting(value) for name, value in flat}


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


def is_training(settings: Collection[Any], enough: int = _ENOUGH) -> bool:
    """Tell by their names whether these are those of a training (a heuristic: two well-known
    ones, or another number).
    """
    return len(_OF_TRAINING.intersection(map(str, settings))) >= enough


def load_yaml(text: str | bytes) -> Any:
    """Return what a YAML text from untrusted sources says: plain values only.

    An alias stands for all of what it names, and that may hold aliases in turn: nine in each of ten
    lines are 9^10 values (the "billion laughs").

    Raises:
        yaml.YAMLError: It is none.
        ValueError: Its aliases stand for too much, or a value cannot be one.
        RecursionError: It is nested too deeply.
    """
    import yaml  # 20 ms, only for runs that have such settings

    # The parser in C, where PyYAML was built with it, is six times as fast on the forty words of a
    # launch command.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        if _size(node, {}) > _MOST:
            raise ValueError("its aliases stand for too many values")
        return loader.construct_document(node)
    finally:
        loader.dispose()


def _size(node: Node, known: dict[int, float]) -> float:
    """Return how many values and characters a node stands for, infinite where it holds itself."""
    at = id(node)
    if at not in known:
        known[at] = inf
        if isinstance(node.value, str):
            known[at] = 1 + len(node.value)
        else:
            pairs = (one if isinstance(one, tuple) else (one,) for one in node.value)
            known[at] = 1 + sum(_size(child, known) for pair in pairs for child in pair)
    return known[at]

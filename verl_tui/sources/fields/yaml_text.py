"""YAML from untrusted sources: plain values only, and no text of a few lines that expands to
billions.

An alias stands for all of what it names, and that may hold aliases in turn: nine in each of ten
lines are 9^10 values (the "billion laughs").
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from yaml import Node

_MOST = 2**22
"""Values and characters that a text may stand for: the largest configurations have some 100,000."""


def load_yaml(text: str | bytes) -> Any:
    """Return what a YAML text says.

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

"""The classes that may have keys, and the names of all actions."""

from __future__ import annotations

from importlib import import_module
from itertools import chain
from pkgutil import walk_packages
from typing import TYPE_CHECKING

from textual.dom import DOMNode

from verl_tui.tui.keys.bindings import bindings

if TYPE_CHECKING:
    from collections.abc import Iterator

_PLACES = ("verl_tui.tui.screens", "verl_tui.tui.panels")
"""Packages where they are found, by walking through: these import what is here."""


def action_names() -> set[str]:
    """Return the names of all actions, as `[keys]` of the configuration takes them."""
    declared = chain.from_iterable(map(bindings, all_kinds()))
    return {binding.id for binding in declared if binding.id}


def all_kinds() -> list[type[DOMNode]]:
    """Return every class that may have keys; imports all screens and panels."""
    for name in _PLACES:
        for module in walk_packages(import_module(name).__path__, f"{name}."):
            import_module(module.name)
    return list(dict.fromkeys(_kinds(DOMNode)))  # some are kinds of two others


def _kinds(kind: type[DOMNode]) -> Iterator[type[DOMNode]]:
    for subclass in kind.__subclasses__():
        yield subclass
        yield from _kinds(subclass)

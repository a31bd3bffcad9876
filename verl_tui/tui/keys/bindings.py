"""The keys that classes declare, and those that the user has given instead."""

from __future__ import annotations

from importlib import import_module
from itertools import chain
from pkgutil import walk_packages
from typing import TYPE_CHECKING, Any

from textual.dom import DOMNode
from textual.keys import key_to_character

from verl_tui.rendering.session.snapshot import HINT_KEYS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from textual.app import App
    from textual.binding import Binding

_OURS = "verl_tui."
"""Module prefix of the app's own classes: Textual's text boxes and lists have dozens of keys."""
_PLACES = ("verl_tui.tui.screens", "verl_tui.tui.panels")
"""Packages whose classes have keys, found by walking through: these import what is here."""
_NAMES = {
    "escape": "esc",
    "pagedown": "pgdn",
    "pageup": "pgup",
    "left": "←",
    "right": "→",
    "up": "↑",
    "down": "↓",
    "plus": "+",
    "minus": "-",
    "slash": "/",
    "underscore": "_",
    "at": "@",
}
"""Keys for which Textual has another name, or no character."""


def key_name(key: str) -> str:
    """Return the usual name of a key that Textual names: its character, or the words on it."""
    modifier, _, arrow = key.rpartition("+")
    if modifier and arrow in ("left", "right", "up", "down"):
        return f"{modifier}+{_NAMES[arrow]}"
    return _NAMES.get(key) or (key_to_character(key) or "").strip() or key


def is_ours(kind: type) -> bool:
    """Return whether a class is the app's own."""
    return kind.__module__.startswith(_OURS)


def bindings(kind: type[DOMNode]) -> Iterator[Binding]:
    """Yield the described keys of a class and of our classes it inherits from, each name once."""
    known: set[str] = set()
    for base in filter(is_ours, kind.__mro__):
        for binding in base.__dict__.get("BINDINGS", ()):
            name = binding.id or binding.key
            if binding.description and name not in known:
                known.add(name)
                yield binding


def all_kinds() -> list[type[DOMNode]]:
    """Return every class that may have keys; imports all screens and panels."""
    for place in _PLACES:
        for module in walk_packages(import_module(place).__path__, f"{place}."):
            import_module(module.name)
    found: list[type[DOMNode]] = [DOMNode]
    for kind in found:
        found += [one for one in kind.__subclasses__() if one not in found]
    return found


def action_names() -> set[str]:
    """Return the names of all actions, as `[keys]` of the configuration takes them."""
    declared = chain.from_iterable(map(bindings, all_kinds()))
    return {binding.id for binding in declared if binding.id}


def _user_keys(app: App[Any]) -> Mapping[str, str]:
    found: Mapping[str, str] = getattr(app, "user_keys", {})
    return found


def keys_of(app: App[Any], binding: Binding) -> str:
    """Return the keys of a binding, those that the user has given it, as people call them."""
    keys = _user_keys(app).get(binding.id or "", binding.key)
    return " ".join(map(key_name, keys.split(",")))


def first_keys(app: App[Any], kinds: Iterable[type[DOMNode]], names: str) -> str:
    """Return the first key of each of some actions of these classes, by their names in the
    configuration.
    """
    known = {one.id: keys_of(app, one) for kind in kinds for one in bindings(kind)}
    return " ".join(known[name].split()[0] for name in names.split())


def hint_keys(app: App[Any]) -> Mapping[str, str]:
    """Return the keys that sentences on the screen name, as the user has them."""
    own = _user_keys(app)
    return {
        name: key_name(own[name].split(",")[0]) if name in own else usual
        for name, usual in HINT_KEYS.items()
    }

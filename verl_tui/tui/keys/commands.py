"""The actions behind keys, by name: for the command palette, the help and hints."""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING, Any, NamedTuple

from textual.binding import Binding
from textual.dom import DOMNode

from verl_tui.rendering.session.hint_keys import HINT_KEYS
from verl_tui.tui import panels, screens
from verl_tui.tui.keys.names import key_name
from verl_tui.tui.panels.panel import Panel
from verl_tui.tui.widgets.plot import Plot

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from textual.app import App
    from textual.screen import Screen

_OURS = "verl_tui."
"""Module prefix of the app's own classes: Textual's text boxes and lists have dozens of keys."""


class Command(NamedTuple):
    """One action."""

    title: str
    keys: str
    action: str
    node: DOMNode
    """The widget, screen or app that has the action."""
    panel: str = ""
    """Id of the panel that needs the focus for it; empty where none does."""


def commands(app: App[Any], screen: Screen[Any]) -> Iterator[Command]:
    """Yield the actions in the screen in front: with the focus as it is, everywhere, then those of
    the other panels.
    """
    known: set[str] = set()
    chain = _binding_chain(screen)
    for node in (*chain, *(() if app in chain else (app,))):
        panel = next((one.TITLE for one in node.ancestors_with_self if isinstance(one, Panel)), "")
        yield from _new(_commands(app, node, panel), known)
    for panel_ in screen.query(Panel):
        plots = [node for node in panel_.query("Plot") if isinstance(node, Plot)]
        for node in (panel_, *plots[:1]):
            yield from _new(_commands(app, node, panel_.TITLE, panel_.id or ""), known)


def _binding_chain(screen: Screen[Any]) -> list[DOMNode]:
    """Return the nodes whose keys hold now: from the focus up to the app, or to a modal screen."""
    chain: list[DOMNode] = []
    for node in (screen.focused or screen).ancestors_with_self:
        chain.append(node)
        if node.is_modal:
            break
    return chain


def bindings(kind: type[DOMNode]) -> Iterator[Binding]:
    """Yield the described keys of a class and of our classes it inherits from, each name once."""
    known: set[str] = set()
    for one in kind.__mro__:
        own = one.__dict__.get("BINDINGS", ()) if one.__module__.startswith(_OURS) else ()
        for binding in own:
            if (
                isinstance(binding, Binding)
                and binding.description
                and (binding.id or binding.key) not in known
            ):
                known.add(binding.id or binding.key)
                yield binding


def names() -> set[str]:
    """Return the names of all actions, as `[keys]` of the configuration takes them."""
    return {binding.id for kind in all_kinds() for binding in bindings(kind) if binding.id}


def all_kinds() -> list[type[DOMNode]]:
    """Return every class that may have keys; imports all screens and panels."""
    for package in (screens, panels):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    return list(dict.fromkeys(_kinds(DOMNode)))  # some are kinds of two others


def _kinds(kind: type[DOMNode]) -> Iterator[type[DOMNode]]:
    for one in kind.__subclasses__():
        yield one
        yield from _kinds(one)


def keys_given(app: App[Any], binding: Binding) -> list[str]:
    """Return the keys of a binding, those that the user has given it."""
    given: dict[str, str] = getattr(app, "user_keys", {})
    return given.get(binding.id or "", binding.key).split(",")


def keys_of(app: App[Any], binding: Binding) -> str:
    """Return the keys of a binding as people call them."""
    ascii_only = getattr(app, "ascii_only", False)
    return " ".join(key_name(key, ascii_only=ascii_only) for key in keys_given(app, binding))


def keys_to(app: App[Any], kind: type[DOMNode], name: str) -> str:
    """Return the keys of the action that has a name in the configuration, as people call them."""
    return next(keys_of(app, binding) for binding in bindings(kind) if binding.id == name)


def first_keys(app: App[Any], kinds: Iterable[type[DOMNode]], names: str) -> str:
    """Return the first key of each of some actions of these classes, by their names in the
    configuration.
    """
    known = {binding.id: binding for kind in kinds for binding in bindings(kind)}
    ascii_only = getattr(app, "ascii_only", False)
    given = [keys_given(app, known[name])[0] for name in names.split()]
    return " ".join(key_name(key, ascii_only=ascii_only) for key in given)


def hint_keys(app: App[Any]) -> Mapping[str, str]:
    """Return the keys that sentences on the screen name, as the user has them."""
    given: dict[str, str] = getattr(app, "user_keys", {})
    ascii_only = getattr(app, "ascii_only", False)
    own = {
        name: key_name(keys.split(",")[0], ascii_only=ascii_only)
        for name, keys in given.items()
        if name in HINT_KEYS
    }
    return {**HINT_KEYS, **own}


def _commands(app: App[Any], node: DOMNode, place: str, panel: str = "") -> Iterator[Command]:
    for binding in bindings(type(node)):
        words = binding.description
        title = (
            f"{place.capitalize()}: {words[0].lower()}{words[1:]}"
            if place
            else words[0].upper() + words[1:]
        )
        yield Command(title, keys_of(app, binding), binding.action, node, panel)


def _new(found: Iterator[Command], known: set[str]) -> Iterator[Command]:
    """Yield those with a new title: the first, which is nearest to the focus, holds."""
    for command in found:
        if command.title not in known:
            known.add(command.title)
            yield command

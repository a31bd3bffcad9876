"""The keys that classes declare, and those that the user has given instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textual.binding import Binding

from verl_tui.rendering.session.snapshot import HINT_KEYS
from verl_tui.tui.keys.key_names import key_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from textual.app import App
    from textual.dom import DOMNode

_OURS = "verl_tui."
"""Module prefix of the app's own classes: Textual's text boxes and lists have dozens of keys."""


def is_ours(kind: type) -> bool:
    """Return whether a class is the app's own."""
    return kind.__module__.startswith(_OURS)


def bindings(kind: type[DOMNode]) -> Iterator[Binding]:
    """Yield the described keys of a class and of our classes it inherits from, each name once."""
    known: set[str] = set()
    for base in kind.__mro__:
        own = base.__dict__.get("BINDINGS", ()) if is_ours(base) else ()
        for binding in own:
            if (
                isinstance(binding, Binding)
                and binding.description
                and (binding.id or binding.key) not in known
            ):
                known.add(binding.id or binding.key)
                yield binding


def keys_given(app: App[Any], binding: Binding) -> list[str]:
    """Return the keys of a binding, those that the user has given it."""
    given: dict[str, str] = getattr(app, "user_keys", {})
    return given.get(binding.id or "", binding.key).split(",")


def keys_of(app: App[Any], binding: Binding) -> str:
    """Return the keys of a binding as people call them."""
    return " ".join(key_name(key) for key in keys_given(app, binding))


def keys_to(app: App[Any], kind: type[DOMNode], name: str) -> str:
    """Return the keys of the action that has a name in the configuration, as people call them."""
    return next(
        keys_of(app, binding) for binding in bindings(kind) if binding.id == name
    )


def first_keys(app: App[Any], kinds: Iterable[type[DOMNode]], names: str) -> str:
    """Return the first key of each of some actions of these classes, by their names in the
    configuration.
    """
    known: dict[str | None, Binding] = {}
    for kind in kinds:
        known.update((binding.id, binding) for binding in bindings(kind))
    given = [keys_given(app, known[name])[0] for name in names.split()]
    return " ".join(key_name(key) for key in given)


def hint_keys(app: App[Any]) -> Mapping[str, str]:
    """Return the keys that sentences on the screen name, as the user has them."""
    given: dict[str, str] = getattr(app, "user_keys", {})
    own = {
        name: key_name(keys.split(",")[0])
        for name, keys in given.items()
        if name in HINT_KEYS
    }
    return {**HINT_KEYS, **own}

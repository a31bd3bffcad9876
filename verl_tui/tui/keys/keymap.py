"""The keys that a user has given to actions: which of them can be taken, and what is wrong with the
others.
"""

from __future__ import annotations

import difflib
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from textual.keys import KEY_NAME_REPLACEMENTS, Keys, key_to_character

from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

_NAMED = {*(key.value for key in Keys), *KEY_NAME_REPLACEMENTS.values()}
_MODIFIERS = {"ctrl", "shift", "alt", "super", "hyper", "meta"}


class Keymap(NamedTuple):
    """What the user's keys come to."""

    keys: dict[str, str]
    """Action's name -> its keys, of those that can be taken."""
    refused: tuple[str, ...]
    """What is wrong with the others, a sentence each."""


def keymap(
    wanted: Mapping[str, str], known: Collection[str], usual: Mapping[str, str] | None = None
) -> Keymap:
    """Return the keys that can be taken.

    Args:
        wanted: Action's name -> keys, separated by commas, as the configuration has them.
        known: Names of all actions.
        usual: The keys of actions, of which each key has one meaning: one that is given to another
            is told, if none is left.
    """
    taken: dict[str, str] = {}
    refused = []
    for name, keys in wanted.items():
        if name not in known:
            near = difflib.get_close_matches(name, known, 3)
            hint = (
                f", did you mean {' or '.join(near)}?" if near else ": the help (?) has their names"
            )
            refused.append(f"[keys] {one_line(name, 40)}: there is no such action{hint}")
        elif odd := [key for key in keys.split(",") if not _is_key(key)]:
            refused.append(f"[keys] {name}: {one_line(odd[0], 40) or 'nothing'} is no key")
        else:
            taken[name] = keys
    claims = defaultdict(list)
    for name, keys in taken.items():
        for key in keys.split(","):
            claims[key].append(name)
    twice = [
        f"[keys] {key} is given to {' and '.join(names)}"
        for key, names in claims.items()
        if len(names) > 1
    ]
    return Keymap(taken, (*refused, *twice, *_lost(taken, usual or {})))


def _lost(taken: Mapping[str, str], usual: Mapping[str, str]) -> Iterator[str]:
    """Yield what is to be said of actions whose last key has been given to another."""
    givers = {key: name for name, keys in taken.items() if name in usual for key in keys.split(",")}
    for name, keys in usual.items():
        if name not in taken and all(key in givers for key in keys.split(",")):
            key = keys.split(",")[0]
            yield f"[keys] {key} is given to {givers[key]}, so {name} has no key"


def _is_key(key: str) -> bool:
    """Tell whether a terminal may send a key of that name."""
    *modifiers, base = key.split("+") if len(key) > 1 else [key]
    if not set(modifiers) <= _MODIFIERS:
        return False
    return (
        key in _NAMED
        or base in _NAMED
        or (len(base) == 1 and base.isprintable())
        or bool(key_to_character(base))
    )

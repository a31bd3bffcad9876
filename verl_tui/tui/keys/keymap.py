"""Checks the keys that a user has given to actions."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, NamedTuple

from textual.keys import KEY_NAME_REPLACEMENTS, Keys, key_to_character

from verl_tui.text import one_line
from verl_tui.tui.keys.actions import key_name

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

_NAMED = {*(key.value for key in Keys), *KEY_NAME_REPLACEMENTS.values()}
_MODIFIERS = {"ctrl", "shift", "alt", "super", "hyper", "meta"}


class Keymap(NamedTuple):
    """The user's keys, checked."""

    keys: dict[str, str]
    """Action's name -> its keys, of those that can be taken."""
    refused: tuple[str, ...]
    """A sentence on each of the others, and on each key that is lost or given twice."""


def keymap(
    wanted: Mapping[str, str],
    known: Collection[str],
    usual: Mapping[str, str] | None = None,
) -> Keymap:
    """Return the keys that can be taken.

    Args:
        wanted: Action's name -> keys, separated by commas, as the configuration has them.
        known: Names of all actions.
        usual: The usual keys of actions that hold at the same time: there is a sentence on one
            whose last key has been given to another.
    """
    problems = {name: _problem(name, keys, known) for name, keys in wanted.items()}
    taken = {name: keys for name, keys in wanted.items() if not problems[name]}
    claims: dict[str, list[str]] = {}
    for name, keys in taken.items():
        for key in keys.split(","):
            claims.setdefault(key_name(key), []).append(name)
    lost = _lost(claims, taken, usual or {})
    said = (*problems.values(), *_given_twice(claims), *lost)
    return Keymap(taken, tuple(f"[keys] {one}" for one in said if one))


def _problem(name: str, keys: str, known: Collection[str]) -> str:
    """Return why keys cannot be given to an action, empty if they can."""
    if name not in known:
        near = " or ".join(difflib.get_close_matches(name, known, 3))
        hint = f", did you mean {near}?" if near else ": the help (?) has their names"
        return f"{one_line(name, 40)}: there is no such action{hint}"
    odd = [key for key in keys.split(",") if not _is_key(key)]
    return f"{name}: {one_line(odd[0], 40) or 'nothing'} is no key" if odd else ""


def _given_twice(claims: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield a sentence on each key that is given to several actions."""
    for key, names in claims.items():
        if len(names) > 1:
            yield f"{key} is given to {' and '.join(names)}"


def _lost(
    claims: Mapping[str, Sequence[str]],
    taken: Collection[str],
    usual: Mapping[str, str],
) -> Iterator[str]:
    """Yield a sentence on each action whose last key has been given to another."""
    for name, keys in usual.items():
        names = [key_name(key) for key in keys.split(",")]
        givers = [[one for one in claims.get(key, ()) if one in usual] for key in names]
        if name not in taken and all(givers):
            yield f"{names[0]} is given to {givers[0][-1]}, so {name} has no key"


def _is_key(key: str) -> bool:
    """Return True if a terminal may send a key of that name."""
    *modifiers, base = key.split("+") if len(key) > 1 else [key]
    if not set(modifiers) <= _MODIFIERS:
        return False
    return (
        key in _NAMED
        or base in _NAMED
        or (len(base) == 1 and base.isprintable())
        or bool(key_to_character(base))
    )

"""The actions of the app: each class declares its own, one row each, and keys, help, palette, last
row and `[keys]` of the configuration are made of these rows.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, NamedTuple

from textual.binding import Binding
from textual.dom import DOMNode
from textual.keys import KEY_NAME_REPLACEMENTS, Keys, key_to_character

from verl_tui.patterns import pattern
from verl_tui.text import one_line
from verl_tui.words import nearest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from textual.app import App


LEARN = Binding.Group("see whether it learns")
WHY = Binding.Group("find out why it broke")
SAMPLES = Binding.Group("read samples")
COMPARE = Binding.Group("compare runs")
SPEED = Binding.Group("see how fast it goes")
TAKE = Binding.Group("take something away")
MOVE = Binding.Group("move and look")

_TASKS = {
    name: one for name, one in globals().items() if isinstance(one, Binding.Group)
}
TASKS = tuple(_TASKS.values())
"""What keys are for, in the order of the help."""
_APART = pattern("  +")
_PLACES = ("verl_tui.tui.screens", "verl_tui.tui.panels")
"""Packages whose classes have keys, found by walking through: these import what is here."""


class HelpSection(NamedTuple):
    """The title over a class's own keys, and what else stands with them: `HELP_SECTION` of it."""

    title: str
    """Where the keys hold."""
    task: Binding.Group = MOVE
    """What the keys are for, one of `TASKS`."""
    rank: int = 100
    """Place among those of the screens, or of the panels, from 0."""
    notes: tuple[str, ...] = ()
    """Further lines below the keys."""
    charts: bool = False
    """True if it shows charts: the first such section is followed by their signs."""


def columns(table: str) -> list[list[str]]:
    """Return the rows of a table in text, whose columns are two blanks or more apart."""
    return [_APART.split(line.strip()) for line in table.splitlines() if line.strip()]


_NAMES = {
    row[0]: row[1]
    for row in columns("""
        escape      esc
        pagedown    pgdn
        pageup      pgup
        left        ←
        right       →
        up          ↑
        down        ↓
        plus        +
        minus       -
        slash       /
        underscore  _
        at          @
    """)
}
"""Keys for which Textual has another name, or no character."""


def actions(*parts: str | Iterable[Any]) -> list[Any]:
    """Return the `BINDINGS` of a class: those of others, and tables with a row for each action.

    A row has the action's keys, separated by commas: characters, or as Textual names them; the
    method, as Textual names actions; its name in the configuration, or a dash; what it does,
    without which it is neither in the help nor in the palette; the name of a task, where its class
    has actions of several tasks; and EVERYWHERE if it holds over every screen, whatever has the
    focus.
    """
    found: list[Any] = []
    for part in parts:
        if not isinstance(part, str):
            found += part
            continue
        for keys, does, *more in columns(part):
            name, words, *marks = [*more, "", ""][: max(2, len(more))]
            task = next((_TASKS[mark] for mark in marks if mark in _TASKS), None)
            one = action(keys, does, name, words, task)
            found.append(replace(one, priority="EVERYWHERE" in marks))
    return found


def action(
    keys: str, does: str, name: str, words: str, task: Binding.Group | None = None
) -> Binding:
    """Return an action from the cells of its row."""
    id = name.strip("-") or None
    return Binding(keys, does, words, show=False, id=id, group=task)


def key_name(key: str) -> str:
    """Return the usual name of a key that Textual names: its character, or the words on it."""
    modifier, _, arrow = key.rpartition("+")
    if modifier and arrow in ("left", "right", "up", "down"):
        return f"{modifier}+{_NAMES[arrow]}"
    return _NAMES.get(key) or (key_to_character(key) or "").strip() or key


def bindings(kind: type[DOMNode]) -> Iterator[Binding]:
    """Yield the described keys of a class and of our classes it inherits from, each name once."""
    known: set[str] = set()
    for base in kind.__mro__:
        # Textual's text boxes and lists have dozens of keys
        ours = base.__module__.startswith("verl_tui.")
        for binding in base.__dict__.get("BINDINGS", ()) if ours else ():
            name = binding.id or binding.key
            if binding.description and name not in known:
                known.add(name)
                yield binding


def declaring(package: str, name: str) -> list[type[Any]]:
    """Return the classes of a package's modules that declare something by a name: they are found
    without a list of them.
    """
    path = import_module(package).__path__
    modules = [import_module(one.name) for one in iter_modules(path, f"{package}.")]
    known = (one for module in modules for one in vars(module).values())
    kinds = (one for one in known if isinstance(one, type) and name in vars(one))
    return [*dict.fromkeys(kinds)]


def all_kinds() -> list[type[DOMNode]]:
    """Return every class that may have keys; imports all screens and panels."""
    for place in _PLACES:
        declaring(place, "BINDINGS")
    import_module("verl_tui.tui.replay_app")
    found: list[type[DOMNode]] = [DOMNode]
    for kind in found:
        found += [one for one in kind.__subclasses__() if one not in found]
    return found


@cache
def usual_keys() -> Mapping[str, str]:
    """Return the keys of all actions, by their names, as they are without the user's own."""
    found: dict[str, str] = {}
    for kind in all_kinds():
        for binding in bindings(kind):
            found.setdefault(binding.id or "", binding.key)
    found.pop("", None)
    return found


def user_keys(app: App[Any]) -> Mapping[str, str]:
    """Return the keys that the user has given to actions, by their names."""
    found: Mapping[str, str] = getattr(app, "user_keys", {})
    return found


def keys_of(binding: Binding, user: Mapping[str, str]) -> str:
    """Return the keys of a binding, those that the user has given it, as people call them."""
    return " ".join(map(key_name, user.get(binding.id or "", binding.key).split(",")))


class HintKeys(dict[str, str]):
    """The keys that sentences on the screen name, as the user has them, by the names of actions:
    the first of each.
    """

    def __init__(self, app: App[Any]) -> None:
        super().__init__()
        self._app = app

    def __missing__(self, name: str) -> str:
        keys = user_keys(self._app).get(name) or usual_keys()[name]
        self[name] = key_name(keys.split(",")[0])
        return self[name]


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
    taken: dict[str, str] = {}
    said: list[str] = []
    claims: dict[str, list[str]] = {}
    for name, keys in wanted.items():
        problem = _problem(name, keys, known)
        if problem:
            said.append(problem)
            continue
        taken[name] = keys
        for key in keys.split(","):
            claims.setdefault(key_name(key), []).append(name)
    for key, names in claims.items():
        if len(names) > 1:
            said.append(f"{key} is given to {' and '.join(names)}")
    said += _lost(claims, taken, usual or {})
    return Keymap(taken, tuple(f"[keys] {one}" for one in said))


def _problem(name: str, keys: str, known: Collection[str]) -> str:
    """Return why keys cannot be given to an action, empty if they can."""
    if name not in known:
        hint = nearest(name, known) or "the help (?) has their names"
        return f"{one_line(name, 40)}: there is no such action; {hint}"
    for key in keys.split(","):
        if not _is_key(key):
            return f"{name}: {one_line(key, 40) or 'nothing'} is no key"
    return ""


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
    if not _MODIFIERS.issuperset(modifiers):
        return False
    if key in _NAMED or base in _NAMED or key_to_character(base):
        return True
    return len(base) == 1 and base.isprintable()

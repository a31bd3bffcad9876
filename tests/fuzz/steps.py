"""Steps of a walk through the app as words.

A walk can be written down, shortened and walked again:

    left  question_mark  /  8       a key, as Textual names it
    size:80x24                      the terminal has another size
    click:10,5  wheel:10,5,-1       the mouse (wheel: 1 is down)
    paste:3                         a text of `worlds.TEXTS`
    world:712                       something happens to the logs, chosen by that seed
    clock:30                        so many seconds pass
    theme:2  app:blur  app:focus    another theme; the terminal loses and gets the focus
    quiet                           all that was asked for is read and drawn
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from fuzz.worlds import TEXTS

from verl_tui.tui.app import SCREENS
from verl_tui.tui.keys import all_kinds, bindings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SIZES = (
    (1, 1), (2, 1), (1, 5), (5, 1), (3, 3), (10, 2), (40, 1), (80, 1), (20, 6), (40, 12), (60, 20), (30, 50), (80, 24),
    (120, 40), (140, 45), (220, 60), (300, 100),
)  # fmt: skip
_MOVES = (
    "up", "down", "left", "right", "pageup", "pagedown", "home", "end", "tab", "shift+tab", "enter", "escape", "space",
    "ctrl+left", "ctrl+right", "j", "k", "h", "l", "g", "G",
)  # fmt: skip
_PROMPTS = ("/", "ctrl+p")
_LEAVING = {"q", "ctrl+q", "ctrl+c", "ctrl+z"}
"""Keys that end the app or hand the terminal over: a walk would be over."""
_WORDS = (
    "kl", "loss", "a", "score>0.5 acc=1", "len>=10", "group:x", '"', '"x', "/(", "/a|b/", "/(a+)+$/", "!max", "!", "critic kl|loss",
    "[red]", "\\", "漢", "step", "theme", "sort", "error", "copy", "csv", "zoom", "next", "panel", "9" * 400, "score>1e999", "=", "<", ">",
)  # fmt: skip
"""Words that people, and nobody, would type into a prompt."""
_NAMES = {
    " ": "space", "/": "slash", ">": "greater_than_sign", "<": "less_than_sign", "=": "equals_sign", "(": "left_parenthesis",
    ")": "right_parenthesis", '"': "quotation_mark", "[": "left_square_bracket", "]": "right_square_bracket", "!": "exclamation_mark",
    "|": "vertical_line", "\\": "backslash", "+": "plus", "$": "dollar_sign", ".": "full_stop", "-": "minus", "_": "underscore",
    "?": "question_mark", "@": "at", ";": "semicolon", "{": "left_curly_bracket", "}": "right_curly_bracket",
}  # fmt: skip
CHARACTERS = {name: character for character, name in _NAMES.items()}
"""Characters of keys that have another name."""


def walk(seed: int, count: int) -> Iterator[str]:
    """Yield so many steps; the same for the same seed."""
    rng = random.Random(seed)
    done = 0
    while done < count:
        for step in _stretch(rng):
            yield step
            done += 1
            if done == count:
                return


def _stretch(rng: random.Random) -> Iterator[str]:
    """Yield steps for a while in one part of the app."""
    home = rng.choice((*SCREENS, *SCREENS, "", ""))
    yield from ["escape"] * rng.choice((0, 1, 3))
    if rng.random() < 0.3:
        yield f"size:{_size(rng)}"
    if home:
        yield SCREENS[home].key
    else:
        yield rng.choice(("f2", "f3", "f4", "f5", "f6", "tab"))
        yield rng.choice(("z", "enter", "tab"))
    keys = _keys_of(home) or ALL_KEYS
    for _ in range(rng.randrange(5, 60)):
        yield from _few(rng, keys)


def _few(rng: random.Random, keys: Sequence[str]) -> Iterator[str]:
    """Yield a step, or some that belong together."""
    chance = rng.random()
    if chance < 0.5:
        yield rng.choice(keys)
    elif chance < 0.7:
        yield rng.choice(_MOVES)
    elif chance < 0.8:
        yield rng.choice(ALL_KEYS)
    elif chance < 0.84:
        yield from _typed(rng)
    elif chance < 0.97:
        yield _event(rng)
    else:
        yield f"size:{_size(rng)}"


def _typed(rng: random.Random) -> Iterator[str]:
    """Yield a prompt's key, a text, and what ends it."""
    yield rng.choice(_PROMPTS)
    if rng.random() < 0.2:
        yield f"paste:{rng.randrange(len(TEXTS))}"
    for character in rng.choice(_WORDS)[:40]:
        yield _NAMES.get(character, character)
    yield from [rng.choice(("up", "down", "backspace", "left", "tab"))] * rng.randrange(
        3
    )
    yield rng.choice(("enter", "enter", "escape", "tab"))


def _event(rng: random.Random) -> str:
    """Return something that is no key."""
    at = f"{rng.randrange(300) if rng.random() < 0.3 else rng.randrange(80)},{rng.randrange(40)}"
    return rng.choices(
        (
            f"world:{rng.randrange(10**9)}",
            f"click:{at}",
            f"wheel:{at},{rng.choice((-1, 1))}",
            f"paste:{rng.randrange(len(TEXTS))}",
            f"clock:{rng.choice((1, 30, 3600, -3600, 10**6))}",
            f"theme:{rng.randrange(100)}",
            rng.choice(("app:blur", "app:focus")),
            "quiet",
        ),
        (8, 6, 4, 1, 2, 1, 1, 2),
    )[0]


def _size(rng: random.Random) -> str:
    if rng.random() < 0.7:
        width, height = rng.choice(SIZES)
    else:
        width = rng.randrange(1, 301)
        height = rng.randrange(1, 101)
    return f"{width}x{height}"


def _described(kinds: Sequence[type]) -> tuple[str, ...]:
    found = {
        _NAMES.get(key, key)
        for kind in kinds
        for one in bindings(kind)
        for key in one.key.split(",")
    }
    return tuple(sorted(found - _LEAVING))


def _keys_of(screen: str) -> tuple[str, ...]:
    """Return the keys that hold on a screen alone, by its name."""
    return _BY_SCREEN.get(screen, ())


_KINDS = all_kinds()
ALL_KEYS = _described(_KINDS)
_BY_SCREEN = {
    name: _described(
        [kind for kind in _KINDS if f".screens.{name}." in kind.__module__]
    )
    for name in SCREENS
}

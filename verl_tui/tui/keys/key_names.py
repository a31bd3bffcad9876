"""Names of keys as people write them: the character, or the words on the keyboard."""

from __future__ import annotations

from textual.keys import key_to_character

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
_ARROWS = ("left", "right", "up", "down")


def key_name(key: str) -> str:
    """Return the usual name of a key that Textual names."""
    modifier, _, arrow = key.rpartition("+")
    if modifier and arrow in _ARROWS:
        return f"{modifier}+{_NAMES[arrow]}"
    return _NAMES.get(key) or (key_to_character(key) or "").strip() or key

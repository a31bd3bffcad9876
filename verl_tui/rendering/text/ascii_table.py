"""Replacements of equal width for our own signs in ASCII terminals."""

from __future__ import annotations

from rich.cells import cell_len

WORDS = {
    **dict.fromkeys("·•", "*"),
    **dict.fromkeys("–—−", "-"),
    **dict.fromkeys("“”„", '"'),
    **dict.fromkeys("‘’", "'"),
    **dict.fromkeys("…≈", "~"),
    **dict.fromkeys("→▸", ">"),
    "←": "<",
    "↑": "^",
    **dict.fromkeys("↓▾▼√", "v"),
    **dict.fromkeys("×χ", "x"),
    "²": "2",
    "⁹": "9",
    "°": "'",
    "≥": ">",
    "±": "~",
    "✓": "o",
    **dict.fromkeys("✖✗", "X"),
    "▲": "^",
    "★": "*",
}
"""Signs in our own sentences."""

LIKE = {
    **WORDS,
    **dict.fromkeys("●◆◈○◇■▫", "*"),
    **dict.fromkeys("─━▁▂▃▔", "-"),
    **dict.fromkeys("│┃▌▐▋▊▍▎▏▕╎‖", "|"),
    **dict.fromkeys("▄▅▆▇█▉▓", "#"),
    **dict.fromkeys("░▒", ":"),
    **dict.fromkeys("╭╮╰╯┌┐└┘├┤┬┴┼†", "+"),
    "↻": "@",
    "\u00a0": " ",
}
"""All signs, with those of frames and bars."""


def in_ascii(text: str) -> str:
    """Return a text in ASCII, as wide as before: others than those signs become question marks."""
    return "".join(sign if sign.isascii() else _in_ascii(sign) for sign in text)


def _in_ascii(sign: str) -> str:
    return LIKE.get(sign) or "?" * cell_len(sign)

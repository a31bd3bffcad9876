"""Replacements of equal width for our own signs in ASCII terminals."""

from __future__ import annotations

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

"""What our own signs become where a terminal takes nothing but ASCII: always as wide as before."""

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
"""Signs of our own sentences; of foreign text nobody knows what it means."""

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
"""All signs that are drawn, frames and bars with them."""

"""Replacements of equal width for the signs of our screens in terminals that show only ASCII."""

from __future__ import annotations

import locale
import os
from collections.abc import Mapping

from rich.cells import cell_len

_SHAPES = {
    "-": "·–—−─▔▃┈○",
    "+": "✓▆▒╭╮╰╯┌┐└┘├┤┬┼",
    "|": "│┃▌▐▋▊▍▎▏▕╎",
    "#": "■█▉†",
    "=": "▄▅‖━╸",
    "*": "•★▇",
    "~": "…≈±◌",
    "%": "◆▓",
    "v": "↓▾▼√",
    "x": "×χ✗",
    ">": "→▸≥",
    '"': "“”„",
    "'": "‘’°┴",
}
_LIKE = {sign: like for like, signs in _SHAPES.items() for sign in signs}
_LIKE |= zip("←↑²⁹✖▲●✎↻◇◈▫▁▂░\u00a0", "<^29X!onR$&@_.: ", strict=True)
_ROWS = (0x09, 0x12, 0x24, 0xC0)
"""Bits of the dots in each row of a braille character, from the top."""
_FORMS = {
    ".": "   x,  xx",
    "-": "  x , x  , xx ,x x ",
    ":": " x x,x  x",
    "'": "x   ,xx  ",
}
_OF_ROWS = {form: sign for sign, forms in _FORMS.items() for form in forms.split(",")}
"""Braille by the rows that hold dots; others are `|`, nearly full cells `#`."""
_SHADE = frozenset({0x01, 0x02, 0x04, 0x05, 0x40, 0x42})
"""Dots that a shade leaves in a cell: in ASCII it would be mistaken for the curve over it."""


def in_ascii(text: str) -> str:
    """Return a text in ASCII, as wide as before: signs that are not ours become question marks."""
    return text.translate(_TABLE)


class _Table(dict[int, str]):
    """What stands for each character met so far, by code point."""

    def __missing__(self, code: int) -> str:
        sign, dots = chr(code), code - 0x2800
        if not 0 <= dots < 256:
            sign = sign if sign.isascii() else _LIKE.get(sign, "?" * cell_len(sign))
        elif not dots or dots in _SHADE:
            sign = " "
        elif dots.bit_count() >= 6:
            sign = "#"
        else:  # whose shape comes nearest
            rows = "".join("x" if dots & row else " " for row in _ROWS)
            sign = _OF_ROWS.get(rows, "|")
        self[code] = sign
        return sign


_TABLE = _Table()


def ascii_locale(environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether the locale says that the terminal shows ASCII only: `LC_ALL=C` and the like.

    A locale that is not set at all, as in most containers, is no evidence.
    """
    for name in ("LC_ALL", "LC_CTYPE", "LANG"):
        locale = environment.get(name, "")
        if locale:
            return locale in ("C", "POSIX") or (
                "." in locale and "utf" not in locale.lower()
            )
    return False


_FEW_GLYPHS = frozenset(
    {"linux", "ansi", "pcansi", "cons25", "wsvt25", "sun", "hurd", "console"}
)
"""First words of TERM of screens without a font of their own choice. Linux's console has 512 glyphs
at most, and none of braille (console_codes(4), setfont(8)).
"""


def few_glyphs(term: str) -> bool:
    """Return True if a terminal of this name cannot show braille, whatever the locale."""
    first = term.partition("-")[0].lower()
    return first in _FEW_GLYPHS or (first.startswith("vt") and first[2:].isdigit())


def keeps_to_ascii(
    wanted: bool | None,
    environment: Mapping[str, str] = os.environ,
    *,
    on_terminal: bool = True,
) -> bool:
    """Return whether to draw in ASCII: as configured, else if the locale or the terminal can show
    nothing else.
    """
    if wanted is not None:
        return wanted
    # Python itself takes LC_ALL=C for UTF-8, so the locale's name is looked at first.
    stated = environment.get("PYTHONIOENCODING", "").partition(":")[0]
    encoding = stated or locale.getpreferredencoding(False)  # noqa: FBT003
    encoding = encoding.lower().replace("-", "").replace("_", "")
    if ascii_locale(environment) or encoding not in {"utf8", "gb18030"}:
        return True
    return on_terminal and few_glyphs(environment.get("TERM", ""))

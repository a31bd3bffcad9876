"""Whether a terminal shows ASCII only."""

from __future__ import annotations

import locale
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


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
    encoding = locale.getpreferredencoding(False).lower().replace("-", "")  # noqa: FBT003
    if ascii_locale(environment) or encoding not in {"utf8", "gb18030"}:
        return True
    return on_terminal and few_glyphs(environment.get("TERM", ""))

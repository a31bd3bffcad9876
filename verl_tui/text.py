"""Makes text from logs safe to show; all of it passes through here.

Models write escape sequences, control characters, right-to-left overrides and lines of 100 kB. Here
these become visible symbols, so that no other code has to handle them.
"""

from __future__ import annotations

from collections.abc import Iterable
from os import fsencode
from shlex import quote

from verl_tui.patterns import pattern

_ANSI = pattern(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor movements
    # OSC, DCS, SOS, PM, APC, whole
    r"|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]"  # two-byte escapes
    r"|\x9b[0-?]*[ -/]*[@-~]"  # CSI as one C1 byte
)
_ANSI_BYTES = pattern(
    rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]"
)

_VISIBLE: dict[int, str] = {
    **{code: chr(0x2400 + code) for code in range(0x20) if code not in (0x09, 0x0A)},
    **{0x1F1E6 + at: chr(ord("A") + at) for at in range(26)},
    0x7F: "␡",
}
"""What stands for a character, so that a reader sees that something was there; letters for the
signs that flags are made of, which merge with each other.
"""
for _sign, _codes in (
    # C1 controls; lone surrogates, which cannot be encoded
    ("�", "80-9f d800-dfff"),
    # bidirectional controls, which reorder what follows them, even beyond their own line
    ("�", "61c 200e-200f 202a-202e 2066-2069"),
    ("\n", "2028-2029"),
    # zero-width, joining and variation characters, which make terminals disagree about widths
    ("", "ad 34f 180e 200b-200d 2060-2064 feff fe00-fe0f e0100-e01ef"),
    # so do marks of notes, shorthand, music and hieroglyphs, and what Unicode has long given up
    ("", "206a-206f fff9-fffb 13430-1343f 1bca0-1bca3 1d173-1d17a"),
    # invisible tags; skin tones, which may merge with the sign before them
    ("", "e0000-e007f 1f3fb-1f3ff"),
):
    for _span in _codes.split():
        _first, _, _last = _span.partition("-")
        _range = range(int(_first, 16), int(_last or _first, 16) + 1)
        _VISIBLE |= dict.fromkeys(_range, _sign)
_FORMULAS = ("=", "+", "-", "@", "\t", "\r")
_NUMBER = pattern(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:inf|nan)")
_TICKS = pattern("`+")
_SUSPECT = {
    0xC2: pattern(rb"\xc2[\x80-\x9f\xad]"),
    0xCD: pattern(rb"\xcd\x8f"),
    0xD8: pattern(rb"\xd8\x9c"),
    0xE1: pattern(rb"\xe1\xa0\x8e"),
    0xE2: pattern(rb"\xe2(?:\x80[\x8b-\x8f\xa8-\xae]|\x81[\xa0-\xaf])"),
    0xED: pattern(rb"\xed[\xa0-\xbf]"),
    0xEF: pattern(rb"\xef(?:\xb8[\x80-\x8f]|\xbb\xbf|\xbf[\xb9-\xbb])"),
    0xF0: pattern(rb"\xf0(?:\x93\x90|\x9b\xb2|\x9d\x85|\x9f\x87|\x9f\x8f)"),
    0xF3: pattern(rb"\xf3\xa0"),
}
"""Finds the non-ASCII characters of `_VISIBLE` by their first byte in UTF-8."""
_HARMLESS = bytes({*range(0x20, 0x7F), 0x0A, *range(0x80, 0x100)} - {*_SUSPECT})
"""The bytes with which none of them begins."""


def strip_ansi(line: bytes) -> bytes:
    """Remove escape sequences from a line of bytes; cheap where there are none."""
    if b"\x1b" not in line:
        return line
    return _ANSI_BYTES.sub(b"", line)


def decoded(data: bytes) -> str:
    """Return bytes of a log as text, with what is no UTF-8 replaced."""
    return data.decode("utf-8", "replace")


def safe(text: str, limit: int | None = None) -> str:
    """Return text for any terminal: no escapes, no controls but newline, tabs expanded.

    Args:
        text: Any text of a log.
        limit: Most characters kept; a note at the end counts those cut off.
    """
    dropped = 0
    if limit is not None and len(text) > limit:
        dropped = len(text) - limit
        text = text[:limit]
    if "\x1b" in text or "\x9b" in text:
        text = _ANSI.sub("", text)
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    if _is_suspect(text):
        text = text.translate(_VISIBLE).expandtabs(4)
    return f"{text}… [{dropped:,} more characters]" if dropped else text


def _is_suspect(text: str) -> bool:
    """Return True if a text may contain a character that `safe` replaces.

    Searching bytes is many times as fast: all but a few characters are covered in one pass, and a
    pattern that begins with a certain byte is found at the speed of a search for it.
    """
    if text.isascii() and text.isprintable():  # nearly all names
        return False
    data = text.encode("utf-8", "surrogatepass")
    left = set(data.translate(None, _HARMLESS))
    return any(sign not in _SUSPECT or _SUSPECT[sign].search(data) for sign in left)


def one_line(text: str, limit: int = 200) -> str:
    """Return `safe` text on a single line, cut to `limit` characters with an ellipsis."""
    flat = " ".join(safe(text[: 4 * limit]).split())
    if len(flat) <= limit:
        return flat
    return flat[: limit - 1] + "…"


def fenced(text: str) -> str:
    """Return text in a block of code in Markdown that it cannot end."""
    longest = max(map(len, _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"


def shell_words(words: Iterable[str]) -> str:
    """Return words for a command line. Whoever pastes them is not to paste what a terminal obeys,
    or what hides or reorders others: bash and zsh read such characters as numbers between `$'` and
    `'`.
    """
    return " ".join(
        quote(word) if word.isprintable() else f"$'{''.join(map(_escaped_sign, word))}'"
        for word in words
    )


def _escaped_sign(sign: str) -> str:
    if sign in "\\'":
        return f"\\{sign}"
    if sign.isprintable():
        return sign
    return "".join(f"\\x{byte:02x}" for byte in fsencode(sign))


def cell(text: str) -> str:
    """Return text for a cell of CSV. Spreadsheets run what begins as a formula does: before that
    stands an apostrophe, as they write it themselves.
    """
    if text.startswith(_FORMULAS) and not _NUMBER.fullmatch(text):
        return f"'{text}"
    return text

"""Texts on which a regular expression has much to try: what it repeats, repeated without the end that it waits for."""

from __future__ import annotations

import re
from itertools import product
from typing import TYPE_CHECKING, Any

try:
    from re import _constants as codes
    from re import _parser as parser
except ImportError:  # Python 3.10
    import sre_constants as codes  # type: ignore[no-redef]
    import sre_parse as parser  # type: ignore[no-redef]

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_SIGNS = "a1 _/.:-'\"\\{[(<=,\n"
_ALONE = "a1 _/\n"
_ENDS = ("", "\0")
_MOST = 8
"""Spellings of what is repeated."""
_OF_CLASSES = {
    codes.CATEGORY_DIGIT: "1",
    codes.CATEGORY_SPACE: " ",
    codes.CATEGORY_NOT_WORD: "-",
}
_REPEATED = (codes.MAX_REPEAT, codes.MIN_REPEAT)
_AROUND = (codes.ASSERT, codes.ASSERT_NOT)


def pumped(form: re.Pattern[Any], size: int) -> Iterator[Any]:
    """Yield texts of that many characters for an expression, as text or bytes as it takes them."""
    of_bytes = isinstance(form.pattern, bytes)
    tree = parser.parse(
        form.pattern, form.flags & ~re.UNICODE if of_bytes else form.flags
    )
    known = {("", sign) for sign in _ALONE}
    for before, piece in _repeats(tree, ""):
        known |= {(before, piece), ("", before + piece)}
    for (before, piece), end in product(sorted(known), _ENDS):
        text = (before + piece * (size // len(piece) + 1))[:size] + end
        yield text.encode() if of_bytes else text


def _repeats(parts: Any, before: str) -> Iterator[tuple[str, str]]:
    """Yield what may be repeated often, each with a shortest text that leads to it."""
    for code, told in parts:
        if code in _REPEATED:
            if told[1] is codes.MAXREPEAT or told[1] > _MOST:
                yield from ((before, piece) for piece in _spelled(told[2]) if piece)
            yield from _repeats(told[2], before)
        elif code is codes.SUBPATTERN:
            yield from _repeats(told[-1], before)
        elif code is codes.BRANCH:
            for branch in told[1]:
                yield from _repeats(branch, before)
        elif code in _AROUND:
            yield from _repeats(told[1], before)
        before += _written(code, told)[0]


def _spelled(parts: Any) -> Sequence[str]:
    """Return some texts that a part matches."""
    found = [""]
    for code, told in parts:
        found = [one + more for one in found for more in _written(code, told)][:_MOST]
    return found


def _written(code: Any, told: Any) -> Sequence[str]:
    """Return some texts for one item of an expression, the shortest first."""
    if code is codes.LITERAL:
        return (chr(told),)
    if code is codes.IN:
        return _of_set(told)
    if code in _REPEATED:
        least, most, part = told
        return [
            piece * count
            for count in sorted({least, max(1, least)})
            if count <= most
            for piece in _spelled(part)
        ]
    if code is codes.SUBPATTERN:
        return _spelled(told[-1])
    if code is codes.BRANCH:
        return [piece for branch in told[1] for piece in _spelled(branch)[:2]]
    return ("a", " ") if code in (codes.ANY, codes.NOT_LITERAL) else ("",)


def _of_set(items: Any) -> Sequence[str]:
    """Return a few characters of a set."""
    if items[0][0] is codes.NEGATE:
        # Which these are is asked of the module itself.
        others = re.compile("[" + "".join(map(_spelling, items[1:])) + "]")
        return [sign for sign in _SIGNS if not others.match(sign)][:4]
    return [_member(item) for item in items][:4]


def _member(item: Any) -> str:
    code, told = item
    if code is codes.CATEGORY:
        return _OF_CLASSES.get(told, "a")
    return chr(told[0] if code is codes.RANGE else told)


def _spelling(item: Any) -> str:
    code, told = item
    if code is codes.CATEGORY:
        return {
            codes.CATEGORY_DIGIT: r"\d", codes.CATEGORY_NOT_DIGIT: r"\D", codes.CATEGORY_SPACE: r"\s",
            codes.CATEGORY_NOT_SPACE: r"\S", codes.CATEGORY_WORD: r"\w", codes.CATEGORY_NOT_WORD: r"\W",
        }[told]  # fmt: skip
    return "-".join(
        re.escape(chr(one)) for one in (told if code is codes.RANGE else (told,))
    )

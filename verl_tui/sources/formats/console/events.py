"""What a line of a console states in words: turning points of the training, such as starts,
checkpoints, stages and normal ends, and numbers of steps.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from verl_tui.patterns import pattern
from verl_tui.records import Event, EventKind
from verl_tui.secrets import hide
from verl_tui.text import decoded, one_line
from verl_tui.toml_tables import toml_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_ORDER = "zqjxkvbywgp?mfu,.c:d_lhrsnioate "
"""Letters by how well they are searched for: those that are rare in English text and in logs, yet
in many words, then all others (`?`), then the common ones.
"""
TABLE = toml_table(__file__, "events.toml")


def any_of(words: Iterable[str]) -> re.Pattern[bytes]:
    """Return a pattern that is found in all texts that contain one of the words, and in no others.

    A search pauses at each letter that it looks for, and tries one after the other. So these are
    few and rare ones, the most common first; from there it looks back at what stands before.
    """
    by_letter: dict[str, set[str]] = {}
    for word in words:
        letter = min(word, key=_place)
        before, _, behind = word.partition(letter)
        known = f"(?<={re.escape(before + letter)})" if before else ""
        by_letter.setdefault(letter, set()).add(known + re.escape(behind))
    parts = (
        f"{re.escape(letter)}(?:{'|'.join(sorted(rest))})"
        for letter, rest in sorted(by_letter.items(), key=lambda one: -_place(one[0]))
    )
    return pattern("|".join(parts).encode())


def _place(letter: str) -> int:
    if letter in _ORDER:
        return _ORDER.find(letter)
    return _ORDER.index("?")


def words_of(rows: str) -> list[str]:
    """Return words one of which is in each line that some rows of the table describe."""
    return [word for entry in TABLE[rows] for word in entry.get("words", ())]


def form_of(kind: str, rows: str = "event") -> re.Pattern[bytes]:
    """Return what finds all lines of a kind, see `events.toml`."""
    forms = [one["match"] for one in TABLE[rows] if one.get("kind", kind) == kind]
    whole = "|".join(forms)
    for name in ("shell", "code"):
        whole = whole.replace(f"{{{name}}}", TABLE[name])
    return pattern(whole.encode(), re.MULTILINE if rows == "first" else 0)


WORDS, STATED = words_of("event"), words_of("stated")
_MAY_TURN, _MAY_STATE = any_of(WORDS), any_of(STATED)
_STATED = form_of("", "stated")


_TURNING_POINTS = [
    (pattern(entry["match"].encode()), EventKind(entry["kind"]))
    for entry in TABLE["event"]
    if "words" in entry
]


def turning_point(part: bytes, number: int) -> Event | None:
    """Return the event that a line states, None for most.

    Args:
        part: The line without the prefix of a process.
        number: Its number.
    """
    for form, kind in _TURNING_POINTS if _MAY_TURN.search(part) else ():
        if found := form.search(part):
            groups = found.groupdict()
            step = groups.get("step")
            text = shown(groups.get("text") or part)
            return Event(kind, text, number, int(step) if step else None)
    return None


def shown(text: bytes) -> str:
    """Return a line as an event keeps it: safe, without secrets, not too long."""
    return one_line(hide(decoded(text[:2000])), 400)


def stated(part: bytes) -> Mapping[str, int]:
    """Return the numbers that a line states, by what they count, see `events.toml`."""
    said: dict[str, int] = {}
    for found in _STATED.finditer(part) if _MAY_STATE.search(part) else ():
        name = found.lastgroup or ""
        said.setdefault(name, int(found[name].replace(b",", b"") or 0))
    return said

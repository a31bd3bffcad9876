"""Turning points on a console: starts, checkpoints, stages, normal ends."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from verl_tui.patterns import pattern
from verl_tui.records import Event, EventKind
from verl_tui.secrets import hide
from verl_tui.text import one_line
from verl_tui.toml_tables import toml_table

if TYPE_CHECKING:
    import re
    from collections.abc import Sequence

TABLE = toml_table(__file__, "events.toml")
WORDS = [word for entry in TABLE["event"] for word in entry.get("words", ())]
"""Every line that states one contains one of these."""


def form_of(kind: str) -> re.Pattern[bytes]:
    """Return what finds all lines of a kind, see `events.toml`."""
    forms = [entry["match"] for entry in TABLE["event"] if entry["kind"] == kind]
    whole = "|".join(forms)
    for name in ("shell", "code"):
        whole = whole.replace(f"{{{name}}}", TABLE[name])
    return pattern(whole.encode())


@cache
def _turning_points() -> Sequence[tuple[re.Pattern[bytes], EventKind]]:
    return [
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
    for form, kind in _turning_points():
        if found := form.search(part):
            groups = found.groupdict()
            step = groups.get("step")
            text = shown(groups.get("text") or part)
            return Event(kind, text, number, int(step) if step else None)
    return None


def shown(text: bytes) -> str:
    """Return a line as an event keeps it: safe, without secrets, not too long."""
    return one_line(hide(text[:2000].decode("utf-8", "replace")), 400)

"""Words around a filter that is typed: what it filters, how much matches, how to leave."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Matches(NamedTuple):
    """How many things of a kind a filter leaves."""

    found: int
    """Those that match; 0 too where all are shown because none does."""
    all: int


def filter_label(kinds: Sequence[str]) -> str:
    """Return the words before the typed text: `filter runs and metrics: `."""
    return f"filter {' and '.join(kinds)}: "


def filter_state(
    typed: str, matches: Mapping[str, Matches], width: int, *, ascii_only: bool
) -> str:
    """Return the words behind the typed text, the longest that fit.

    Args:
        typed: The text.
        matches: Kinds of things, as `metrics`, to how many of them match.
        width: Cells there are.
        ascii_only: Whether to keep to ASCII.
    """
    leave = ("enter keeps it", "esc clears it") if typed.strip() else ("esc leaves",)
    dot = " - " if ascii_only else " · "
    count = _count(matches) if typed.strip() else ""
    forms = ((count, *leave), (count, leave[-1]), (leave[-1],), ("esc",))
    texts = (dot.join(filter(None, form)) for form in forms)
    return next((text for text in texts if len(text) <= width), "")


def _count(matches: Mapping[str, Matches]) -> str:
    found = [f"{one.found} of {one.all} {kind}" for kind, one in matches.items() if one.found]
    return ", ".join(found) or "nothing matches"

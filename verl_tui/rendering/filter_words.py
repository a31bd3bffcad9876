"""Words around a filter that is typed: what it filters, how much matches, how to leave."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Matches(NamedTuple):
    """The numbers of things of one kind: those that a filter leaves, and all."""

    found: int
    """Those that match; 0 too where all are shown because none does."""
    all: int


def filter_label(kinds: Sequence[str]) -> str:
    """Return the words before the typed text: `filter runs and metrics: `."""
    return f"filter {' and '.join(kinds)}: "


def filter_state(
    typed: str,
    matches: Mapping[str, Matches] | None,
    width: int,
    *,
    enter: str = "keeps it",
    escape: str = "esc",
) -> str:
    """Return the words behind the typed text, the longest that fit.

    Args:
        typed: The text.
        matches: Kinds of things, as `metrics`, to how many of them match; None while that is
            unknown.
        width: Cells there are.
        enter: What the enter key does.
        escape: Name of the key that leaves.
    """
    kept = enter == "keeps it"  # else nothing is filtered before the enter key
    away = f"{escape} {'clears it' if kept and typed.strip() else 'leaves'}"
    leave = (f"enter {enter}", away) if typed.strip() else (away,)
    count = (
        _count(matches, zeros=not kept) if typed.strip() and matches is not None else ""
    )
    forms = ((count, *leave), (count, leave[-1]), (leave[-1],), (escape,))
    texts = (" · ".join(filter(None, form)) for form in forms)
    return next((text for text in texts if len(text) <= width), "")


def _count(matches: Mapping[str, Matches], *, zeros: bool) -> str:
    found = [
        f"{one.found:,} of {one.all:,} {kind}"
        for kind, one in matches.items()
        if one.found or zeros
    ]
    return ", ".join(found) or "nothing matches"

"""Recognise whose names a log uses: verl's own, those of its tutorials, or another framework's."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Literal

from verl_tui.distributions import one_each
from verl_tui.metrics import slashed
from verl_tui.patterns import NamePattern
from verl_tui.toml_tables import toml_table
from verl_tui.trainers import writers

if TYPE_CHECKING:
    from collections.abc import Collection

Dialect = Literal["tutorial", "verl", "other"]

_FORMS: dict[str, dict[Dialect, NamePattern]] = {
    kind: {whose: NamePattern("|".join(words.split())) for whose, words in row.items()}
    for kind, row in toml_table(__file__, "dialects.toml").items()
}
"""Names that several write, and those that tell whose they are: `shared`, `clear`."""


def dialect(keys: Collection[str]) -> Dialect:
    """Say whose names a log uses: verl's own, those of its tutorials, or another framework's.

    The own metrics of a trainer that has a file of its own decide, then one name that only verl
    writes. Otherwise clear names are counted, then names that
    several share; a tie is `other`, since the tutorials' thresholds must not judge what they were
    not written for.
    """
    return "other" if writers(keys) else _by_names(keys)


def _by_names(keys: Collection[str]) -> Dialect:
    count = Counter(evidence for key in one_each(keys) for evidence in _evidence(key))
    if count["verl", True]:
        return "verl"
    tutorial = count["tutorial", True]
    other = count["other", True]
    if tutorial or other:
        return "tutorial" if tutorial > other else "other"
    verl, tutorial, other = (
        count[name, False] for name in ("verl", "tutorial", "other")
    )
    if tutorial > max(verl, other):
        return "tutorial"
    if verl > max(tutorial, other):
        return "verl"
    return "other"


@cache
def _evidence(key: str) -> tuple[tuple[Dialect, bool], ...]:
    """Return whose name a key is, each with whether it is theirs alone."""
    shared: tuple[tuple[Dialect, bool], ...] = tuple(
        (name, False) for name, form in _FORMS["shared"].items() if form.fullmatch(key)
    )
    if shared:
        return shared
    name = slashed(key)
    return tuple(
        (whose, True) for whose, form in _FORMS["clear"].items() if form.fullmatch(name)
    )

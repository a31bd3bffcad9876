"""Which run a user means by a name or a path."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from verl_tui.runs.run import Run

_NAMED = 8
"""Most runs named in a sentence."""


class UnknownRunError(Exception):
    """No run, or more than one, is meant; the text is one sentence."""


def meant(runs: Iterable[Run], word: str) -> Run:
    """Return the run that a word names: in full, by one of its paths, or by a part of its name.

    Raises:
        UnknownRunError: None is meant, or more than one.
    """
    known = list(runs)
    found = all_meant(known, word)
    if len(found) == 1:
        return found[0]
    if found:
        raise UnknownRunError(f"{word} may be {_names(found)}: name one of them in full")
    raise UnknownRunError(f"{word} is none of the runs: {_names(known) or 'there is none'}")


def all_meant(runs: Sequence[Run], word: str) -> list[Run]:
    """Return the runs that a word names, several if it is a directory of runs or a part of their
    names.
    """
    exact = [run for run in runs if run.name == word]
    if exact:
        return exact
    below = [run for run in runs if any(_is_below(path, word) for path in run.paths)]
    return below or [run for run in runs if word in run.name]


def _is_below(path: str, word: str) -> bool:
    """Return whether a source is the file or lies in the directory that a word names."""
    try:
        where, folder = Path(path).resolve(), Path(word).resolve()
    except (OSError, ValueError, RuntimeError):
        return False
    return where == folder or folder in where.parents


def _names(runs: Sequence[Run]) -> str:
    names = [run.name for run in runs]
    return ", ".join([*names[:_NAMED], *(["…"] if len(names) > _NAMED else [])])

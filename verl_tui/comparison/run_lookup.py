"""Finds the run that a user means by a name or a path."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from verl_tui.given_files import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.runs.run import Run

_NAMED = 8
"""Most runs named in a sentence."""


class UnknownRunError(UsageError):
    """No run, or more than one, is meant; the text is one sentence."""


def find_run(runs: Sequence[Run], word: str) -> Run:
    """Return the run that a word names: in full, by one of its paths, or by a part of its name.

    Raises:
        UnknownRunError: None is meant, or more than one.
    """
    found = all_meant(runs, word)
    if len(found) == 1:
        return found[0]
    listed = f"{word} may be {_names(found)}" if word else f"runs: {_names(found)}"
    raise UnknownRunError(f"{listed}: name one of them in full")


def all_meant(runs: Sequence[Run], word: str) -> list[Run]:
    """Return the runs that a word names, several if it is a directory of runs or a part of their
    names.

    Raises:
        UnknownRunError: None is meant.
    """
    for names in (
        lambda run: word == run.name,
        lambda run: any(_is_below(path, word) for path in run.paths),
        lambda run: word in run.name,
    ):
        found = list(filter(names, runs))
        if found:
            return found
    known = _names(runs) or "there is none"
    raise UnknownRunError(f"{word} is none of the runs: {known}")


def _is_below(path: str, word: str) -> bool:
    """Return whether a source is the file or lies in the directory that a word names."""
    try:
        return Path(path).resolve().is_relative_to(Path(word).resolve())
    except (OSError, ValueError, RuntimeError):
        return False


def _names(runs: Sequence[Run]) -> str:
    more = ["…"] if len(runs) > _NAMED else []
    return ", ".join([*(run.name for run in runs[:_NAMED]), *more])

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
    for names in (_in_full, _by_path, _in_part):
        found = [run for run in runs if names(word, run)]
        if found:
            return found
    raise UnknownRunError(
        f"{word} is none of the runs: {_names(runs) or 'there is none'}"
    )


def _in_full(word: str, run: Run) -> bool:
    return word == run.name


def _by_path(word: str, run: Run) -> bool:
    return any(_is_below(path, word) for path in run.paths)


def _in_part(word: str, run: Run) -> bool:
    return word in run.name


def _is_below(path: str, word: str) -> bool:
    """Return whether a source is the file or lies in the directory that a word names."""
    try:
        where = Path(path).resolve()
        folder = Path(word).resolve()
    except (OSError, ValueError, RuntimeError):
        return False
    return where == folder or folder in where.parents


def _names(runs: Sequence[Run]) -> str:
    names = [run.name for run in runs]
    shown = list(names[:_NAMED])
    if len(names) > _NAMED:
        shown.append("…")
    return ", ".join(shown)

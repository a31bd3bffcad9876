"""What a run is known by, however it is called: names change when others like it appear; and the
run that a user means.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from verl_tui.given_files import NothingError, UsageError
from verl_tui.patterns import pattern
from verl_tui.records import SourceStatus, digest
from verl_tui.text import one_line
from verl_tui.words import few

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from verl_tui.runs.run import Run


_WANDB = pattern(
    r"/(?:offline-)?run-(?P<start>\d{8}_\d{6})-(?P<id>[^/]+)/|/run-(?P<log>[^/]+)\.wandb$"
)
"""Paths of what W&B keeps of a run; its directory may have been renamed."""


def run_id(run: Run) -> str:
    """Return the id of a run: W&B's, of its first start, else one made of where its log lies and
    what that begins with; of what only a server has, of its name there.
    """
    sources = [state.status for state in run.sources.values()]
    started = min(_wandb_starts(sources), default=None)
    if started:
        return started[1]
    first = min(sources, key=_appearance, default=None)
    if first and first.origin:
        return first.origin
    path = first.path if first else ""
    return digest(path, "" if path.startswith("/") else run.name)


def _wandb_starts(sources: Iterable[SourceStatus]) -> Iterator[tuple[str, str]]:
    """Yield times and ids of the starts that W&B has kept; those of unknown time sort last."""
    for source in sources:
        if found := _WANDB.search(source.path):
            yield found["start"] or "~", found["id"] or found["log"]


def _appearance(source: SourceStatus) -> tuple[bool, int, int, str]:
    """Return the sort key of sources, in the order in which they mostly appear: a console, then
    what a trainer logs, last the state that it leaves in checkpoints.
    """
    order = {"console": 0, "trainer state": 2}.get(source.format, 1)
    return not source.origin, order, -source.rank, source.path


_NAMED = 8
"""Most runs named in a sentence."""


def find_run(runs: Sequence[Run], word: str | None, said: Iterable[str] = ()) -> Run:
    """Return the run that a word names: in full, by one of its paths, or by a part of its name;
    without a word the only one.

    Args:
        runs: All there are.
        word: As it was typed.
        said: Why there may be none.

    Raises:
        NothingError: There is none.
        UsageError: None is meant, or more than one.
    """
    if not runs:
        raise NothingError("; ".join(said) or "no run found")
    found = runs if word is None else all_meant(runs, word)
    if len(found) == 1:
        return found[0]
    if word is None:
        raise UsageError(f"{len(found)} runs: {_names(found)}; name one with --run")
    raise UsageError(f"{word} may be {_names(found)}: name one of them in full")


def all_meant(runs: Sequence[Run], word: str) -> list[Run]:
    """Return the runs that a word names, several if it is a directory of runs or a part of their
    names.

    Raises:
        UsageError: None is meant.
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
    raise UsageError(f"{word} is none of the runs: {known}")


def _is_below(path: str, word: str) -> bool:
    """Return whether a source is the file or lies in the directory that a word names."""
    try:
        return Path(path).resolve().is_relative_to(Path(word).resolve())
    except (OSError, ValueError, RuntimeError):
        return False


def _names(runs: Sequence[Run]) -> str:
    return few((one_line(run.name) for run in runs), _NAMED)

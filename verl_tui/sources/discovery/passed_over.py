"""What below a named path is passed over and deserves a word: nothing may vanish, and nobody wants
to hear of code.

A file is told where it is called as hardly anything but a log is and nobody understands it, or
where it may not be read; a folder where it lies beside runs, looks like one and holds no log.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.sources.discovery.naming import says_nothing
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

_MOST_NAMED = 3
"""Files named in one sentence."""
_DATA = re.compile(
    r"data|datasets?|corpus|corpora|prompts|benchmarks?|eval_data|test_data", re.IGNORECASE
)
"""Folders of lines of JSON that are no log."""
_SPLITS = re.compile(
    r"(?:.*[._-])?(?:train|test|val|valid|validation|dev|eval|dataset|prompts)\d*\.jsonl",
    re.IGNORECASE,
)
_DIGITS = re.compile(r"\d+")

UNKNOWN = "of no known format"
UNSURE = "holds no step, unlike the log beside it"
NO_STEP = "has no step so far, and no log beside it is said to be of it"
NO_LOG = "no log in it"


class PassedOver(NamedTuple):
    """A file or a folder from which nothing is shown."""

    path: str
    reason: str


def is_data(path: Path, top: Path) -> bool:
    """Tell whether lines of JSON are a data set, as far as names tell."""
    below = path.relative_to(top).parts[:-1] if top in path.parents else ()
    return path.suffix == ".jsonl" and (
        any(map(_DATA.fullmatch, below)) or bool(_SPLITS.fullmatch(path.name))
    )


def folders(
    walked: Mapping[Path, bool], runs: Collection[Path], logs: Iterable[Path], top: Path
) -> Iterator[Path]:
    """Yield the folders beside runs that look like one and hold no log.

    Args:
        walked: The directories looked at, and whether each holds what only a training leaves.
        runs: Directories of the runs found; what lies below one belongs to it.
        logs: Files of these runs.
        top: What the user named.
    """
    if not runs or top in runs:
        return
    known = {above for log in logs for above in log.parents}
    left = {path for path, tells in walked.items() if tells}
    left |= {above for path in left for above in path.parents}
    shapes: dict[Path, set[str]] = defaultdict(set)
    for path in known:
        shapes[path.parent].add(_shape(path))
    told: set[Path] = set()
    for path in sorted(walked, key=lambda path: len(path.parts)):
        if (
            path == top
            or path in known
            or any(above in runs or above in told for above in (path, *path.parents))
        ):
            continue
        if path.parent in known and (
            (path in left and not says_nothing(path.name)) or _shape(path) in shapes[path.parent]
        ):
            told.add(path)
            yield path


def shape(path: Path) -> str:
    """Return a file's path without the numbers in its name: `job-7.out` and `job-12.out` are called
    alike.
    """
    return f"{path.parent}/{_DIGITS.sub('#', path.name)}"


def _shape(path: Path) -> str:
    """Return a name without its numbers: `run_7` and `run_12` are called alike."""
    shape = _DIGITS.sub("#", path.name)
    return shape if shape != path.name else path.name + "/"


def sentences(passed: Iterable[PassedOver]) -> Iterator[str]:
    """Yield what is passed over, a sentence for each reason."""
    by_reason: dict[str, list[str]] = defaultdict(list)
    for path, reason in passed:
        by_reason[reason].append(path)
    for reason in sorted(by_reason):
        yield f"{some(sorted(by_reason[reason]))}: {reason}"


def some(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    more = len(names) - _MOST_NAMED
    return ", ".join(map(one_line, names[:_MOST_NAMED])) + (f" and {more} more" if more > 0 else "")

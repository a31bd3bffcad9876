"""Report the files and folders that are not shown though they may be logs.

A file is reported if it has the name of a log and no known format, or must not be read; a folder
if it lies beside runs, looks like one and holds no log.
"""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.patterns import pattern
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from collections.abc import Set as AbstractSet
    from pathlib import Path

    from verl_tui.sources.discovery.found import Folder

_MOST_NAMED = 3
"""Files named in one sentence."""
_DATA = pattern(
    r"data|datasets?|corpus|corpora|prompts|benchmarks?|eval_data|test_data",
    re.IGNORECASE,
)
"""Folders of JSONL files that are no logs."""
_SPLITS = pattern(
    r"(?:.*[._-])?(?:train|test|val|valid|validation|dev|eval|dataset|prompts)\d*\.jsonl",
    re.IGNORECASE,
)
_DIGITS = pattern(r"\d+")

EMPTY = "empty so far"
UNKNOWN = "of no known format"
UNSURE = "holds no step, unlike the log beside it"
NO_STEP = "has no step so far: shown from its first one on"
NO_LOG = "no log in it"


class PassedOver(NamedTuple):
    """A file or a folder from which nothing is shown."""

    path: str
    reason: str


def is_data(path: Path, top: Path) -> bool:
    """True if a JSONL file is a data set by its name."""
    below = path.relative_to(top).parts[:-1]
    named = any(map(_DATA.fullmatch, below)) or _SPLITS.fullmatch(path.name)
    return path.suffix == ".jsonl" and bool(named)


def folders(
    walked: AbstractSet[Path], runs: Iterable[Folder], top: Path
) -> Iterator[Path]:
    """Yield the folders beside runs that look like one and hold no log.

    Args:
        walked: The directories read.
        runs: The runs found; what lies below one belongs to it.
        top: Path that the user named.
    """
    found = [run for run in runs if run.anchors]
    covered = {run.directory for run in found}
    if not covered or top in covered:
        return
    known = _places(found)
    shapes = set(map(shape, known))
    for path in sorted(walked - known - {top}):
        beside = path.parent in known and covered.isdisjoint((path, *path.parents))
        if beside and shape(path) in shapes:
            covered.add(path)
            yield path


def _places(runs: Iterable[Folder]) -> set[Path]:
    """Return all folders around the files of runs but settings."""
    files = chain.from_iterable(run.files for run in runs)
    return {place for file in files if file.format for place in file.path.parents}


def shape(path: Path) -> str:
    """Return a path without the numbers in its name: `job-7.out` is like `job-12.out`."""
    return f"{path.parent}/{_DIGITS.sub('#', path.name)}"


def sentences(passed: Iterable[PassedOver]) -> Iterator[str]:
    """Yield a sentence for each reason, with the paths."""
    by_reason: dict[str, list[str]] = defaultdict(list)
    for path, reason in passed:
        by_reason[reason].append(path)
    for reason in sorted(by_reason):
        yield f"{some(sorted(by_reason[reason]))}: {reason}"


def some(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    more = len(names) - _MOST_NAMED
    return ", ".join(map(one_line, names[:_MOST_NAMED])) + (
        f" and {more} more" if more > 0 else ""
    )

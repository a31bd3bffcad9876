"""Report the files that are not shown though they may be logs: those that have the name of a log
and no known format, or must not be read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from verl_tui.means import gathered
from verl_tui.patterns import pattern
from verl_tui.text import one_line

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


class PassedOver(NamedTuple):
    """A file from which nothing is shown."""

    path: str
    reason: str


def is_data(path: Path, top: Path) -> bool:
    """True if a JSONL file is a data set by its name."""
    below = path.relative_to(top).parts[:-1]
    named = any(map(_DATA.fullmatch, below)) or _SPLITS.fullmatch(path.name)
    return path.suffix == ".jsonl" and bool(named)


def shape(path: Path) -> str:
    """Return a path without the numbers in its name: `job-7.out` is like `job-12.out`."""
    return f"{path.parent}/{_DIGITS.sub('#', path.name)}"


def sentences(passed: Iterable[PassedOver]) -> Iterator[str]:
    """Yield a sentence for each reason, with the paths."""
    by_reason = gathered((reason, path) for path, reason in passed)
    for reason in sorted(by_reason):
        yield f"{some(sorted(by_reason[reason]))}: {reason}"


def some(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    more = len(names) - _MOST_NAMED
    return ", ".join(map(one_line, names[:_MOST_NAMED])) + (
        f" and {more} more" if more > 0 else ""
    )

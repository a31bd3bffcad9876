"""Write logs of every format in pieces, follow them, and say which of their points are lost, wrong
or said twice.

    python tests/fuzz/appends.py --appends 1000000    logs until there are so many pieces
    python tests/fuzz/appends.py --seed 17            one log that was reported

Pieces end anywhere, also within a character or a line's end. Between them logs are emptied, as they
are when a training resumes, rotated, and replaced by copies of themselves.
"""

from __future__ import annotations

import argparse
import sys
import time
from itertools import count
from multiprocessing import Pool
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fuzz.following import Result

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[2]), str(HERE.parents[1])]

_AT_ONCE = 100
"""Logs between two looks at whether there are enough."""


def played(seed: int) -> Result:
    """Return what became of the log of a seed."""
    from fuzz.following import followed

    with TemporaryDirectory() as folder:
        return followed(Random(seed), Path(folder))


def main() -> int:
    """Write as many as the command line says; return 1 if a point is not as it was written."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--appends", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seed", type=int, help="the log of this seed only")
    args = parser.parse_args()
    from fuzz.following import Result

    began, kinds = time.monotonic(), {}
    together = Result("together")
    with Pool(args.jobs) as pool:
        for seeds in _seeds(args):
            for seed, result in zip(seeds, pool.imap(played, seeds), strict=True):
                if result.broken:
                    print(f"--seed {seed}: {result.in_words()}", flush=True)
                kinds[result.kind] = kinds.get(result.kind, Result(result.kind)).and_of(
                    result
                )
                together = together.and_of(result)
            if together.appends >= args.appends:
                break
    for one in (*(kinds[kind] for kind in sorted(kinds)), together):
        print(one.in_words())
    print(f"{time.monotonic() - began:.0f} s")
    return 1 if together.broken else 0


def _seeds(args: argparse.Namespace) -> Iterator[range]:
    """Yield the seeds that are asked for, some at a time."""
    if args.seed is not None:
        yield range(args.seed, args.seed + 1)
        return
    for first in count(args.first, _AT_ONCE):
        yield range(first, first + _AT_ONCE)


if __name__ == "__main__":
    sys.exit(main())

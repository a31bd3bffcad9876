"""Read damaged logs of every format, many of them, each as it grows and at once.

python tests/fuzz/read.py --cases 100000 --jobs 2    cases of the seeds 0 to 99,999
python tests/fuzz/read.py --seed 4711                one case that was reported
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections import Counter
from multiprocessing import Pool
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[2]), str(HERE.parents[1])]


def played(seed: int) -> tuple[int, str, str | None]:
    """Return a seed, the name of its file, and what broke, None if nothing did."""
    from fuzz.damaged import case
    from fuzz.reading_twice import difference

    one = case(Random(seed))
    with TemporaryDirectory() as directory:
        try:
            wrong = difference(one, Path(directory), named=seed % 4 == 0)
        except Exception:  # noqa: BLE001 - any is a finding
            wrong = traceback.format_exc()
    return seed, one.name, wrong


def main() -> int:
    """Read as many as the command line says; return 1 if anything broke."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seed", type=int, help="read the case of this seed only")
    args = parser.parse_args()
    seeds = range(args.first, args.first + args.cases)
    if args.seed is not None:
        seeds = range(args.seed, args.seed + 1)
    began = time.monotonic()
    read: Counter[str] = Counter()
    broken: Counter[str] = Counter()
    with Pool(args.jobs) as pool:
        for seed, name, wrong in pool.imap_unordered(played, seeds, chunksize=20):
            read[name] += 1
            if wrong is not None:
                broken[name] += 1
                print(f"--seed {seed} ({name}): {wrong}", flush=True)
    for name in sorted(read):
        print(f"{name:44} {read[name]:8,} cases {broken[name]:6,} broken")
    print(
        f"{read.total():,} cases, {broken.total():,} broken, {time.monotonic() - began:.0f} s"
    )
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())

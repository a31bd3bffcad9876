"""Look for files that lead the readers where no file before has led them, and keep these.

    python tests/fuzz/guided.py --seconds 600           look for faults; the corpus stays as it is
    python tests/fuzz/guided.py --seconds 600 --keep    and keep the new files, the fewest that do

Each file is read as it grows and at once, as by `read.py`; it is kept where it goes a way from line
to line of `verl_tui/sources` that none has gone. What breaks is written below `--broken`.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from fuzz.reached import Way

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[2]), str(HERE.parents[1])]

_TRIES = 16
"""Smaller files that are tried for each that is kept."""
_NEWEST = 8
"""Files of a name of which every second change is made: what is new leads on."""


class Entry(NamedTuple):
    """A file and the ways it goes."""

    name: str
    data: bytes
    ways: frozenset[Way]


class Search:
    """Files that go different ways, and what broke."""

    def __init__(self, seed: int, broken: Path) -> None:
        """Take the files that are kept, and an example of each format."""
        from fuzz.damaged import EXAMPLES
        from fuzz.kept import kept
        from fuzz.mutations import Mutator
        from fuzz.reached import words

        self._random = Random(seed)
        self._folder = broken
        self.seen: set[Way] = set()
        self.read = 0
        self.broken: dict[str, int] = {}
        """By its last words: how often something broke."""
        self.entries: dict[str, list[Entry]] = {name: [] for name in EXAMPLES}
        for name, data in (*EXAMPLES.items(), *kept()):
            self.take(name, data)
        known = words()
        self._mutators = {name: Mutator(name, known, self._random) for name in EXAMPLES}

    def ways(self, name: str, data: bytes) -> frozenset[Way]:
        """Read a file, and return the ways it goes; none where it breaks."""
        from fuzz.kept import case_of
        from fuzz.reached import Reached
        from fuzz.reading_twice import difference

        self.read += 1
        reached = Reached()
        with TemporaryDirectory() as folder:
            try:
                wrong = difference(case_of(name, data), Path(folder), following=reached)
            except Exception:  # noqa: BLE001 - any is a finding
                wrong = traceback.format_exc()
        if wrong is not None:
            self._note(name, data, wrong)
            return frozenset()
        return frozenset(reached.ways)

    def _note(self, name: str, data: bytes, wrong: str) -> None:
        last = f"{name}: {wrong.strip().splitlines()[-1][:60]}"
        self.broken[last] = self.broken.get(last, 0) + 1
        if self.broken[last] == 1:
            path = self._folder / f"{len(self.broken)}" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            print(f"{path}: {wrong}", flush=True)

    def take(self, name: str, data: bytes) -> None:
        """Read a file; take it where it goes a way that none has gone, or is the first one."""
        ways = self.ways(name, data)
        if not ways <= self.seen or not self.entries[name]:
            self.seen |= ways
            self.entries[name].append(Entry(name, data, ways))

    def go_on(self) -> None:
        """Change a file of each name, and read it."""
        for name, known in self.entries.items():
            pool = known[-_NEWEST:] if self._random.random() < 0.5 else known
            one = self._random.choice(pool)
            self.take(
                name,
                self._mutators[name].changed(one.data, [each.data for each in known]),
            )

    def fewest(self) -> list[tuple[str, bytes]]:
        """Return few small files that go all ways together."""
        left = [entry for several in self.entries.values() for entry in several]
        missing = set(self.seen)
        found = []
        while missing:
            best = max(
                left, key=lambda entry: (len(entry.ways & missing), -len(entry.data))
            )
            found.append(self._smaller(best, frozenset(best.ways & missing)))
            missing -= found[-1].ways
            left.remove(best)
        return [(entry.name, entry.data) for entry in found]

    def _smaller(self, entry: Entry, needed: frozenset[Way]) -> Entry:
        """Leave out parts of a file as long as it goes the ways that it is kept for."""
        from fuzz.parts_of_files import apart, together

        try:
            parts = apart(entry.name, entry.data)
        except ValueError:
            return entry
        size, tries = max(1, len(parts) // 2), _TRIES
        at = 0
        while size and tries and len(parts) > 1:
            rest = parts[:at] + parts[at + size :]
            data, tries = together(entry.name, rest), tries - 1
            ways = self.ways(entry.name, data)
            if needed <= ways:
                parts, entry = rest, Entry(entry.name, data, ways)
            else:
                at += size
            if at >= len(parts):
                at, size = 0, size // 2
        return entry


def main() -> int:
    """Search for as long as the command line says; return 1 if anything broke."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", action="store_true", help="write the corpus anew")
    parser.add_argument(
        "--broken", type=Path, default=Path("broken"), help="for what breaks"
    )
    args = parser.parse_args()
    from fuzz.kept import keep

    began = time.monotonic()
    search = Search(args.seed, args.broken)
    before = len(search.seen)
    while time.monotonic() - began < args.seconds:
        search.go_on()
    read = search.read
    if args.keep:
        keep(search.fewest())
    print(
        f"{read:,} files, {len(search.seen):,} ways, {len(search.seen) - before:,} of them new,"
        f" {sum(search.broken.values()):,} broken in {len(search.broken)} ways,"
        f" {time.monotonic() - began:.0f} s"
    )
    return 1 if search.broken else 0


if __name__ == "__main__":
    sys.exit(main())

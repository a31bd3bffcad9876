"""Measures how fast verl-tui is, beside others that read the same logs, and prints one table.

Each part makes its own logs in a temporary folder and runs alone, one after the other. What is
compared is measured in turn, in alternating order, and the medians are held against each other: a
ratio says more about another machine than seconds do. All of it takes about ten minutes and 1.5 GB
of disk.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from measuring import Effort, Row
from parts import PARTS
from results import HEAD, as_line, load_words, machine, write

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from measuring import Part


def main(words: Sequence[str]) -> int:
    """Measure and print; return 1 where a part failed."""
    options = parser().parse_args(words)
    effort = Effort(options.small, options.wandb)
    parts = [one for one in PARTS if _wanted(one, options)]
    before, began = os.getloadavg()[0], time.monotonic()
    about = machine()
    print(f"{about}\n\n{HEAD}")
    rows, failed = [], 0
    for part in parts:
        print(f"{part.name} …", file=sys.stderr, flush=True)
        for row, good in measured(part, effort):
            failed += not good
            rows.append(as_line(row))
            print(rows[-1], flush=True)
    minutes = (time.monotonic() - began) / 60
    after = (
        f"{load_words(before, os.getloadavg()[0])} Measured in {minutes:.0f} minutes."
    )
    print(f"\n{after}")
    if options.write:
        write(options.write, "\n".join((f"{about}. {after}", "", HEAD, *rows)))
    return 1 if failed else 0


def measured(part: Part, effort: Effort) -> Iterator[tuple[Row, bool]]:
    """Yield the rows of a part, and whether each could be measured; an error costs only its
    part.
    """
    folder = Path(tempfile.mkdtemp(prefix="verl-tui-benchmark-"))
    try:
        for row in part.measure(folder, effort):
            yield row, True
    except Exception as error:  # noqa: BLE001 - the other parts are measured nevertheless
        print(error, file=sys.stderr)
        why = (str(error).strip().splitlines() or [""])[0].replace("|", "\\|")
        yield Row(part.name, f"failed: {type(error).__name__}: {why}"), False
    finally:
        shutil.rmtree(folder)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    found = argparse.ArgumentParser(
        "python tests/benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names = [part.name for part in PARTS]
    only = f"these parts: {', '.join(names)}"
    found.add_argument("--only", nargs="+", choices=names, metavar="NAME", help=only)
    small = "small logs, each measured once: a try, in a minute or two"
    found.add_argument("--small", action="store_true", help=small)
    large = ", ".join(part.name for part in PARTS if part.large)
    found.add_argument(
        "--large", action="store_true", help=f"with what takes minutes: {large}"
    )
    wandb = "the command wandb, for its LEET"
    found.add_argument(
        "--wandb", type=_command, default=_wandb(), metavar="PATH", help=wandb
    )
    found.add_argument(
        "--write", type=Path, metavar="FILE.md", help="write the table there, too"
    )
    return found


def _wanted(part: Part, options: argparse.Namespace) -> bool:
    if options.only:
        return part.name in options.only
    return options.large or not part.large


def _command(path: str) -> str:
    """Return the path of a command that is there."""
    found = shutil.which(path)
    if found is None:
        raise argparse.ArgumentTypeError(f"there is no command {path}")
    return found


def _wandb() -> str | None:
    """Return the command wandb of this Python, or else the one in PATH."""
    beside = Path(sys.executable).with_name("wandb")
    return str(beside) if beside.exists() else shutil.which("wandb")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

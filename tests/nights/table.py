"""Plays the nights and prints the table of `README.md`.

python tests/nights/table.py [NAME...]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from nights.playing import Log, played
from nights.programme import NIGHTS, Night

if TYPE_CHECKING:
    from nights.supervisor import Deed

HEAD = (
    "| night | what is wrong | first evidence at | first answer | then | also said |",
    "|---|---|---:|---|---|---|",
)


def row(name: str, night: Night, log: Log) -> str:
    """Return a line of the table."""
    why = dict.fromkeys(f"`{deed.why}`" for _, deed in log.deeds)
    if not night.wrong:
        return f"| {name} | – | – | – | – | {', '.join(why) or '–'} |"
    first = "–" if log.shown is None else f"{(log.shown - log.start) / 60:.1f} min"
    answer = log.answer(night.named)
    said = _said(answer, log.shown)
    final = _said(log.answer(night.named, night.answer), log.shown)
    why.pop("" if answer is None else f"`{answer[1].why}`", None)
    last = "–" if final == said else final
    return f"| {name} | {night.wrong} | {first} | {said} | {last} | {', '.join(why) or '–'} |"


def _said(answer: tuple[float, Deed] | None, shown: float | None) -> str:
    if answer is None:
        return "not at all"
    at, deed = answer
    after = -1 if shown is None else round(at - shown)
    when = f"{after} s after it" if after >= 0 else "before it"
    return f"{deed.what} for `{deed.why}`, {when}"


def main(names: list[str]) -> None:
    """Print the table, or some of its lines."""
    print("\n".join(HEAD))
    for name in names or NIGHTS:
        night = NIGHTS[name]
        with tempfile.TemporaryDirectory() as scratch:
            log = played(night.play, Path(scratch) / "run", night.fault)
        print(row(name, night, log), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

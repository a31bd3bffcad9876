"""Measures how judging does on planted failures and on healthy runs; as a script, prints the
table of planted failures in `README.md` beside this file.

python tests/scenarios/measure.py [SEEDS [FIRST]]

That table is of seeds from 1000 on, which no rule was tuned on.
"""

from __future__ import annotations

import random
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from scenarios.failures import FAILURES, Failure, planted
from scenarios.healthy import HEALTHY
from scenarios.worlds import FORMS, NOW, World, write

from verl_tui.config import Config
from verl_tui.health.finding import Severity
from verl_tui.health.guide_settings import load_guide
from verl_tui.monitor import load

if TYPE_CHECKING:
    from verl_tui.health.finding import Episode, Verdict


class Result(NamedTuple):
    """What came of one planted failure."""

    id: str
    dialect: str
    seed: int
    onset: int
    raised: int | None
    """Step at which it was reported; None where it was not."""
    early: bool
    """Whether it was reported before it began: a false alarm."""
    others: frozenset[str]
    """Other warnings and criticals."""

    @property
    def delay(self) -> int | None:
        """Steps from the onset until it was reported."""
        return None if self.raised is None else self.raised - self.onset


def judged(world: World, form: str, directory: Path) -> Verdict:
    """Return the verdict on a world written to disk and read back."""
    path = write(world, directory, form)
    with ExitStack() as held:  # as whoever trains holds them
        for file in (path, *path.rglob("*")):
            if file.is_file():
                held.enter_context(file.open("ab"))
        monitor = load([str(path)], Config(), NOW)
    (verdict,) = monitor.verdicts.values()
    return verdict


def measure(failure: Failure, dialect: str, seed: int, directory: Path) -> Result:
    """Plant a failure and see when it is reported."""
    world, onset = planted(failure, dialect, seed)
    form = failure.form or FORMS[dialect][seed % len(FORMS[dialect])]
    history = judged(world, form, directory).history
    raised = sorted(_step(one) for one in history if one.id == failure.id)
    late = [step for step in raised if step >= onset]
    bad = frozenset(one.id for one in history if one.severity > Severity.INFO) - {
        failure.id
    }
    found, early = late[0] if late else None, len(late) < len(raised)
    return Result(failure.id, dialect, seed, onset, found, early, bad)


def _step(episode: Episode) -> int:
    return episode.raised_step if episode.raised_step is not None else 0


def alarms(name: str, seed: int, directory: Path) -> tuple[int, list[Episode]]:
    """Return the length of a healthy run in steps, and all warnings and criticals that it ever
    got.
    """
    world = HEALTHY[name](random.Random(f"{name} {seed}"))
    form = FORMS[world.dialect][seed % len(FORMS[world.dialect])]
    verdict = judged(world, form, directory)
    return world.steps, [one for one in verdict.history if one.severity > Severity.INFO]


_AT_THE_END = (
    *("crash", "hang", "host-memory", "weights-not-synced", "worker-errors"),
    *("disk-filling", "ended-early", "one-phase", "resume-lost"),
)
"""They speak of the present only: from a log read at once, no delay in steps can be measured."""


def main(count: int, first: int) -> None:
    """Print the table for so many seeds from the first one on."""
    seeds = range(first, first + count)
    with tempfile.TemporaryDirectory() as scratch:
        results = [
            measure(failure, dialect, seed, Path(scratch) / f"{i}-{dialect}-{seed}")
            for i, failure in enumerate(FAILURES)
            for dialect in failure.dialects
            for seed in seeds
        ]
        quiet = [
            (name, seed, *alarms(name, seed, Path(scratch) / f"healthy-{i}-{seed}"))
            for i, name in enumerate(HEALTHY)
            for seed in seeds
        ]
    print("| finding | logs | planted | found | early | median delay | 90% within |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for id in dict.fromkeys(rule.id for rule in load_guide().rules):
        if own := [one for one in results if one.id == id]:
            print(_row(id, own))
    steps = sum(length for _, _, length, _ in quiet)
    found = [(name, seed, one) for name, seed, _, ones in quiet for one in ones]
    critical = sum(one.severity is Severity.CRITICAL for _, _, one in found)
    print(
        f"\n{len(quiet)} healthy runs of {len(HEALTHY)} kinds, {steps:,} steps: {len(found) - critical} warnings, "
        f"{critical} criticals."
    )
    for name, seed, one in found:
        print(f"  {name} {seed}: {one}", file=sys.stderr)
    for one in results:
        if one.raised is None or one.early:
            print(f"  {one}", file=sys.stderr)


def _row(id: str, own: list[Result]) -> str:
    found = sum(one.raised is not None for one in own)
    known = [] if id in _AT_THE_END else [one.delay for one in own]
    delays = sorted(one for one in known if one is not None)
    dialects = ", ".join(dict.fromkeys(one.dialect for one in own))
    middle = f"{median(delays):.0f}" if delays else "–"
    most = str(delays[min(len(delays) - 1, int(0.9 * len(delays)))]) if delays else "–"
    early = sum(one.early for one in own)
    figures = (len(own), found, early, middle, most)
    return f"| `{id}` | {dialects} | {' | '.join(map(str, figures))} |"


if __name__ == "__main__":
    words = [int(word) for word in sys.argv[1:]]
    main(words[0] if words else 10, words[1] if len(words) > 1 else 1000)

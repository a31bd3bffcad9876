"""Where the hours of a run went."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from verl_tui.answers.run_reading import NothingError
from verl_tui.health.judge import Judge
from verl_tui.ledger import in_words, ledger, listed
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from verl_tui.answers.run_reading import Reading
    from verl_tui.health.guide import Guide


def ledger_of(reading: Reading, guide: Guide, now: float) -> dict[str, Any]:
    """Return where the hours of a run went.

    Args:
        reading: The run, all of it read.
        guide: The rules in force.
        now: Seconds since the epoch.

    Raises:
        NothingError: Nothing tells how long its steps took.
    """
    run = reading.run
    found = ledger(run, Judge(guide, run).verdict(now), guide, now)
    if found is None:
        why = "nothing tells how long its steps took" if run.step else "no step so far"
        raise NothingError(f"{one_line(run.name)}: {why}")
    return {**reading.part, **found}


def ledger_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield the answer as lines of text, the columns of the table separated by tabs."""
    first, *more = in_words(found)
    yield f"{one_line(found['run'])}: {first}"
    for _, cells in listed(found):
        yield "\t".join(one_line(cell, 300) for cell in cells)
    yield from more

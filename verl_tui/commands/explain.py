"""`verl-tui explain`: why a run is as its verdict says."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from verl_tui.commands.get import answered
from verl_tui.text import one_line

if TYPE_CHECKING:
    from verl_tui.answers.run_reading import Reading
    from verl_tui.commands.shared import Options
    from verl_tui.plain_data import Data

HELP = """
Why a run broke: what moved first, what shows it, what to change.

--run NAME  which of several runs
| --md  write Markdown, for an issue: keys, passwords and home directories are hidden
| --json  write one JSON object on one line
PATH...  directory, log, quoted glob or address of a run, or -
--config FILE

for example:
    verl-tui explain logs/run_7
    verl-tui explain logs/run_7 --md

exit codes: 0 done, 3 nothing readable
"""


def run(options: Options) -> int:
    """Write the explanation; return the exit code."""
    from verl_tui.explain import explain

    def answer(reading: Reading) -> Data:
        return explain(reading.run, reading.verdict, reading.guide, reading.now)

    return answered(options, answer, partial(_lines, md=options.md), judges=True)


def _lines(found: Data, *, md: bool) -> Iterator[str]:
    """Yield the explanation as text, or as Markdown."""
    from verl_tui.explain import in_words

    if md:
        from verl_tui.report.status import markdown_block

        yield from markdown_block(found["run"], in_words(found))
        return
    yield one_line(found["run"])
    rows = ((label, one_line(text, 2000)) for label, text in in_words(found) if text)
    yield from (f"  {label:<10} {text}" for label, text in rows)

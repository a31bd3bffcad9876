"""`verl-tui get log`: lines of a run's log."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from verl_tui.commands import answering
from verl_tui.commands.answering import write_answer
from verl_tui.commands.arguments import CommandError
from verl_tui.commands.options import paths_of
from verl_tui.commands.output import print_message, print_messages

if TYPE_CHECKING:
    import argparse

    from verl_tui.answers.log import LogPlace
    from verl_tui.answers.run_reading import Reading

HELP = "lines of the log: the last, around a step or the error, or those that match"
EXAMPLES = (
    "verl-tui get log logs/run_7 --last 50",
    "verl-tui get log logs/run_7 --around 120",
    "verl-tui get log logs/run_7 --grep 'CUDA|NCCL' --json",
)
EXITS = answering.CODES
_LINES = 20
OPTIONS = f"""
--last N         at most N lines ({_LINES}, if not given)
| --around STEP  around the line of a step
| --error        around the error that ended the run
| --grep REGEX   the last lines that match a regular expression; case matters only if it has a
                 capital
--full           lines in full, up to 16 KiB
--mask           hide keys, tokens, passwords, homes and names, as a bundle does; look through it
                 still
{answering.OPTIONS}"""
EPILOG = f"""{answering.FIELDS}\
  path        the log: the run's console, or another log as text where it has none
  size        its size in bytes
  more_before, more_after
              true if the log, or the search, has more lines before or after these
  gave_up     true if --grep gave lines up that took too long to search
  lines       list of {{"byte": where the line begins, "text"}}, with "length" in characters if the
              text is cut (to 1000, unless --full), and "mark": true for the line of the step or
              error

Of a progress bar only its last state is given. Escape sequences are removed. Without --last,
--around, --error or --grep: around the error if the run has crashed, else the last lines. Only
as much is read as the lines take; a search goes from the end to the beginning.\
{answering.REFUSED}"""


def run(options: argparse.Namespace) -> int:
    """Write the answer; return the exit code."""
    from verl_tui.answers.log import LONG, log_lines, log_of
    from verl_tui.answers.run_reading import glance
    from verl_tui.secrets import own_mask

    now = time.time()
    with answering.answering():
        reading = glance(paths_of(options), options.run, now, least=LONG)
        print_messages(reading.sentences)
        found = log_of(
            reading,
            options.last or _LINES,
            _place(options, reading, now),
            full=options.full,
            mask=own_mask() if options.mask else None,
        )
    if found["gave_up"]:
        print_message(
            f"--grep {options.grep}: some lines took too long to search, and were left out"
        )
    write_answer(found, log_lines(found), options)
    return 0


def _place(options: argparse.Namespace, reading: Reading, now: float) -> LogPlace:
    from verl_tui.answers.log import LogPlace
    from verl_tui.rendering.text.search import Search
    from verl_tui.runs.views.state import State, state

    if options.grep is not None:
        try:
            return LogPlace(grep=Search(options.grep))
        except ValueError as error:
            raise CommandError(f"--grep: {error}") from error
    if options.error and reading.run.outcome is None:
        raise CommandError(f"--error: no error has ended {reading.run.name}")
    unasked = options.around is None and options.last is None
    crashed = unasked and state(reading.run, now) is State.CRASHED
    return LogPlace(step=options.around, error=options.error or crashed)

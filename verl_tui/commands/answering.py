"""Options and output that all answers of `verl-tui get` share."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from verl_tui.commands.arguments import CommandError
from verl_tui.commands.options import paths_of
from verl_tui.commands.output import EXIT_NOTHING, print_messages

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from verl_tui.answers.run_reading import AnswerT, Reading

VERSION = 1
"""Version of the answers: grows when a field is removed or changes its meaning."""
CODES = "0 answered, 3 nothing readable or nothing of this kind in the run so far"
OPTIONS = """
--run NAME  which of several runs
--json  write one JSON object on one line
PATH...  directory, log, quoted glob or address of a run
"""
WHOLE = """
--whole  read long logs in full, not just as much of the end as the answer needs
"""
FIELDS = """fields of the JSON object, on one line:
  version     1; grows when a field changes its meaning or goes
  run, run_id name of the run, and its id, which stays when the name changes
"""
READ = f"""{FIELDS}  read        "whole", or "end" if only the end of a long log was read
  bytes_read  bytes of logs that were read for it
"""
REFUSED = """

Several runs and no --run, and no such run, metric or step, are wrong usage (64); a metric or step \
that is known and still to come is not (3)."""


@contextmanager
def answering() -> Iterator[None]:
    """Turn errors that prevent an answer into a sentence and an exit code."""
    from verl_tui.answers.run_reading import NothingError, RunError

    try:
        yield
    except RunError as error:
        raise CommandError(str(error)) from error
    except NothingError as error:
        raise CommandError(str(error), EXIT_NOTHING) from error


def report_missing(reading: Reading) -> None:
    """Write to standard error what was skipped or is missing; refuse a run without a record.

    Raises:
        CommandError: Nothing of the run is readable.
    """
    print_messages(reading.sentences)
    run = reading.run
    if not any(source.status.records for source in run.sources.values()):
        raise CommandError(f"nothing readable so far in {run.name}", EXIT_NOTHING)


def read_whole_run(
    options: argparse.Namespace, now: float, *, alive: bool = False
) -> Reading:
    """Return the run that is asked for, read in full, and report what is missing."""
    from verl_tui.answers.run_reading import read_whole

    with answering():
        reading = read_whole(paths_of(options), options.run, now, alive=alive)
    report_missing(reading)
    return reading


def read_answer(
    options: argparse.Namespace,
    now: float,
    answer: Callable[[Reading], AnswerT | None],
    *,
    least: int,
    alive: bool = False,
) -> AnswerT:
    """Return an answer and report what is missing for it; see `from_end`."""
    from verl_tui.answers.run_reading import FIRST, from_end

    def reported(reading: Reading) -> AnswerT | None:
        if reading.whole:
            report_missing(reading)
        found = answer(reading)
        if found is not None and not reading.whole:
            report_missing(reading)
        return found

    paths, name = paths_of(options), options.run
    first = None if options.whole else FIRST
    with answering():
        return from_end(
            paths, name, now, reported, least=least, first=first, alive=alive
        )


def write_answer(
    found: Mapping[str, Any], lines: Iterable[str], options: argparse.Namespace
) -> None:
    """Write an answer to standard output as JSON, or as lines of text."""
    if options.json:
        import json

        lines = [json.dumps({"version": VERSION, **found}, allow_nan=False)]
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()

"""`verl-tui get runs`: the names of the runs behind paths."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.commands.answering import CODES, write_answer
from verl_tui.commands.arguments import CommandError
from verl_tui.commands.options import paths_of
from verl_tui.commands.output import EXIT_NOTHING, print_messages
from verl_tui.text import one_line

if TYPE_CHECKING:
    import argparse

HELP = "names of the runs behind paths, for --run; no log is read"
EXAMPLES = ("verl-tui get runs logs", "verl-tui get state logs --run run_7")
EXITS = CODES
OPTIONS = """
--json   write one JSON object on one line
PATH...  directory, log, quoted glob or address
"""
EPILOG = """fields of the JSON object, on one line:
  version     1; grows when a field changes its meaning or goes
  runs        list of names, in the order in which they were found"""


def run(options: argparse.Namespace) -> int:
    """Write the names; return the exit code."""
    from verl_tui.answers.run_reading import run_names

    found, sentences = run_names(paths_of(options))
    print_messages(sentences)
    if not found:
        raise CommandError("no run found", EXIT_NOTHING)
    write_answer({"runs": list(found)}, map(one_line, found), options)
    return 0

"""`verl-tui get samples`: prompts and responses."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from verl_tui.commands.answering import (
    CODES,
    READ,
    answer_options,
    read_answer,
    whole_option,
    write_answer,
)
from verl_tui.commands.arguments import count, step

if TYPE_CHECKING:
    import argparse

    from verl_tui.commands.arguments import CommandParser

NAME = "samples"
HELP = "prompts and responses: the newest, those of a step, the best and the worst by score"
EXAMPLES = (
    "verl-tui get samples logs/run_7 --worst 5",
    "verl-tui get samples logs/run_7 --around 120 --best 1 --full",
    "verl-tui get samples logs/run_7 --last 10 --json | jq '.samples[].score'",
)
EXITS = CODES
_SAMPLES = 3
_FIELDS = f"""{READ}
  order       "last", "best" or "worst"
  step, validation
              whose samples these are; with "last" there may be samples of steps before
  total       number of samples of that step; if it is of validation, of its validation
  left_out    how many of these are not in the list
  samples     list of {{"step", "validation", "index": place in the step, "score": number or null,
              "prompt", "prompt_length", "response", "response_length", "ground_truth",
              "ground_truth_length", "extras": further fields}}; lengths in characters
Each text is cut to 500 characters, unless --full is given. Escape sequences are removed. A row
that cannot be read has "unreadable": true in place of its texts. Logs above 2 MiB are read from
their end, as far as the samples lie back, and refused if there are none in the last 16 MiB;
--whole looks for them in all of the log."""


def options(parser: CommandParser) -> None:
    """Add its options."""
    which = parser.add_mutually_exclusive_group()
    last = f"the last N samples (default: {_SAMPLES})"
    which.add_argument("--last", type=count, metavar="N", help=last)
    for name, of in (("best", "highest"), ("worst", "lowest")):
        help = f"the N samples with the {of} scores, of one step"
        which.add_argument(f"--{name}", type=count, metavar="N", help=help)
    around = "samples of the step nearest to this one (default: the newest step that has some)"
    parser.add_argument("--around", type=step, metavar="STEP", help=around)
    kind = parser.add_mutually_exclusive_group()
    for name, validation in (("training", False), ("validation", True)):
        kind.add_argument(
            f"--{name}",
            dest="validation",
            action="store_const",
            const=validation,
            help=f"samples of {name} only",
        )
    parser.flag("--full", help="texts in full")
    whole_option(parser)
    answer_options(parser, _FIELDS)


def run(options: argparse.Namespace) -> int:
    """Write the answer; return the exit code."""
    from verl_tui.answers.samples import LONG, samples_lines, samples_of

    answer = partial(
        samples_of,
        count=options.best or options.worst or options.last or _SAMPLES,
        order="best" if options.best else "worst" if options.worst else "last",
        around=options.around,
        validation=options.validation,
        full=options.full,
    )
    found = read_answer(options, time.time(), answer, least=LONG)
    write_answer(found, samples_lines(found), options)
    return 0

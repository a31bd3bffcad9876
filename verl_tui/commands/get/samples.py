"""`verl-tui get samples`: prompts and responses."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from verl_tui.commands import answering
from verl_tui.commands.answering import read_answer, write_answer

if TYPE_CHECKING:
    import argparse

HELP = "prompts and responses: the newest, those of a step, the best and the worst by score"
EXAMPLES = (
    "verl-tui get samples logs/run_7 --worst 5",
    "verl-tui get samples logs/run_7 --around 120 --best 1 --full",
    "verl-tui get samples logs/run_7 --last 10 --json | jq '.samples[].score'",
)
EXITS = answering.CODES
OPTIONS = f"""
| --last N     the last N samples (3, if none of these is given)
| --best N     the N samples with the highest scores, of one step
| --worst N    the N samples with the lowest scores, of one step
--around STEP  samples of the step nearest to this one (the newest step that has some, if not given)
| --training   samples of training only
| --validation  samples of validation only
--full         texts in full
{answering.WHOLE}{answering.OPTIONS}"""
EPILOG = f"""{answering.READ}\
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
their end, as far back as the samples lie, and refused if there are none in the last 16 MiB;
--whole looks for them in all of the log.{answering.REFUSED}"""


def run(options: argparse.Namespace) -> int:
    """Write the answer; return the exit code."""
    from verl_tui.answers.samples import LONG, samples_lines, samples_of

    only = options.training or options.validation
    answer = partial(
        samples_of,
        count=options.best or options.worst or options.last or 3,
        order="best" if options.best else "worst" if options.worst else "last",
        around=options.around,
        validation=options.validation if only else None,
        full=options.full,
    )
    found = read_answer(options, time.time(), answer, least=LONG)
    write_answer(found, samples_lines(found), options)
    return 0

"""`verl-tui get state`: how a run is, in one line."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from verl_tui.commands import answering
from verl_tui.commands.answering import read_answer, write_answer
from verl_tui.commands.options import CONFIG, configuration

if TYPE_CHECKING:
    import argparse

HELP = "state, step, time left, verdict and worst finding, in one line"
EXAMPLES = (
    "verl-tui get state logs/run_7",
    "verl-tui get state logs/run_7 --json | jq -r .verdict",
)
EXITS = answering.CODES
OPTIONS = answering.WHOLE + CONFIG + answering.OPTIONS
EPILOG = f"""{answering.READ}\
  state       waiting, running, stalled, finished, crashed, ended?, unknown, no training
  step        newest step, or null
  steps_estimated
              true where no source states the steps: they were counted or estimated
  total_steps, progress
              steps planned and the share of them that is done (0..1), or null
  remaining_s seconds from the newest record to the last step, or null
  last_record_age_s, last_record_by
              seconds since the newest record, and "record" or "file" for whose time that is
  verdict     "critical", "warning", "healthy", or null: too early to tell, or read is "end"
  finding     id of the worst finding, or null
  findings    number of findings, null if read is "end"
  phase       what the run is at, in words, or null

A log above 64 MiB is read from its end, and not judged; --whole reads and judges all of it.\
{answering.REFUSED}"""


def run(options: argparse.Namespace) -> int:
    """Write the answer; return the exit code."""
    from verl_tui.answers.state import LONG, state_line, state_of
    from verl_tui.health.guide_settings import load_guide

    now = time.time()
    guide = load_guide(configuration(options).guide)
    found = read_answer(
        options,
        now,
        lambda reading: state_of(reading, guide, now),
        least=LONG,
        alive=True,
    )
    write_answer(found, [state_line(found)], options)
    return 0

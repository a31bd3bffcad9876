"""`verl-tui get findings`: what is wrong with a run now."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from verl_tui.commands import answering
from verl_tui.commands.answering import read_whole_run, write_answer
from verl_tui.commands.options import CONFIG, configuration

if TYPE_CHECKING:
    import argparse

HELP = "findings of the health rules, the worst first; all of the log is read"
EXAMPLES = (
    "verl-tui get findings logs/run_7 --severity critical",
    "verl-tui get findings logs/run_7 --json | jq -r '.findings[].id'",
)
EXITS = answering.CODES
OPTIONS = f"""
--severity info|warning|critical  report findings of this severity or worse (default: info)
{CONFIG}{answering.OPTIONS}"""
EPILOG = f"""{answering.READ}\
  total       number of findings
  left_out    those below --severity
  not_judged  number of rules that gave no verdict
  findings    list of {{"id", "severity", "step", "since_step", "message", "evidence",
              "advice", "source", "consequence_of"}}, as in `check --json`\
{answering.REFUSED}"""


def run(options: argparse.Namespace) -> int:
    """Write the answer; return the exit code."""
    from verl_tui.answers.state import findings_lines, findings_of
    from verl_tui.health.guide_settings import load_guide

    now = time.time()
    guide = load_guide(configuration(options).guide)
    reading = read_whole_run(options, now, alive=True)
    found = findings_of(reading, guide, now, options.severity)
    write_answer(found, findings_lines(found), options)
    return 0

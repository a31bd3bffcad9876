"""`verl-tui get findings`: what is wrong with a run now."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from verl_tui.commands.answering import (
    CODES,
    READ,
    answer_options,
    answering,
    report_missing,
    run_paths,
    write_answer,
)
from verl_tui.commands.options import config_option, configuration

if TYPE_CHECKING:
    import argparse

    from verl_tui.commands.arguments import CommandParser

NAME = "findings"
HELP = "findings of the health rules, the worst first; all of the log is read"
EXAMPLES = (
    "verl-tui get findings logs/run_7 --severity critical",
    "verl-tui get findings logs/run_7 --json | jq -r '.findings[].id'",
)
EXITS = CODES
_FIELDS = f"""{READ}
  total       number of findings
  left_out    those below --severity
  not_judged  number of rules that gave no verdict
  findings    list of {{"id", "severity", "step", "since_step", "message", "evidence",
              "advice", "source", "consequence_of"}}, as in `check --json`"""


def options(parser: CommandParser) -> None:
    """Add its options."""
    severity = "report findings of this severity or worse (default: info)"
    levels = ("info", "warning", "critical")
    parser.add_argument("--severity", choices=levels, default="info", help=severity)
    config_option(parser)
    answer_options(parser, _FIELDS)


def run(options: argparse.Namespace) -> int:
    """Write the answer; return the exit code."""
    from verl_tui.answers.run_reading import read_whole
    from verl_tui.answers.state import findings_lines, findings_of
    from verl_tui.health.guide_settings import load_guide

    now = time.time()
    guide = load_guide(configuration(options).guide)
    with answering():
        reading = read_whole(run_paths(options), options.named, now, alive=True)
    report_missing(reading)
    found = findings_of(reading, guide, now, options.severity)
    write_answer(found, findings_lines(found), options)
    return 0

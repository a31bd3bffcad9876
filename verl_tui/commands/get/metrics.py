"""`verl-tui get metrics`: which metrics there are, or the values of one."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from verl_tui.commands import answering
from verl_tui.commands.answering import read_answer, read_whole_run, write_answer
from verl_tui.commands.arguments import CommandError
from verl_tui.commands.output import print_note

if TYPE_CHECKING:
    import argparse

    from verl_tui.answers.run_reading import Reading

HELP = "one line per metric; with --metric, the values of one"
EXAMPLES = (
    "verl-tui get metrics logs/run_7 --filter 'critic/*'",
    "verl-tui get metrics logs/run_7 --metric reward --last 5 --json",
    "verl-tui get metrics logs/run_7 --metric actor/ppo_kl --around 120",
    "verl-tui get metrics logs/run_7 --metric reward --plot",
)
EXITS = answering.CODES
_POINTS = 20
OPTIONS = f"""
--metric KEY...  the log's own key, or an indicator such as reward or policy_kl; may be repeated
--filter GLOB  only metrics whose key matches a quoted glob such as 'actor/*'
--last N       the last N points ({_POINTS} if not given, of a plot all); with --around, how many in
               all
--around STEP  the points around a step
--plot         with --metric, draw the points as a chart in text
{answering.WHOLE}{answering.OPTIONS}"""
EPILOG = f"""{answering.READ}\
  total       without --metric: number of metrics; with it: of its points, null if read is "end"
  left_out    how many of them are not in the list, null if that is not known
  steps_estimated
              true where no source states the steps: they were counted or estimated
without --metric, all of the log is read:
  metrics     list of {{"key", "indicator": id or null, "step", "value": the last one, "count",
              "min", "max"}}
with --metric:
  key, indicator
              the log's own key, and what it means in `check --json`, or null
  points      list of {{"step", "value", "time": seconds since the epoch or null}}, by step
with several --metric:
  metrics     list of {{"key", "indicator", "total", "left_out", "points"}}
A value that is not finite is null, with "finite": false beside it. Of a step that was logged
twice the newest value holds; steps from before a restart that lie ahead are not given.
Logs above 2 MiB are read from their end, as far back as the points lie. A metric that does not
occur in the last 16 MiB is refused; --whole looks for it in all of the log.{answering.REFUSED}"""


def run(options: argparse.Namespace) -> int:
    """Write the answer; return the exit code."""
    from verl_tui.answers.metrics import (
        metrics_lines,
        metrics_of,
        plot_lines,
        points_lines,
    )
    from verl_tui.runs.views.provenance import ESTIMATED

    now = time.time()
    _check(options)
    if options.metric is None:
        found = metrics_of(read_whole_run(options, now), options.filter)
        lines = metrics_lines(found)
    else:
        found = _points(options, now)
        lines = plot_lines(found) if options.plot else points_lines(found)
    if found["steps_estimated"] and not options.json:
        print_note(f"{found['run']}: {ESTIMATED}")
    write_answer(found, lines, options)
    return 0


def _check(options: argparse.Namespace) -> None:
    """Refuse options that contradict each other."""
    if options.metric is None:
        for name in ("plot", "around"):
            if getattr(options, name) not in (None, False):
                raise CommandError(f"--{name} needs the metric: --metric KEY")
    elif options.plot and options.json:
        raise CommandError("--plot draws, --json writes for programs")
    elif options.filter is not None:
        raise CommandError("--filter chooses among all metrics, --metric names one")


def _points(options: argparse.Namespace, now: float) -> dict[str, Any]:
    from verl_tui.answers.metrics import LONG, points_of, several_points

    if options.plot and options.last is None:
        options.whole, options.last = True, sys.maxsize
    last = options.last or _POINTS

    def answer(reading: Reading) -> dict[str, Any] | None:
        found = []
        for metric in dict.fromkeys(options.metric):
            points = points_of(reading, metric, last, options.around)
            if points is None:
                return None
            found.append(points)
        return found[0] if len(found) == 1 else several_points(found)

    return read_answer(options, now, answer, least=LONG)

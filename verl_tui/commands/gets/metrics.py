"""`verl-tui get metrics`: which metrics there are, or the values of one."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from verl_tui.commands.answering import (
    CODES,
    READ,
    answer_options,
    answering,
    read_answer,
    report_missing,
    run_paths,
    whole_option,
    write_answer,
)
from verl_tui.commands.arguments import CommandError, count, step
from verl_tui.commands.output import print_note

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from verl_tui.answers.run_reading import Reading
    from verl_tui.commands.arguments import CommandParser

NAME = "metrics"
HELP = "one line per metric; with --metric, the values of one"
EXAMPLES = (
    "verl-tui get metrics logs/run_7 --filter 'critic/*'",
    "verl-tui get metrics logs/run_7 --metric reward --last 5 --json",
    "verl-tui get metrics logs/run_7 --metric actor/ppo_kl --around 120",
    "verl-tui get metrics logs/run_7 --metric reward --plot",
)
EXITS = CODES
_POINTS = 20
_FIELDS = f"""{READ}
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
Logs above 2 MiB are read from their end, as far as the points lie back. A metric that does not
occur in the last 16 MiB is refused; --whole looks for it in all of the log."""


def options(parser: CommandParser) -> None:
    """Add its options."""
    metric = "the log's own key, or an indicator such as reward or policy_kl; may be repeated"
    parser.add_argument("--metric", metavar="KEY", action="append", help=metric)
    keys = "only metrics whose key matches a quoted glob such as 'actor/*'"
    parser.add_argument("--filter", metavar="GLOB", help=keys)
    last = f"the last N points (default: {_POINTS}, of a plot all); with --around, how many in all"
    parser.add_argument("--last", type=count, metavar="N", help=last)
    parser.add_argument(
        "--around", type=step, metavar="STEP", help="the points around a step"
    )
    plot = "with --metric, draw the points as a chart in text"
    parser.add_argument("--plot", action="store_true", help=plot)
    whole_option(parser)
    answer_options(parser, _FIELDS)


def run(options: argparse.Namespace) -> int:
    """Write the answer; return the exit code."""
    from verl_tui.answers.metrics import metrics_lines, metrics_of
    from verl_tui.answers.run_reading import read_whole

    now = time.time()
    if options.metric is not None:
        if options.plot and options.json:
            raise CommandError("--plot draws, --json writes for programs")
        if options.filter is not None:
            raise CommandError("--filter chooses among all metrics, --metric names one")
        found = _points(options, now)
        _write(found, _lines(found, options), options)
        return 0
    if options.plot:
        raise CommandError("--plot needs the metric: --metric KEY")
    if options.around is not None:
        raise CommandError("--around needs the metric: --metric KEY")
    with answering():
        reading = read_whole(run_paths(options), options.named, now)
    report_missing(reading)
    found = metrics_of(reading, options.filter)
    _write(found, metrics_lines(found), options)
    return 0


def _lines(found: dict[str, Any], options: argparse.Namespace) -> Iterable[str]:
    if options.plot:
        from verl_tui.answers.metrics import plot_lines

        return plot_lines(found)
    from verl_tui.answers.metrics import points_lines

    return points_lines(found)


def _write(
    found: dict[str, Any], lines: Iterable[str], options: argparse.Namespace
) -> None:
    """Write the answer; in text, standard error says whether the steps are those of the log."""
    from verl_tui.runs.views.provenance import ESTIMATED

    if found["steps_estimated"] and not options.json:
        print_note(f"{found['run']}: {ESTIMATED}")
    write_answer(found, lines, options)


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

"""`verl-tui get`: small answers on one run for scripts, a row of `COMMANDS` each."""

from __future__ import annotations

import json
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from types import SimpleNamespace
from typing import TYPE_CHECKING

from verl_tui.commands.shared import (
    CONFIG,
    EXIT_NOTHING,
    CommandError,
    configuration,
    guide_of,
    paths_of,
    print_message,
    print_messages,
    print_note,
)
from verl_tui.commands.signals import heeded
from verl_tui.text import one_line

if TYPE_CHECKING:
    from verl_tui.answers.run_reading import Reading
    from verl_tui.health.guide import Guide
    from verl_tui.plain_data import Data

HELP = "small answers on one run for scripts: state, findings, metrics, samples, log, GPU hours"
EXAMPLES = ("verl-tui get state logs/run_7", "verl-tui get metrics logs/run_7 --json")
VERSION = 1
"""Version of the answers: grows when a field is removed or changes its meaning."""
_POINTS, _LINES, _SAMPLES = 20, 20, 3
"""How many are given where no number is asked for."""


def _waited(options: Namespace) -> Reading | None:
    """Return the run as it is when what is waited for holds; None if nothing is."""
    if options.wait is None:
        if options.timeout is not None:
            raise CommandError("--timeout needs what is waited for: --wait CONDITION")
        return None
    from verl_tui.answers.waiting import waited_for

    return waited_for(
        paths_of(options),
        options.run,
        options.wait,
        configuration(options),
        timeout=options.timeout,
        unread=heeded(),
        say=print_message,
    )


def _read(
    options: Namespace,
    answer: Callable[[Reading, float], Data | None],
    *,
    least: int = 0,
    alive: bool = False,
) -> Data:
    """Return an answer and say what was passed over; all is read where `least` is 0, see
    `readings`.
    """
    from verl_tui.answers.run_reading import FIRST, NothingError, readings

    waited, now = _waited(options), time.time()
    first = FIRST if least and not getattr(options, "whole", False) else None
    more = readings(
        paths_of(options), options.run, now, least=least, first=first, alive=alive
    )
    say = cache(print_messages)  # once, however often is read
    for reading in [waited] if waited else more:
        say(reading.sentences)
        read = any(one.records for one in reading.run.statuses)
        if read and (found := answer(reading, now)) is not None:
            return found
    raise NothingError(f"nothing readable so far in {reading.run.name}")


def _judged(
    options: Namespace,
    answer: Callable[[Reading, Guide, float], Data | None],
    least: int = 0,
) -> Data:
    """Return an answer that takes the rules."""
    guide = guide_of(configuration(options))
    return _read(
        options,
        lambda reading, now: answer(reading, guide, now),
        least=least,
        alive=True,
    )


def _write(found: Data, lines: Iterable[str], options: Namespace) -> int:
    """Write an answer to standard output as JSON, or as lines of text; return the exit code."""
    if options.json:
        lines = [json.dumps({"version": VERSION, **found}, allow_nan=False)]
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()
    return 0


def _findings(options: Namespace) -> int:
    from verl_tui.answers.state import findings_lines, findings_of

    found = _judged(options, partial(findings_of, least=options.severity))
    return _write(found, findings_lines(found), options)


def _state(options: Namespace) -> int:
    from verl_tui.answers.state import LONG, state_line, state_of

    found = _judged(options, state_of, LONG)
    return _write(found, [state_line(found)], options)


def _ledger(options: Namespace) -> int:
    from verl_tui.answers.state import ledger_lines, ledger_of

    found = _judged(options, ledger_of)
    return _write(found, ledger_lines(found), options)


def _runs(options: Namespace) -> int:
    from verl_tui.answers.run_reading import run_names

    found, sentences = run_names(paths_of(options))
    print_messages(sentences)
    if not found:
        raise CommandError("no run found", EXIT_NOTHING)
    return _write({"runs": list(found)}, map(one_line, found), options)


def _metrics(options: Namespace) -> int:
    from verl_tui.answers.metrics import (
        LONG,
        metrics_lines,
        metrics_of,
        plot_lines,
        points_lines,
        points_of,
        several_points,
    )
    from verl_tui.runs.views.provenance import ESTIMATED

    _check(options)
    if options.plot and options.last is None:
        options.whole, options.last = True, sys.maxsize

    def points(reading: Reading, _now: float) -> Data | None:
        found = []
        for metric in dict.fromkeys(options.metric):
            last = options.last or _POINTS
            found.append(points_of(reading, metric, last, options.around))
            if found[-1] is None:
                return None
        return found[0] if len(found) == 1 else several_points(found)  # type: ignore[arg-type]

    def metrics(reading: Reading, _now: float) -> Data | None:
        return metrics_of(reading, options.filter)

    if options.metric is None:
        found, lines = _read(options, metrics), metrics_lines
    else:
        found = _read(options, points, least=LONG)
        lines = plot_lines if options.plot else points_lines
    if found["steps_estimated"] and not options.json:
        print_note(f"{found['run']}: {ESTIMATED}")
    return _write(found, lines(found), options)


def _check(options: Namespace) -> None:
    """Refuse options that contradict each other."""
    if options.metric is None:
        for name in ("plot", "around"):
            if getattr(options, name) not in (None, False):
                raise CommandError(f"--{name} needs the metric: --metric KEY")
    elif options.plot and options.json:
        raise CommandError("--plot draws, --json writes for programs")
    elif options.filter is not None:
        raise CommandError("--filter chooses among all metrics, --metric names one")


def _samples(options: Namespace) -> int:
    from verl_tui.answers.samples import LONG, samples_lines, samples_of

    only = options.training or options.validation

    def answer(reading: Reading, _now: float) -> Data | None:
        return samples_of(
            reading,
            options.best or options.worst or options.last or _SAMPLES,
            order="best" if options.best else "worst" if options.worst else "last",
            around=options.around,
            validation=options.validation if only else None,
            full=options.full,
        )

    found = _read(options, answer, least=LONG)
    return _write(found, samples_lines(found), options)


def _log(options: Namespace) -> int:
    from verl_tui.answers.log import LONG, LogPlace, log_lines, log_of
    from verl_tui.answers.run_reading import FIRST, read_run
    from verl_tui.rendering.text.search import Search
    from verl_tui.secrets import own_mask

    mask = own_mask() if options.mask else None
    try:
        grep = None if options.grep is None else Search(options.grep)
    except ValueError as error:
        raise CommandError(f"--grep: {error}") from error
    reading, now = _waited(options), time.time()
    if reading is None:
        reading = read_run(paths_of(options), options.run, now, FIRST, LONG, alive=True)
    print_messages(reading.sentences)
    count = options.last or _LINES
    place = LogPlace(options.around, _around_error(options, reading, now), grep)
    found = log_of(reading, count, place, full=options.full, mask=mask)
    if found["gave_up"]:
        print_message(
            f"--grep {options.grep}: some lines took too long to search, and were left out"
        )
    return _write(found, log_lines(found), options)


def _around_error(options: Namespace, reading: Reading, now: float) -> bool:
    from verl_tui.runs.views.state import State, state

    if options.error and reading.run.outcome is None:
        raise CommandError(f"--error: no error has ended {reading.run.name}")
    asked = {options.around, options.last, options.grep} != {None}
    return options.error or (not asked and state(reading.run, now) is State.CRASHED)


_CODES = (
    "0 answered, 3 nothing readable or nothing of this kind in the run so far; with --wait also 4 "
    "the time is over, 5 the condition can no longer hold"
)
_OPTIONS = f"""{CONFIG}
--wait CONDITION  answer once this holds, such as 'step=100', 'state!=running',
                  'finding>=warning', 'val>0.7 and step>=50'; in the words of `compare --where`
--timeout TIME  wait no longer than 90 (seconds), 30m or 2h
--run NAME  which of several runs
--json  write one JSON object on one line
PATH...  directory, log, quoted glob or address of a run
"""
_WHOLE = """
--whole  read long logs in full, not just as much of the end as the answer needs
"""
_VERSION = """fields of the JSON object, on one line:
  version     1; grows when a field changes its meaning or goes
"""
_FIELDS = f"""{_VERSION}\
  run, run_id name of the run, and its id, which stays when the name changes
"""
_READ = f"""{_FIELDS}  read        "whole", or "end" if only the end of a long log was read
  bytes_read  bytes of logs that were read for it
"""
_REFUSED = """

Several runs and no --run, and no such run, metric or step, are wrong usage (64); a metric or step \
that is known and still to come is not (3)."""


def _command(
    run: Callable[[Namespace], int],
    help: str,
    examples: str,
    options: str,
    fields: str,
) -> SimpleNamespace:
    """Return a command, with the names of a module that is one."""
    lines = tuple(f"verl-tui get {line.strip()}" for line in examples.splitlines())
    return SimpleNamespace(
        run=run, HELP=help, EXAMPLES=lines, OPTIONS=options, EPILOG=fields, EXITS=_CODES
    )


COMMANDS: Mapping[str, SimpleNamespace] = {
    "findings": _command(
        _findings,
        "findings of the health rules, the worst first; all of the log is read",
        """findings logs/run_7 --severity critical
        findings logs/run_7 --json | jq -r '.findings[].id'""",
        f"""
--severity info|warning|critical  report findings of this severity or worse (default: info)
{_OPTIONS}""",
        f"""{_READ}\
  total       number of findings
  left_out    those below --severity
  not_judged  number of rules that gave no verdict
  findings    list of {{"id", "severity", "step", "since_step", "message", "evidence",
              "advice", "source", "consequence_of"}}, as in `check --json`\
{_REFUSED}""",
    ),
    "ledger": _command(
        _ledger,
        "GPU hours: those that taught, and those lost by cause; all of the log is read",
        """ledger logs/run_7
        ledger logs/run_7 --json | jq -r '.lines[] | [.id, .hours] | @tsv'""",
        _OPTIONS,
        f"""{_READ}\
  unit, devices, devices_by, wall_hours, hours, taught_hours, at_most, times, times_stated
              "GPU hours", or "hours of the run" where devices, their number, is null; at_most:
              fewer may have taught, times_stated: false if the times are estimated
  lines       list of {{"id", "label", "hours", "share", "heuristic": what is assumed or null,
              "finding", "step", "steps", "spans_left_out", "figures", "evidence"}}, each of what
              those before it have left: `verl-tui help commands`
  unknown     list of {{"id", "reason"}}
  stop        {{"finding", "severity", "step", "hours", "taught_hours"}}: what a stop at the first
              critical break would have saved, or null\
{_REFUSED}""",
    ),
    "log": _command(
        _log,
        "lines of the log: the last, around a step or the error, or those that match",
        """log logs/run_7 --last 50
        log logs/run_7 --around 120
        log logs/run_7 --grep 'CUDA|NCCL' --json""",
        f"""
--last N         at most N lines ({_LINES}, if not given)
| --around STEP  around the line of a step
| --error        around the error that ended the run
| --grep REGEX   the last lines that match a regular expression; case matters only if it has a
                 capital
--full           lines in full, up to 16 KiB
--mask           hide keys, tokens, passwords, homes and names, as a bundle does; look through it
                 still
{_OPTIONS}""",
        f"""{_FIELDS}\
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
{_REFUSED}""",
    ),
    "metrics": _command(
        _metrics,
        "one line per metric; with --metric, the values of one",
        """metrics logs/run_7 --filter 'critic/*'
        metrics logs/run_7 --metric reward --last 5 --json
        metrics logs/run_7 --metric actor/ppo_kl --around 120
        metrics logs/run_7 --metric reward --plot""",
        f"""
--metric KEY...  the log's own key, or an indicator such as reward or policy_kl; may be repeated
--filter GLOB  only metrics whose key matches a quoted glob such as 'actor/*'
--last N       the last N points ({_POINTS} if not given, of a plot all); with --around, how many in
               all
--around STEP  the points around a step
--plot         with --metric, draw the points as a chart in text
{_WHOLE}{_OPTIONS}""",
        f"""{_READ}\
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
occur in the last 16 MiB is refused; --whole looks for it in all of the log.{_REFUSED}""",
    ),
    "runs": _command(
        _runs,
        "names of the runs behind paths, for --run; no log is read",
        """runs logs
        state logs --run run_7""",
        """
--json   write one JSON object on one line
PATH...  directory, log, quoted glob or address
""",
        f"{_VERSION}  runs        list of names, in the order in which they were found",
    ),
    "samples": _command(
        _samples,
        "prompts and responses: the newest, those of a step, the best and the worst by score",
        """samples logs/run_7 --worst 5
        samples logs/run_7 --around 120 --best 1 --full
        samples logs/run_7 --last 10 --json | jq '.samples[].score'""",
        f"""
| --last N     the last N samples ({_SAMPLES}, if none of these is given)
| --best N     the N samples with the highest scores, of one step
| --worst N    the N samples with the lowest scores, of one step
--around STEP  samples of the step nearest to this one (the newest step that has some, if not given)
| --training   samples of training only
| --validation  samples of validation only
--full         texts in full
{_WHOLE}{_OPTIONS}""",
        f"""{_READ}\
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
--whole looks for them in all of the log.{_REFUSED}""",
    ),
    "state": _command(
        _state,
        "state, step, time left, verdict and worst finding, in one line",
        """state logs/run_7
        state logs/run_7 --json | jq -r .verdict
        state logs/run_7 --wait 'finding>=warning or state!=running' --timeout 2h""",
        _WHOLE + _OPTIONS,
        f"""{_READ}\
  state       waiting, running, stalled, finished, crashed, ended?, unknown, no training
  step        newest step, or null
  steps_estimated
              true where no source states the steps: they were counted or estimated
  total_steps, progress
              steps planned and the share of them that is done (0..1), or null
  remaining_s seconds from the newest record to the last step, or null
  last_record_age_s, last_record_by
              seconds since the newest record, and "record" or "file" for whose time that is
  verdict     "critical", "warning", "no warning", "healthy", or null: nothing was judged, or read
              is "end"
  finding     id of the worst finding, or null
  findings    number of findings, null if read is "end"
  phase       what the run is at, in words, or null

A log above 64 MiB is read from its end, and not judged; --whole reads and judges all of it.\
{_REFUSED}""",
    ),
}

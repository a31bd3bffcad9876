"""`verl-tui get`: small answers on one run for scripts, a row of `COMMANDS` and `get.toml` each."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, TypeAlias

from verl_tui.commands.shared import (
    Options,
    guide_of,
    print_message,
    print_note,
)
from verl_tui.commands.signals import heeded
from verl_tui.given_files import NothingError, UsageError
from verl_tui.text import one_line
from verl_tui.toml_tables import toml_table

if TYPE_CHECKING:
    from verl_tui.answers.run_reading import Reading
    from verl_tui.plain_data import Data

HELP = """
Small answers on one run for scripts: state, findings, metrics, samples, log, GPU hours.

for example:
    verl-tui get state logs/run_7
    verl-tui get metrics logs/run_7 --json
"""

AnswerLines: TypeAlias = "Callable[[Data], Iterable[str]]"
"""Makes lines of text of an answer."""
VERSION = 1
"""Version of the answers: grows when a field is removed or changes its meaning."""
_POINTS, _LINES, _SAMPLES = 20, 20, 3
"""How many are given where no number is asked for."""


def _waited(options: Options) -> Reading | None:
    """Return the run as it is when what is waited for holds; None if nothing is."""
    if not options.has("--wait"):
        return None
    from verl_tui.answers.waiting import waited_for

    return waited_for(
        options.paths,
        options.run,
        options.wait,
        options.settings,
        timeout=options.timeout,
        unread=heeded(),
        say=print_message,
    )


def answered(
    options: Options,
    answer: Callable[[Reading], Data | None],
    lines: AnswerLines,
    *,
    long: int | None = None,
    judges: bool = False,
) -> int:
    """Write an answer, and say what was passed over; return the exit code.

    Args:
        options: Say which run, and how it is written.
        answer: Answers; None if more of the run has to be read.
        lines: Makes an answer text.
        long: See `readings`.
        judges: Whether the answer takes the rules.
    """
    from verl_tui.answers.run_reading import readings

    guide = guide_of(options.settings) if judges else None
    waited, now = _waited(options), time.time()
    long = None if getattr(options, "whole", False) else long
    more = readings(options.paths, options.run, now, long=long, alive=judges)
    say = cache(print_message)  # once, however often is read
    for reading in [waited] if waited else more:
        say(*reading.sentences)
        read = any(one.records for one in reading.run.statuses)
        found = answer(reading._replace(now=now, guide=guide)) if read else None
        if found is not None:
            return _write(found, lines, options)
    raise NothingError(f"nothing readable so far in {reading.run.name}")


def _write(found: Data, lines: AnswerLines, options: Options) -> int:
    """Write an answer to standard output as JSON, or as lines of text; return the exit code."""
    if options.json:
        written = [json.dumps({"version": VERSION, **found}, allow_nan=False)]
    else:
        written = [*lines(found)]
    sys.stdout.write("".join(f"{line}\n" for line in written))
    sys.stdout.flush()
    return 0


def _findings(options: Options) -> int:
    from verl_tui.answers.state import findings_lines, findings_of

    answer = partial(findings_of, least=options.severity)
    return answered(options, answer, findings_lines, judges=True)


def _state(options: Options) -> int:
    from verl_tui.answers.state import LONG, state_lines, state_of

    answer = partial(state_of, in_words=not options.json)
    return answered(options, answer, state_lines, long=LONG, judges=True)


def _ledger(options: Options) -> int:
    from verl_tui.answers.state import ledger_lines, ledger_of

    return answered(options, ledger_of, ledger_lines, judges=True)


def _runs(options: Options) -> int:
    from verl_tui.answers.run_reading import run_names

    found, sentences = run_names(options.paths)
    print_message(*sentences)
    if not found:
        raise NothingError("no run found")
    return _write({"runs": [*found]}, lambda _: map(one_line, found), options)


def _metrics(options: Options) -> int:
    from verl_tui.answers.metrics import (
        metrics_lines,
        metrics_of,
        plot_lines,
        points_lines,
        points_of,
    )
    from verl_tui.answers.run_reading import LONG

    if options.plot and options.json:
        raise UsageError("--plot draws, --json writes for programs")
    if options.metric is None:
        answer = partial(metrics_of, pattern=options.filter)
        return answered(options, answer, _noted(metrics_lines))
    if options.plot and options.last is None:
        options.whole, options.last = True, sys.maxsize
    points = partial(
        points_of,
        metrics=options.metric,
        count=options.last or _POINTS,
        around=options.around,
    )
    lines = _noted(plot_lines if options.plot else points_lines)
    return answered(options, points, lines, long=LONG)


def _noted(lines: AnswerLines) -> AnswerLines:
    """Return what makes text of an answer, and says beside it that its steps are estimated."""
    from verl_tui.runs.views.provenance import ESTIMATED

    def noted(found: Data) -> Iterable[str]:
        if found["steps_estimated"]:
            print_note(f"{found['run']}: {ESTIMATED}")
        return lines(found)

    return noted


def _samples(options: Options) -> int:
    from verl_tui.answers.run_reading import LONG
    from verl_tui.answers.samples import samples_lines, samples_of

    only = options.training or options.validation
    answer = partial(
        samples_of,
        count=options.best or options.worst or options.last or _SAMPLES,
        order="best" if options.best else "worst" if options.worst else "last",
        around=options.around,
        validation=options.validation if only else None,
        full=options.full,
    )
    return answered(options, answer, samples_lines, long=LONG)


def _log(options: Options) -> int:
    from verl_tui.answers.log import log_lines, log_of
    from verl_tui.answers.run_reading import FIRST, LONG, read_run
    from verl_tui.rendering.log.target import LogTarget, error_target
    from verl_tui.rendering.text.search import Search
    from verl_tui.secrets import own_mask

    mask = own_mask() if options.mask else None
    try:
        grep = None if options.grep is None else Search(options.grep)
    except ValueError as error:
        raise UsageError(f"--grep: {error}") from error
    reading, now = _waited(options), time.time()
    if not reading:
        reading = read_run(options.paths, options.run, now, FIRST, LONG, alive=True)
    print_message(*reading.sentences)
    count = options.last or _LINES
    at = LogTarget(step=options.around)
    if _around_error(options, reading, now):
        at = error_target(reading.run)
    found = log_of(reading, count, at, grep=grep, full=options.full, mask=mask)
    if found["gave_up"]:
        print_message(
            f"--grep {options.grep}: some lines took too long to search, and were left out"
        )
    return _write(found, log_lines, options)


def _around_error(options: Options, reading: Reading, now: float) -> bool:
    from verl_tui.records import EventKind
    from verl_tui.runs.views.state import State, state

    end = reading.run.outcome
    if options.error and (not end or end.kind is EventKind.FINISHED):
        raise UsageError(f"--error: no error has ended {reading.run.name}")
    asked = {options.around, options.last, options.grep} != {None}
    return options.error or (not asked and state(reading.run, now) is State.CRASHED)


_TABLE = toml_table(__file__, "get.toml")


def _filled(text: str) -> str:
    for name, part in _TABLE["parts"].items():
        text = text.replace(f"<<{name}>>", part)
    return text


COMMANDS: Mapping[str, SimpleNamespace] = {
    name: SimpleNamespace(run=run, HELP=_filled(_TABLE[name]))
    for name, run in (
        ("findings", _findings),
        ("ledger", _ledger),
        ("log", _log),
        ("metrics", _metrics),
        ("runs", _runs),
        ("samples", _samples),
        ("state", _state),
    )
}

"""A short page on how runs are, as teams keep it beside a training: Markdown, a block a run, the
worst first. The same evidence gives the same bytes, apart from the line that says when.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from verl_tui.check.data import is_trained, report
from verl_tui.check.note import best_sentences, figures, no_verdict, progress, summary
from verl_tui.comparison.written import escaped
from verl_tui.health.finding import coverage_of, unjudged_rules
from verl_tui.patterns import pattern
from verl_tui.rendering.verdict_row import course
from verl_tui.report.record import worst_first
from verl_tui.report.sentences import line
from verl_tui.runs.time.forecast import next_occasions, pace
from verl_tui.runs.views.state import State, evaluated, patience, state_words
from verl_tui.toml_tables import toml_table
from verl_tui.words import counted, number

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from verl_tui.monitor import Monitor
    from verl_tui.plain_data import Data
    from verl_tui.runs.run import Run

MARK = "<!-- verl-tui report --status -->"
"""The first line: a file that begins with it may be replaced."""
_TABLE = toml_table(__file__, "report.toml")
_WITHIN = pattern(r"(?<=\w)\\_(?=\w)")
_STEPS = 10
"""Steps to the next look where no validation is expected: what the rules' means are made of, at
least; a heuristic.
"""


def status_text(monitor: Monitor, now: float, version: str) -> str:
    """Return the page.

    Args:
        monitor: Has read and judged.
        now: Seconds since the epoch.
        version: That of the program.
    """
    found = worst_first(report(monitor, now)["runs"])
    lines = [MARK, "# Status", "", f"Written {_moment(now)} by verl-tui {version}."]
    if len(found) > 1:
        lines += ["", f"{summary([one['verdict'] for one in found]).plain}."]
    for one in found:
        lines += ["", *markdown_block(one["name"], _block(one, monitor))]
    if unread := [f"- {_plain(one)}" for one in monitor.sentences]:
        lines += ["", "## Not read", "", *unread]
    return "\n".join(lines) + "\n"


def markdown_block(name: str, told: Iterable[tuple[str, str | None]]) -> Iterator[str]:
    """Yield what is told of a run in Markdown, for others to read: its name, and a line for each
    word and its sentence.
    """
    yield from (f"## {_plain(name)}", "")
    yield from (f"- **{word}**: {_plain(what)}" for word, what in told if what)


def _plain(text: str) -> str:
    """Return text as Markdown shows it; underscores within words mean nothing there."""
    return _WITHIN.sub("_", escaped(line(text)))


def _block(one: Data, monitor: Monitor) -> Iterator[tuple[str, str | None]]:
    """Yield what is said of a run: a word and a sentence."""
    run = monitor.runs[one["name"]]
    if not is_trained(one, run):
        none = one["state"] == State.NO_TRAINING.value
        yield "step", "no training found in it" if none else evaluated(run)
        return
    at, condition = progress(one, run)
    reached = f"{at}, {state_words(run, one['state'])}{condition}".removeprefix(
        " at step "
    )
    last = f"; last record {_moment(run.last_record)}" if run.last_record else ""
    by = " by its file's time" if last and run.dated_by_file else ""
    yield "step", f"{reached.removeprefix(', ')}{last}{by}"
    why = f": {one['why']}" if one["why"] else ""
    yield "health", f"{one['verdict'] or no_verdict(one)}{why}"
    yield "to do", one["next"]
    yield "progress", "; ".join(_progress(one, run))
    again = [counted(len(run.restarts), "restart")][: len(run.restarts)]
    yield "stability", ", ".join((*_figures(one, *_TABLE["stability"]), *again))
    yield "performance", ", ".join(_speed(one, run))
    yield "next check", _next_check(one, run)
    yield "rests on", _basis(one, monitor)


def _progress(one: Data, run: Run) -> Iterator[str]:
    yield from _figures(one, "reward", "validation", *one["losses"])
    yield from course(run)[:1]
    if one["best"] is not None:
        yield from best_sentences(one["best"])


def _speed(one: Data, run: Run) -> Iterator[str]:
    usual, left = pace(run), one["remaining_s"]
    if usual is not None:
        yield f"{number(usual.seconds)} s a step"
    yield from _figures(one, *_TABLE["performance"])
    if left is not None and run.last_record is not None:
        yield f"ends about {_moment(run.last_record + left)}"


def _figures(one: Data, *ids: str) -> Iterator[str]:
    """Yield the newest values of indicators, with their step where that is not the run's."""
    for id, label, text, told in figures(one):
        if id in ids:
            at = "" if told["step"] == one["step"] else f" at step {told['step']}"
            yield f"{label} {text}{at}"


def _next_check(one: Data, run: Run) -> str:
    """Say when it makes sense to look again, and why then."""
    if said := _TABLE["no_look"].get(state_words(run, one["state"])):
        return str(said)
    if one["verdict"] == "critical":
        return "now: it goes on although it is critical"
    usual, step, last = pace(run), run.step, run.last_record
    stalls = ""
    if last is not None:
        stalls = f"; without a step it counts as stalled from {_moment(last + patience(run))} on"
    if step is None:
        return f"at its first step{stalls}"
    due, why = next_occasions(run).get("validation"), "the next validation"
    if due is None:
        due = min(step + _STEPS, run.total_steps or step + _STEPS)
        why = f"{due - step} steps on, no validation is known to come (a heuristic)"
    if usual is None or last is None:
        return f"at step {due}: {why}; how long steps take is not known{stalls}"
    when = _moment(last + (due - step) * usual.seconds)
    return f"about {when}: step {due}, {why}{stalls}"


def _basis(one: Data, monitor: Monitor) -> str:
    """Name what the verdict rests on, and what it lacks."""
    skipped = {rule["id"]: rule["reason"] for rule in one["not_judged"]}
    judged = {rule.id for rule in monitor.guide.rules} - skipped.keys()
    rules = [f"{counted(len(judged), 'rule')} checked"]
    rules += unjudged_rules([*skipped.values()]) if skipped else ()
    run, verdict = monitor.runs[one["name"]], monitor.verdicts[one["name"]]
    return f"{', '.join(rules)}{coverage_of(run, verdict).words}"


def _moment(time: float) -> str:
    """Return a moment to the minute on this machine's clock, with its zone."""
    try:
        return datetime.fromtimestamp(time).astimezone().strftime("%Y-%m-%d %H:%M %z")
    except (OverflowError, OSError, ValueError):
        return "at an unknown time"

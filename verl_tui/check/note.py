"""One look at runs as a note for people: how each is doing, why, what to do next, and the rest."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from rich.text import Text

from verl_tui.check.data import (
    OUTCOMES,
    awaits_steps,
    is_trained,
    outcome,
    times_in_words,
)
from verl_tui.health.finding import unjudged_rules
from verl_tui.health.next_step import metric_label
from verl_tui.indicators import INDICATORS
from verl_tui.means import gathered
from verl_tui.metrics import describe
from verl_tui.runs.views.provenance import has_estimated_steps
from verl_tui.runs.views.signs_of_life import evidence, two_jobs
from verl_tui.runs.views.state import (
    State,
    ahead,
    evaluated,
    is_evaluation,
    state_words,
    unread_form,
)
from verl_tui.text import one_line
from verl_tui.times import age
from verl_tui.words import behind, counted, few, figure, number, percent_done

if TYPE_CHECKING:
    from verl_tui.monitor import Monitor
    from verl_tui.plain_data import Data
    from verl_tui.runs.run import Run
    from verl_tui.runs.source_state import SourceState

_NoteLines: TypeAlias = "Iterator[tuple[int, Text]]"
"""Lines, each behind how far it is indented; text from logs in it is never markup."""
_STYLES: Mapping[str, str] = {
    "info": "blue",
    "healthy": "green",
    "warning": "yellow",
    "critical": "bold red",
    "running": "green",
    "finished": "green",
    "stalled": "yellow",
    "crashed": "bold red",
}
"""Verdicts, severities and states -> their colour on a terminal."""
VERDICTS: Mapping[str | None, str] = {
    "critical": "critical",
    "warning": "warning",
    "healthy": "healthy",
    "no warning": "without a warning",
    None: "without a verdict",
}
"""Verdicts from the worst on -> how runs with it are counted."""
FOLDED = ", --consequences writes them out"
_NAMED_UNREADABLE = 3
"""Most unreadable lines listed for each line about sources."""


def note_text(
    report: Data,
    monitor: Monitor,
    now: float,
    *,
    width: int | None = None,
    colour: bool = False,
    unfolded: bool = False,
    verbose: bool = False,
) -> str:
    """Return the report as a note for people.

    Args:
        report: What `report` returned.
        monitor: The monitor that it was made from; knows the unreadable lines and the pace.
        now: Seconds since the epoch.
        width: Columns to wrap at, None for pipes: lines as long as they are, without colours.
        colour: Whether to write colours, for terminals.
        unfolded: Whether to write out what only follows from another finding.
        verbose: Whether to name the rules that gave no verdict, with the reasons.
    """
    lines = _lines(report, monitor, now, unfolded=unfolded, verbose=verbose)
    if width is None:
        return "".join(f"{' ' * indent}{text.plain}\n" for indent, text in lines)
    from rich.console import Console
    from rich.padding import Padding

    out = io.StringIO()
    console = Console(
        file=out,
        force_terminal=colour,
        color_system="standard" if colour else None,
        width=width,
        _environ={},  # the caller has decided
    )
    for indent, text in lines:
        console.print(Padding(text, (0, 0, 0, indent), expand=False))
    return out.getvalue()


def _lines(
    report: Data, monitor: Monitor, now: float, *, unfolded: bool, verbose: bool
) -> _NoteLines:
    """Yield the lines on each run, of several that are compared with a baseline a table."""
    many = len(report["runs"]) > 1
    sweep = many and "against" in report
    for at, described in enumerate(report["runs"] if verbose or not sweep else ()):
        run = monitor.runs[described["name"]]
        yield from [(0, Text())] * (at > 0)
        first, *others = opening(described, run, now)
        yield from ((0, first), *((2, line) for line in others))
        yield from _run_lines(described, run, unfolded=unfolded, verbose=verbose)
    if sweep:
        yield from [(0, Text())] * verbose
        yield from sweep_lines(report)
    if many:
        yield 0, Text()
        yield 0, summary([run["verdict"] for run in report["runs"]])


def summary(verdicts: Sequence[str | None]) -> Text:
    """Return the number of runs with each verdict."""
    parts = [
        Text(f"{verdicts.count(verdict)} {words}", _STYLES.get(words, ""))
        for verdict, words in VERDICTS.items()
        if verdict in verdicts
    ]
    return Text(f"{len(verdicts)} runs: ") + Text(", ").join(parts)


# -- the first three lines -------------------------------------------------------------------------


def opening(described: Data, run: Run, now: float) -> Iterator[Text]:
    """Yield how a run is doing, why, and what to do next; less of an evaluation, which nobody
    trains, and of files that hold no training.

    Args:
        described: The run, as in the report.
        run: The same run.
        now: Seconds since the epoch.
    """
    name = (described["name"], "bold")
    state = described["state"]
    if state == State.NO_TRAINING.value:
        yield Text.assemble(name, ": no training found in it")
        return
    head = described["verdict"] or no_verdict(described)
    at, condition = progress(described, run)
    if not is_trained(described, run):
        head, at = evaluated(run), ""
    style = _STYLES.get(state, "")
    # green only if all is calm
    style = "" if style == "green" and head != "healthy" else style
    yield Text.assemble(
        name,
        ": ",
        (head, _STYLES.get(head, "")),
        f"{at}, ",
        (state_words(run, state), style),
        condition,
        *(f", {fact}" for fact in _times(described, run, now)),
    )
    for line in ("why", "next"):
        if described[line] is not None:
            yield Text(f"{line}: {described[line]}")


def no_verdict(described: Data) -> str:
    """Say that there is no verdict, and whether one may come with more steps."""
    early = described["step"] is None or awaits_steps(described)
    return "no verdict yet" if early else "no verdict"


def progress(described: Data, run: Run) -> tuple[str, str]:
    """Return the step that the verdict applies to, and what the state says of steps."""
    step, total, state = (described[key] for key in ("step", "total_steps", "state"))
    if step is None:
        if is_evaluation(run):
            return "", ""
        if unread_form(run):
            return "", ", its steps cannot be read"
        how = "for" if state == "waiting" else "before"
        return "", f" {how} the first" + (f" of {total} steps" if total else " step")
    if not total:
        goes_on = state in ("waiting", "running", "stalled")
        return f" at step {step}" + " (total unknown)" * goes_on, ""
    if state == "finished" and step >= total:
        return "", f" after all {total} steps"
    # Rounded down, as on the screen: 100% is the end.
    return f" at step {step} of {total} ({percent_done(step / total)})", ""


def _times(described: Data, run: Run, now: float) -> Iterator[str]:
    by_file = run.dated_by_file and evidence(run, now) is None
    found = {**described, "steps_estimated": has_estimated_steps(run)}
    yield from times_in_words(found, " by its file's time" * by_file)
    if (early := ahead(run, now)) is not None:
        yield f"last record dated {age(early)} ahead of the clock"


# -- the rest --------------------------------------------------------------------------------------


def gate_lines(against: Data) -> _NoteLines:
    """Yield the lines on a run compared with a baseline: a heading, then a line for each breach."""
    figures = against["figures"]
    kept = [_figure(one) for one in figures if not one["breach"]]
    yield 2, Text(_gate_heading(against, len(figures) - len(kept)))
    for one in figures:
        if how := one["breach"]:
            style = _STYLES["critical" if how == "worse" else "warning"]
            yield 4, Text(f"{how}: {_figure(one)}", style)
    if kept:
        yield 4, Text(f"within their bands: {', '.join(kept)}")
    reasons = gathered((one["reason"], _label(one)) for one in against["not_compared"])
    for reason, labels in reasons.items():
        yield 4, Text(f"not compared: {', '.join(labels)} ({one_line(reason, 1000)})")


def _gate_heading(against: Data, breaches: int) -> str:
    step = "" if against["step"] is None else f" at step {against['step']}"
    said = f"{breaches} of {len(against['figures'])} figures outside their bands"
    if outcome(against) == "not comparable":
        said = "there is no figure that both have"
    elif not breaches:
        said = "within all bands"
    return f"against {few(map(one_line, against['baseline']))}{step}: {said}"


def sweep_lines(report: Data) -> _NoteLines:
    """Yield a table of runs compared with one baseline, a line a run, the worst first."""
    from verl_tui.comparison.tables import TextTable
    from verl_tui.comparison.written import aligned

    runs = {one["name"]: one for one in report["runs"]}
    summed = report["against"]
    counts = ", ".join(f"{count} {word}" for word, count in summed["outcomes"].items())
    base = few(map(one_line, summed["baseline"]))
    yield 0, Text(f"against {base}, worst first (-v: all of each): {counts}")
    rows = [_sweep_row(runs[name]) for name in summed["worst_first"]]
    columns = ("run", "against", "verdict", "step", "outside its band (baseline)")
    for line in aligned(TextTable("", columns, rows, numbers=False)):
        yield 2, Text(line.rstrip(), no_wrap=True, overflow="ellipsis")


def _sweep_row(run: Data) -> tuple[str, ...]:
    against, breaches = run["against"], dict[str, list[str]]()
    for one in against["figures"]:
        label = _label(one)
        if one["value"] is not None:
            label += f" {_part(one, 'value')} ({_part(one, 'baseline')})"
        breaches.setdefault(one["breach"], []).append(label)
    found = [one["id"] for one in run["findings"] if one["severity"] != "info"][:1]
    found += [
        f"{how}: {', '.join(breaches[how])}" for how in OUTCOMES if how in breaches
    ]
    step, verdict = against["step"] or "–", run["verdict"] or no_verdict(run)
    said = "; ".join(found)
    return one_line(run["name"]), against["outcome"], verdict, str(step), said


def _part(one: Data, part: str) -> str:
    return figure(one[part], one["unit"])


def _label(one: Data) -> str:
    """Return what a figure is called."""
    from verl_tui.comparison.outcomes import KINDS  # few reports are on any

    return KINDS[one["figure"]].label


def _figure(one: Data) -> str:
    """Return a figure as compared with its band."""
    label, breach = _label(one), one["breach"]
    baseline, unit = _part(one, "baseline"), behind(one["unit"])
    if breach == "missing":
        return f"{label}, baseline {baseline}{unit}"
    value, band = _part(one, "value"), f"{_part(one, 'low')} to {_part(one, 'high')}"
    if not breach:
        return f"{label} {value} ({band})"
    side = "below" if one["value"] < one["low"] else "above"
    return f"{label} {value} is {side} {band}{unit} (baseline {baseline})"


def _run_lines(
    described: Data, run: Run, *, unfolded: bool, verbose: bool
) -> _NoteLines:
    """Yield what stands below the opening."""
    if "against" in described:
        yield from gate_lines(described["against"])
    if described["state"] == State.NO_TRAINING.value:
        # what has no size is a directory, in which nothing was found either
        read = run.sources
        sized = (one for one in described["sources"] if read[one["path"]].status.size)
        yield from source_lines(sized, run, "plain text")
        return
    yield from _measured(described)
    if described["best"] is not None:
        yield from ((2, Text(said)) for said in best_sentences(described["best"]))
    for target in described["targets"]:
        yield 2, Text(_target_sentence(target))
    yield from finding_lines(described, unfolded=unfolded, opened=True)
    yield from _unjudged(described["not_judged"], verbose=verbose)
    yield from source_lines(described["sources"], run)


def _measured(described: Data) -> _NoteLines:
    """Yield the losses and indicators in columns."""
    rows = [*figures(described)]
    label, value = (max((len(row[at]) for row in rows), default=0) for at in (1, 2))
    for _, name, text, one in rows:
        style = "bold red" if one["value"] is None else ""
        origin = (f"  {one['key']}, step {one['step']}", "dim")
        cells = (f"{name:<{label}}  ", (f"{text:<{value}}", style), origin)
        yield 2, Text.assemble(*cells)


def figures(described: Data) -> Iterator[tuple[str, str, str, Data]]:
    """Yield the newest losses and indicators: key or id, label, value with its unit, and all that
    is known.
    """
    for id, told in (*described["losses"].items(), *described["indicators"].items()):
        one = {"key": id, **told}
        logged = describe(one["key"])
        about = INDICATORS.get(id, logged)
        yield id, about.label, _with_unit(one["value"], about.unit or logged.unit), one


def _with_unit(value: float | None, unit: str) -> str:
    if value is None:
        return "not finite"
    return figure(value, unit) + behind(unit)


_UNFINISHED = " (not known to be complete: the tracker file names an earlier one)"


def best_sentences(best: Data) -> Iterator[str]:
    """Yield where the metric was best, and the checkpoints that this speaks for."""
    label, near = metric_label(best["indicator"]), best["nearest_checkpoint"]
    latest = best["latest_checkpoint"]
    words = f"best {label} {number(best['value'])} at step {best['step']}"
    if best["checkpoint"]:
        more = _UNFINISHED * (near["complete"] is False)
        yield f"{words}; checkpoint {best['checkpoint']}{more}"
    elif near is None:
        yield f"{words}; no checkpoint is known"
    else:
        there = "" if near["value"] is None else f", {label} {number(near['value'])}"
        yield (
            f"{words}; no checkpoint of that step, the nearest is of step "
            f"{near['step']}{there}: {near['path']}"
        )
    if latest is not None and latest["complete"] is False and latest != near:
        where = f"{_UNFINISHED}: {latest['path']}"
        yield f"the newest checkpoint is of step {latest['step']}{where}"
    for called in best["called_best_at"]:
        where = "" if called["step"] is None else f" (step {called['step']})"
        yield f"the trainer itself calls best: {called['path']}{where}"


def _target_sentence(target: Data) -> str:
    words = f"target {target['metric']} {number(target['target'])}"
    if target["reached_step"] is not None:
        now = "" if target["value"] is None else f", now {number(target['value'])}"
        return f"{words}: reached at step {target['reached_step']}{now}"
    if target["best"] is None:
        return f"{words}: no value yet"
    return f"{words}: not reached, best {number(target['best'])} at step {target['best_step']}"


def finding_lines(
    described: Data, *, unfolded: bool = False, opened: bool = False
) -> _NoteLines:
    """Yield the findings with what follows from them.

    Args:
        described: The run, as in the report.
        unfolded: Whether to write out what only follows from another finding.
        opened: Whether message and advice of the first one have been said already.
    """
    by_cause = gathered((one["consequence_of"], one) for one in described["findings"])
    for at, finding in enumerate(by_cause.pop(None, ())):
        yield from _finding(finding, 2, opened=opened and at == 0)
        consequences = by_cause.pop(finding["id"], ())
        count = f"+{counted(len(consequences), 'consequence')}"
        if consequences and unfolded:
            yield 4, Text(f"{count}:")
            for one in consequences:
                yield from _finding(one, 6)
        elif consequences:
            ids = ", ".join(dict.fromkeys(one["id"] for one in consequences))
            yield 4, Text(f"{count}{FOLDED}: {ids}", "dim")


def _finding(finding: Data, indent: int, *, opened: bool = False) -> _NoteLines:
    since = finding["since_step"]
    yield (
        indent,
        Text.assemble(
            (finding["severity"], _STYLES[finding["severity"]]),
            f" {finding['id']}",
            "" if since is None else f", since step {since}",
            ":" if opened else f": {finding['message']}",
        ),
    )
    for said in finding["evidence"]:
        yield indent + 2, Text(f"- {said}")
    if finding["advice"] and not opened:
        yield indent + 2, Text(f"advice: {finding['advice']}")
    if finding["source"]:
        yield indent + 2, Text(f"source: {finding['source']}", "dim")


def _unjudged(rules: Sequence[Mapping[str, str]], *, verbose: bool) -> _NoteLines:
    """Yield how many rules gave no verdict, on request with their names by reason."""
    if not rules:
        return
    words = ", ".join(unjudged_rules([rule["reason"] for rule in rules]))
    yield 2, Text(f"{words}:" if verbose else f"{words} (-v: why)", "dim")
    by_reason = gathered((rule["reason"], rule["id"]) for rule in rules)
    for reason, ids in by_reason.items() if verbose else ():
        yield 4, Text(f"{', '.join(ids)}: {reason}", "dim")


def source_lines(sources: Iterable[Data], run: Run, text_is: str = "") -> _NoteLines:
    """Yield the sources read; files of the same kind in one directory share a line.

    Args:
        sources: The sources, as in the report.
        run: Their run.
        text_is: The name to use in place of their format; empty for the format.
    """
    groups = gathered(
        (
            (Path(one["path"]).parent, one["program"] or one["format"]),
            run.sources[one["path"]],
        )
        for one in sources
    )
    for (directory, called), group in groups.items():
        count = len(group)
        path = f"{count:,} files in {directory}" if count > 1 else group[0].status.path
        records = counted(sum(one.status.records for one in group), "record")
        words = f"read {one_line(path, 1000)}: {text_is or called}, {records}"
        text = Text(words, "dim")
        unreadable = sum(one.status.unreadable for one in group)
        if unreadable:
            text.append(f", {counted(unreadable, 'unreadable line')}", "not dim yellow")
        yield 2, text
        yield from _trouble(group, unreadable)
    if both := two_jobs(run):
        yield 2, Text(both, "yellow")


def _trouble(sources: Sequence[SourceState], unreadable: int) -> _NoteLines:
    """Yield problems, notes and the first unreadable lines of sources."""
    notes: set[str | None] = {None, ""}
    left = _NAMED_UNREADABLE
    for source in sources:
        path, note = one_line(source.status.path, 1000), source.status.note
        if source.status.problem:
            yield 4, Text(f"{path}: {source.status.problem}")
        if note not in notes:
            notes.add(note)
            yield 4, Text(f"{path}: {note}", "dim")
        for line in islice(source.unreadable, left):
            left -= 1
            yield 4, Text(f"{path}:{line.line}: {line.reason}")
    more = unreadable - (_NAMED_UNREADABLE - left)
    if more:
        yield 4, Text(f"and {more:,} more")

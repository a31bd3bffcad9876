"""One look at runs without a screen: as data for programs, as text for people, as an exit code for cron."""

from __future__ import annotations

import io
import math
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from verl_tui.health.finding import Verdict
from verl_tui.indicators import INDICATORS, factor
from verl_tui.metrics import describe
from verl_tui.runs.best import best
from verl_tui.runs.identity import as_data, identity
from verl_tui.runs.state import remaining, silence, state
from verl_tui.runs.targets import targets_of
from verl_tui.sources import FORMATS
from verl_tui.text import one_line
from verl_tui.times import age, duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from verl_tui.monitor import Monitor
    from verl_tui.runs.run import Run
    from verl_tui.runs.source_state import SourceState
    from verl_tui.runs.targets import Target

VERSION = 1
"""Of the report's schema: grows when a field changes its meaning or goes, not when one is added."""

HEALTHY, WARNING, CRITICAL, NOTHING_READABLE = 0, 1, 2, 3
"""Exit codes."""

_TOLD_UNREADABLE = 3
"""Unreadable lines told one by one for each line about sources."""
_STYLES: Mapping[str, str] = {
    "info": "blue",
    "warning": "yellow",
    "critical": "bold red",
    "running": "green",
    "finished": "green",
    "stalled": "yellow",
    "crashed": "bold red",
}
"""Severities and states -> their colour on a terminal."""


# -- as data ----------------------------------------------------------------------------------------------------------


class BestBy(NamedTuple):
    """By which metric the best checkpoint is looked for."""

    metric: str = "reward"
    """An indicator's id or the log's own key."""
    lowest: bool | None = None
    """Whether less is better; None: as the metric has it."""


def report(monitor: Monitor, now: float, by: BestBy = BestBy()) -> dict[str, Any]:  # noqa: B008 - it is immutable
    """Return what is known of all runs, ready for JSON: no value is NaN or infinite.

    Args:
        monitor: Has read and judged.
        now: Seconds since the epoch.
        by: By which metric the best checkpoint is looked for.
    """
    runs = [_run(run, monitor, now, by) for run in monitor.runs.values()]
    return {"version": VERSION, "runs": runs}


def exit_code(report: Mapping[str, Any]) -> int:
    """Return 0 for healthy, 1 where the worst finding is a warning, 2 where it is critical, 3 for nothing readable."""
    logs = {format.name for format in FORMATS}
    sources = [source for run in report["runs"] for source in run["sources"]]
    if not any(source["records"] for source in sources if source["format"] in logs):
        return NOTHING_READABLE
    found = {finding["severity"] for run in report["runs"] for finding in run["findings"]}
    return CRITICAL if "critical" in found else WARNING if "warning" in found else HEALTHY


def _run(run: Run, monitor: Monitor, now: float, by: BestBy) -> dict[str, Any]:
    quiet = silence(run, now)
    verdict = monitor.verdicts.get(run.name, Verdict())
    return {
        "name": run.name,
        "paths": list(run.paths),
        "dialect": run.dialect,
        "state": state(run, now).value,
        "step": run.step,
        "total_steps": run.total_steps,
        "last_record_age_s": None if quiet is None else round(quiet, 3),
        "indicators": _indicators(run),
        "findings": [
            {
                "id": finding.id,
                "severity": finding.severity.word,
                "step": finding.step,
                "since_step": finding.since_step,
                "message": finding.message,
                "evidence": list(finding.evidence),
                "advice": finding.advice,
                "source": finding.source,
            }
            for finding in verdict.findings
        ],
        "not_judged": [{"id": rule.id, "reason": rule.reason} for rule in verdict.not_judged],
        "sources": [
            {
                "path": source.status.path,
                "format": source.status.format,
                "records": source.status.records,
                "unreadable": source.status.unreadable,
            }
            for source in run.sources.values()
        ],
        "best": _best(run, by),
        "targets": [_target(target) for target in targets_of(run, monitor.config.targets)],
        "history": [
            {
                "id": episode.id,
                "severity": episode.severity.word,
                "since_step": episode.since_step,
                "raised_step": episode.raised_step,
                "cleared_step": episode.cleared_step,
                "message": episode.message,
            }
            for episode in verdict.history
        ],
        "identity": dict(as_data(identity(run))),
    }


def _indicators(run: Run) -> dict[str, dict[str, Any]]:
    found = {}
    for id in INDICATORS:
        series = run.indicator(id)
        if series is not None and (last := series.last) is not None:
            found[id] = {"key": series.key, **_value(last.value, factor(id, series.key)), "step": last.step}
    return found


def _value(value: float, factor: float) -> dict[str, Any]:
    """Return a value for JSON, which knows neither NaN nor infinity."""
    if not math.isfinite(value):
        return {"value": None, "finite": False}
    return {"value": value if factor == 1 else value * factor}


def _best(run: Run, by: BestBy) -> dict[str, Any] | None:
    """Return where the metric was best, first of equals, with the checkpoints of that step, next to it, and newest."""
    found = best(run, by.metric, lowest=by.lowest)
    if found is None:
        return None
    return {
        "indicator": found.metric,
        "key": found.key,
        "step": found.step,
        "value": found.value,
        "checkpoint": None if found.checkpoint is None else found.checkpoint.path,
        "nearest_checkpoint": None if found.nearest is None else found.nearest._asdict(),
        "latest_checkpoint": None if found.latest is None else found.latest._asdict(),
        "called_best": list(run.called_best),
    }


def _target(target: Target) -> dict[str, Any]:
    return {
        "metric": target.metric,
        "key": target.key,
        "target": target.target,
        "reached_step": None if target.reached is None else target.reached.step,
        "value": None if target.last is None else target.last.value,
        "step": None if target.last is None else target.last.step,
        "best": None if target.best is None else target.best.value,
        "best_step": None if target.best is None else target.best.step,
    }


# -- as text ----------------------------------------------------------------------------------------------------------


class _Line(NamedTuple):
    """A line of the note; foreign text in it is never markup."""

    indent: int
    text: Text


def write_text(
    report: Mapping[str, Any], monitor: Monitor, now: float, *, width: int | None = None, colour: bool = False
) -> str:
    """Return the report as a note for people.

    Args:
        report: What `report` returned.
        monitor: What it was made from; knows the unreadable lines and the pace.
        now: Seconds since the epoch.
        width: Columns to wrap at, None to leave lines as long as they are, for pipes.
        colour: Whether to write colours, for terminals.
    """
    lines: list[_Line] = []
    for described in report["runs"]:
        lines += [_Line(0, Text())] if lines else []
        lines += _note(described, monitor.runs[described["name"]], now)
    out = io.StringIO()
    system: Literal["standard"] | None = "standard" if colour else None
    console = Console(
        file=out,
        force_terminal=colour,
        color_system=system,
        no_color=not colour,
        width=width or 10_000,
        legacy_windows=False,
        _environ={},  # the caller has decided
    )
    for line in lines:
        if width is None:
            console.print(Text(" " * line.indent) + line.text, soft_wrap=True)
        else:
            console.print(Padding(line.text, (0, 0, 0, line.indent), expand=False))
    return out.getvalue()


def _note(described: Mapping[str, Any], run: Run, now: float) -> Iterator[_Line]:
    yield _Line(0, _headline(described, run, now))
    yield from _measured(described["indicators"])
    if described["best"] is not None:
        yield from (_Line(2, Text(sentence)) for sentence in _best_sentences(described["best"]))
    yield from (_Line(2, Text(_target_sentence(target))) for target in described["targets"])
    yield from _found(described)
    yield from _unjudged(described["not_judged"])
    yield from _read(described["sources"], run)


def _headline(described: Mapping[str, Any], run: Run, now: float) -> Text:
    step, total, quiet = described["step"], described["total_steps"], described["last_record_age_s"]
    facts = [_progress(step, total)]
    left = remaining(run, now)
    if left is not None:
        facts.append(f"about {duration(left)} left")
    if quiet is not None:
        ago = age(quiet)
        facts.append("last record just now" if ago == "now" else f"last record {ago} ago")
    word = described["state"]
    return Text.assemble(
        (described["name"], "bold"), ": ", (word, _STYLES.get(word, "")), "".join(f", {fact}" for fact in facts)
    )


def _progress(step: int | None, total: int | None) -> str:
    if step is None:
        return "no step yet" + (f" of {total}" if total else "")
    return f"step {step}" + (f" of {total} ({min(1.0, step / total):.0%})" if total else "")


def _measured(indicators: Mapping[str, Mapping[str, Any]]) -> Iterator[_Line]:
    rows = []
    for id, shown in indicators.items():
        unit = INDICATORS[id].unit or describe(shown["key"]).unit
        number = "not finite" if shown["value"] is None else _number(shown["value"])
        rows.append((INDICATORS[id].label, f"{number} {_UNITS.get(unit, unit)}".rstrip(), shown))
    label = max((len(row[0]) for row in rows), default=0)
    value = max((len(row[1]) for row in rows), default=0)
    for name, text, shown in rows:
        style = "bold red" if shown["value"] is None else ""
        origin = (f"  {shown['key']}, step {shown['step']}", "dim")
        yield _Line(2, Text.assemble(f"{name:<{label}}  ", (f"{text:<{value}}", style), origin))


_UNITS: Mapping[str, str] = {"percent": "%", "share": "(share)"}


def _number(value: float) -> str:
    """Return a value with about four digits, never as an exponent where people would not write one."""
    if value == 0 or 1e-4 <= abs(value) < 1000:
        return f"{value:.4g}"
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e12 else f"{value:.3e}"


def _best_sentences(best: Mapping[str, Any]) -> Iterator[str]:
    label = INDICATORS[best["indicator"]].label if best["indicator"] in INDICATORS else best["indicator"]
    said = f"best {label} {_number(best['value'])} at step {best['step']}"
    near, latest = best["nearest_checkpoint"], best["latest_checkpoint"]
    if best["checkpoint"]:
        yield f"{said}; checkpoint {best['checkpoint']}{_unfinished(near)}"
    elif near is None:
        yield f"{said}; no checkpoint is known"
    else:
        there = "" if near["value"] is None else f", {label} {_number(near['value'])}"
        yield f"{said}; no checkpoint of that step, the nearest is of step {near['step']}{there}: {near['path']}"
    if latest is not None and latest["complete"] is False and latest != near:
        yield f"the newest checkpoint is of step {latest['step']}{_unfinished(latest)}: {latest['path']}"
    for path in best["called_best"]:
        yield f"the trainer itself calls best: {path}"


def _unfinished(checkpoint: Mapping[str, Any]) -> str:
    if checkpoint["complete"] is not False:
        return ""
    return " (not known to be complete: the tracker file names an earlier one)"


def _target_sentence(target: Mapping[str, Any]) -> str:
    said = f"target {target['metric']} {_number(target['target'])}"
    if target["reached_step"] is not None:
        return f"{said}: reached at step {target['reached_step']}, now {_number(target['value'])}"
    if target["best"] is None:
        return f"{said}: no value yet"
    return f"{said}: not reached, best {_number(target['best'])} at step {target['best_step']}"


def _found(described: Mapping[str, Any]) -> Iterator[_Line]:
    if not described["findings"]:
        yield _Line(2, Text("nothing found" if described["indicators"] else "nothing to judge yet"))
    for finding in described["findings"]:
        since = finding["since_step"]
        yield _Line(
            2,
            Text.assemble(
                (finding["severity"], _STYLES[finding["severity"]]),
                f" {finding['id']}",
                "" if since is None else f", since step {since}",
                f": {finding['message']}",
            ),
        )
        yield from (_Line(4, Text(f"- {evidence}")) for evidence in finding["evidence"])
        if finding["advice"]:
            yield _Line(4, Text(f"advice: {finding['advice']}"))
        if finding["source"]:
            yield _Line(4, Text(f"source: {finding['source']}", "dim"))


def _unjudged(rules: Iterable[Mapping[str, str]]) -> Iterator[_Line]:
    if ids := dict.fromkeys(rule["id"] for rule in rules):
        yield _Line(2, Text(f"not judged, --json says why: {', '.join(ids)}", "dim"))


def _read(sources: Iterable[Mapping[str, Any]], run: Run) -> Iterator[_Line]:
    """Tell what was read; files of one directory and format (dumps have one a step) share a line."""
    groups: dict[tuple[Path, str], list[Mapping[str, Any]]] = {}
    for source in sources:
        groups.setdefault((Path(source["path"]).parent, source["format"]), []).append(source)
    for (directory, format), group in groups.items():
        path = group[0]["path"] if len(group) == 1 else f"{len(group):,} files in {directory}"
        records = _count(sum(source["records"] for source in group), "record")
        text = Text(f"read {one_line(path, 1000)}: {format}, {records}", "dim")
        if unreadable := sum(source["unreadable"] for source in group):
            text.append(f", {_count(unreadable, 'unreadable line')}", "not dim yellow")
        yield _Line(2, text)
        yield from _trouble(run.sources[source["path"]] for source in group)


def _trouble(sources: Iterable[SourceState]) -> Iterator[_Line]:
    told = more = 0
    for source in sources:
        path = one_line(source.status.path, 1000)
        if source.status.problem:
            yield _Line(4, Text(f"{path}: {source.status.problem}"))
        lines = list(islice(source.unreadable, _TOLD_UNREADABLE - told))
        for line in lines:
            yield _Line(4, Text(f"{path}:{line.line}: {line.reason}"))
        told += len(lines)
        more += source.status.unreadable - len(lines)
    if more:
        yield _Line(4, Text(f"and {more:,} more"))


def _count(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"

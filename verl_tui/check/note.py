"""One look at runs as a note for people."""

from __future__ import annotations

import io
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from verl_tui.check.colours import STYLES
from verl_tui.check.gate import gate_lines
from verl_tui.check.opening import opening
from verl_tui.health.finding import KINDS_OF_REASONS, kind_of_reason, unjudged_rules
from verl_tui.indicators import INDICATORS
from verl_tui.metrics import describe
from verl_tui.runs.views.state import State
from verl_tui.text import one_line
from verl_tui.words import counted, number

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from verl_tui.monitor import Monitor
    from verl_tui.runs.run import Run
    from verl_tui.runs.source_state import SourceState

_NAMED_UNREADABLE = 3
"""Most unreadable lines listed for each line about sources."""


class _NoteLine(NamedTuple):
    """A line of the note; text from logs in it is never markup."""

    indent: int
    text: Text


def note_text(
    report: Mapping[str, Any],
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
        width: Columns to wrap at, None to leave lines as long as they are, for pipes.
        colour: Whether to write colours, for terminals.
        unfolded: Whether to write out what only follows from another finding.
        verbose: Whether to name the rules that gave no verdict, with the reasons.
    """
    lines: list[_NoteLine] = []
    verdicts = []
    for described in report["runs"]:
        run = monitor.runs[described["name"]]
        verdicts.append(described["verdict"])
        lines += [_NoteLine(0, Text())] if lines else []
        first, *others = opening(described, run, now)
        lines.append(_NoteLine(0, first))
        lines += [_NoteLine(2, line) for line in others]
        lines += _held(described)
        lines += _note(described, run, unfolded=unfolded, verbose=verbose)
    if len(verdicts) > 1:
        lines += [_NoteLine(0, Text()), _NoteLine(0, _summary(verdicts))]
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


def _summary(verdicts: Sequence[str | None]) -> Text:
    """Return the number of runs with each verdict."""
    counts = Counter(verdicts)
    parts = [
        (f"{counts[word]} {word}", STYLES[word])
        for word in ("critical", "warning", "healthy")
        if counts[word]
    ]
    if quiet := counts["no warning"]:
        parts.append((f"{quiet} without a warning", ""))
    if unknown := counts[None]:
        parts.append((f"{unknown} without a verdict", ""))
    return Text.assemble(
        f"{len(verdicts)} runs: ", Text(", ").join(Text(*part) for part in parts)
    )


def _held(described: Mapping[str, Any]) -> Iterator[_NoteLine]:
    """Yield how a run compares with a baseline, if it is held against one."""
    if "against" not in described:
        return
    for at, (line, severity) in enumerate(gate_lines(described["against"])):
        yield _NoteLine(4 if at else 2, Text(line, STYLES.get(severity, "")))


def _note(
    described: Mapping[str, Any], run: Run, *, unfolded: bool, verbose: bool
) -> Iterator[_NoteLine]:
    if described["state"] == State.NO_TRAINING.value:
        yield from _read(described["sources"], run, "plain text")
        return
    yield from _measured(described)
    if described["best"] is not None:
        yield from (
            _NoteLine(2, Text(sentence))
            for sentence in _best_sentences(described["best"])
        )
    yield from (
        _NoteLine(2, Text(_target_sentence(target))) for target in described["targets"]
    )
    yield from _found(described, unfolded=unfolded)
    yield from _unjudged(described["not_judged"], verbose=verbose)
    yield from _read(described["sources"], run)


def _measured(described: Mapping[str, Any]) -> Iterator[_NoteLine]:
    rows = []
    for key, shown in described["losses"].items():
        metric = describe(key)
        rows.append(
            (
                metric.label,
                _with_unit(shown["value"], metric.unit),
                {**shown, "key": key},
            )
        )
    for id, shown in described["indicators"].items():
        unit = INDICATORS[id].unit or describe(shown["key"]).unit
        rows.append((INDICATORS[id].label, _with_unit(shown["value"], unit), shown))
    label = max((len(row[0]) for row in rows), default=0)
    value = max((len(row[1]) for row in rows), default=0)
    for name, text, shown in rows:
        style = "bold red" if shown["value"] is None else ""
        origin = (f"  {shown['key']}, step {shown['step']}", "dim")
        yield _NoteLine(
            2, Text.assemble(f"{name:<{label}}  ", (f"{text:<{value}}", style), origin)
        )


def _with_unit(value: float | None, unit: str) -> str:
    if value is None:
        return "not finite"
    if unit in ("percent", "share"):
        return f"{number(value * (100 if unit == 'share' else 1))} %"
    return f"{number(value)} {unit}".rstrip()


def _best_sentences(best: Mapping[str, Any]) -> Iterator[str]:
    if best["indicator"] in INDICATORS:
        label = INDICATORS[best["indicator"]].label
    else:
        label = best["indicator"]
    words = f"best {label} {number(best['value'])} at step {best['step']}"
    near = best["nearest_checkpoint"]
    latest = best["latest_checkpoint"]
    if best["checkpoint"]:
        yield f"{words}; checkpoint {best['checkpoint']}{_unfinished(near)}"
    elif near is None:
        yield f"{words}; no checkpoint is known"
    else:
        there = "" if near["value"] is None else f", {label} {number(near['value'])}"
        yield (
            f"{words}; no checkpoint of that step, the nearest is of step "
            f"{near['step']}{there}: {near['path']}"
        )
    if latest is not None and latest["complete"] is False and latest != near:
        yield (
            f"the newest checkpoint is of step {latest['step']}{_unfinished(latest)}: "
            f"{latest['path']}"
        )
    for called in best["called_best_at"]:
        yield f"the trainer itself calls best: {called['path']}{_where(called)}"


def _where(called: Mapping[str, Any]) -> str:
    """Return the step of a checkpoint that the trainer named best, and how it is known."""
    if called["step"] is None:
        return "" if called["value"] is None else " (no step has this value)"
    by = f", by its value of {called['key']}" if called["key"] else ""
    return f" (step {called['step']}{by})"


def _unfinished(checkpoint: Mapping[str, Any]) -> str:
    if checkpoint["complete"] is not False:
        return ""
    return " (not known to be complete: the tracker file names an earlier one)"


def _target_sentence(target: Mapping[str, Any]) -> str:
    words = f"target {target['metric']} {number(target['target'])}"
    if target["reached_step"] is not None:
        now = "" if target["value"] is None else f", now {number(target['value'])}"
        return f"{words}: reached at step {target['reached_step']}{now}"
    if target["best"] is None:
        return f"{words}: no value yet"
    return f"{words}: not reached, best {number(target['best'])} at step {target['best_step']}"


def _found(described: Mapping[str, Any], *, unfolded: bool) -> Iterator[_NoteLine]:
    by_cause: dict[str | None, list[Mapping[str, Any]]] = {}
    for finding in described["findings"]:
        by_cause.setdefault(finding["consequence_of"], []).append(finding)
    for i, finding in enumerate(by_cause.pop(None, ())):
        yield from _finding(finding, 2, opened=i == 0)
        consequences = by_cause.pop(finding["id"], None)
        if consequences:
            yield _NoteLine(4, _consequences(consequences, unfolded=unfolded))
            for one in consequences if unfolded else ():
                yield from _finding(one, 6)


def _finding(
    finding: Mapping[str, Any], indent: int, *, opened: bool = False
) -> Iterator[_NoteLine]:
    """Yield a finding; of the one that the note opened with, only what has not been said yet."""
    since = finding["since_step"]
    yield _NoteLine(
        indent,
        Text.assemble(
            (finding["severity"], STYLES[finding["severity"]]),
            f" {finding['id']}",
            "" if since is None else f", since step {since}",
            ":" if opened else f": {finding['message']}",
        ),
    )
    yield from (
        _NoteLine(indent + 2, Text(f"- {evidence}")) for evidence in finding["evidence"]
    )
    if finding["advice"] and not opened:
        yield _NoteLine(indent + 2, Text(f"advice: {finding['advice']}"))
    if finding["source"]:
        yield _NoteLine(indent + 2, Text(f"source: {finding['source']}", "dim"))


def _consequences(consequences: Sequence[Mapping[str, Any]], *, unfolded: bool) -> Text:
    """Return the number of a finding's consequences, with their ids unless they are unfolded."""
    count = f"+{counted(len(consequences), 'consequence')}"
    if unfolded:
        return Text(f"{count}:")
    ids = dict.fromkeys(one["id"] for one in consequences)
    return Text(f"{count}, --consequences writes them out: {', '.join(ids)}", "dim")


def _unjudged(
    rules: Sequence[Mapping[str, str]], *, verbose: bool
) -> Iterator[_NoteLine]:
    """Yield how many rules gave no verdict, on request with their names by reason."""
    if not rules:
        return
    if not verbose:
        words = ", ".join(unjudged_rules([rule["reason"] for rule in rules]))
        yield _NoteLine(2, Text(f"{words} (-v: why)", "dim"))
        return
    for kind in KINDS_OF_REASONS:
        yield from _by_reason(
            [rule for rule in rules if kind_of_reason(rule["reason"]) == kind]
        )


def _by_reason(rules: Sequence[Mapping[str, str]]) -> Iterator[_NoteLine]:
    """Yield how many rules these are, and their names by reason; nothing for none."""
    by_reason: dict[str, list[str]] = {}
    for rule in rules:
        by_reason.setdefault(rule["reason"], []).append(rule["id"])
    if by_reason:
        reasons = [reason for reason, ids in by_reason.items() for _ in ids]
        yield _NoteLine(2, Text(f"{', '.join(unjudged_rules(reasons))}:", "dim"))
    for reason, ids in by_reason.items():
        yield _NoteLine(4, Text(f"{', '.join(ids)}: {reason}", "dim"))


def _read(
    sources: Iterable[Mapping[str, Any]], run: Run, text_is: str = ""
) -> Iterator[_NoteLine]:
    """Yield the sources read; files of the same kind in one directory share a line.

    Args:
        sources: The sources, as in the report.
        run: Their run.
        text_is: The name to use in place of their format; empty for the format.
    """
    for (directory, called), group in _by_directory(sources, run, text_is).items():
        path = (
            group[0]["path"]
            if len(group) == 1
            else f"{len(group):,} files in {directory}"
        )
        records = counted(sum(source["records"] for source in group), "record")
        text = Text(f"read {one_line(path, 1000)}: {called}, {records}", "dim")
        unreadable = sum(source["unreadable"] for source in group)
        if unreadable:
            text.append(f", {counted(unreadable, 'unreadable line')}", "not dim yellow")
        yield _NoteLine(2, text)
        yield from _trouble(run.sources[source["path"]] for source in group)


def _by_directory(
    sources: Iterable[Mapping[str, Any]], run: Run, text_is: str
) -> dict[tuple[Path, str], list[Mapping[str, Any]]]:
    """Group sources by their directory and by what they are called."""
    groups: dict[tuple[Path, str], list[Mapping[str, Any]]] = {}
    for source in sources:
        if text_is and not run.sources[source["path"]].status.size:
            continue  # a directory, in which nothing was found either
        called = text_is or source["program"] or source["format"]
        groups.setdefault((Path(source["path"]).parent, called), []).append(source)
    return groups


def _trouble(sources: Iterable[SourceState]) -> Iterator[_NoteLine]:
    named = more = 0
    notes: set[str] = set()
    for source in sources:
        path = one_line(source.status.path, 1000)
        if source.status.problem:
            yield _NoteLine(4, Text(f"{path}: {source.status.problem}"))
        if source.status.note and source.status.note not in notes:
            notes.add(source.status.note)
            yield _NoteLine(4, Text(f"{path}: {source.status.note}", "dim"))
        lines = list(islice(source.unreadable, _NAMED_UNREADABLE - named))
        for line in lines:
            yield _NoteLine(4, Text(f"{path}:{line.line}: {line.reason}"))
        named += len(lines)
        more += source.status.unreadable - len(lines)
    if more:
        yield _NoteLine(4, Text(f"and {more:,} more"))

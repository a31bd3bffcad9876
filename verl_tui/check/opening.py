"""The first three lines about a run: how it is doing, why, and what to do next."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from rich.text import Text

from verl_tui.evaluation import PREFIX
from verl_tui.health.finding import KINDS_OF_REASONS, coverage, kind_of_reason
from verl_tui.indicators import INDICATORS
from verl_tui.patterns import pattern
from verl_tui.runs.views.checkpoints import usable
from verl_tui.runs.views.provenance import has_estimated_steps
from verl_tui.runs.views.signs_of_life import evidence
from verl_tui.runs.views.state import State, ahead, is_evaluation, unread_form
from verl_tui.times import age, duration
from verl_tui.words import counted, lowered, number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from verl_tui.health.finding import Coverage
    from verl_tui.health.guide import Guide
    from verl_tui.runs.run import Run

STYLES: Mapping[str, str] = {
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
_GO_BACK = pattern(r"\bgo back to\b", re.IGNORECASE)
_UNREAD = "have it write its metrics with their steps as JSONL or CSV, to TensorBoard or to W&B"
_NEXT: Mapping[str, str] = {
    "waiting": "wait for the first steps",
    "stalled": "look at the end of its log and at its processes: no step comes",
    "crashed": "read the end of its log",
    "ended?": "if it should still run, look at the end of its log and at its process",
}
"""States -> what to do where no finding says so."""


def judgement(
    described: Mapping[str, Any], run: Run, guide: Guide
) -> dict[str, str | None]:
    """Return the verdict, why, and what to do next; the latter not of what nobody trains.

    Args:
        described: The run, as in the report without these.
        run: The same run.
        guide: The rules in force.
    """
    judged = judging_rules(described, guide)
    word = verdict(described, judged)
    trained = described["state"] != State.NO_TRAINING.value
    trained = trained and not _is_evaluated(described, run)
    return {
        "verdict": word or None,
        "why": _why(described, run, word, judged) if trained else None,
        "next": _next(described, run) if trained else None,
    }


def judging_rules(described: Mapping[str, Any], guide: Guide) -> int:
    """Return the number of rules that judged a run."""
    skipped = {rule["id"] for rule in described["not_judged"]}
    return len({rule.id for rule in guide.rules} - skipped)


def verdict(described: Mapping[str, Any], judged: int) -> str:
    """Return `critical`, `warning`, `healthy`, or nothing where there is nothing to judge; `no
    warning` where reward, KL, entropy or response length could not be judged.

    Args:
        described: The run, as in the report.
        judged: Number of rules that judged it.
    """
    found = {finding["severity"] for finding in described["findings"]}
    for severity in ("critical", "warning"):
        if severity in found:
            return severity
    if not found and not (judged and described["indicators"]):
        return ""
    return "healthy" if _coverage(described).complete else "no warning"


def no_verdict(described: Mapping[str, Any]) -> str:
    """Say that there is no verdict, and whether one may come with more steps."""
    early = described["step"] is None or _awaits_steps(described)
    return "no verdict yet" if early else "no verdict"


def _coverage(described: Mapping[str, Any]) -> Coverage:
    skipped = {rule["id"] for rule in described["not_judged"]}
    return coverage(described["indicators"], skipped)


def _awaits_steps(described: Mapping[str, Any]) -> bool:
    """Return whether some rule will judge when there are more steps."""
    kinds = {kind_of_reason(rule["reason"]) for rule in described["not_judged"]}
    return bool(described["indicators"]) and KINDS_OF_REASONS[-1] in kinds


def opening(described: Mapping[str, Any], run: Run, now: float) -> Iterator[Text]:
    """Yield the three lines; fewer for an evaluation, which nobody trains, and for
    files that hold no training.

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
    evaluated = _is_evaluated(described, run)
    head = described["verdict"] or no_verdict(described)
    at, condition = _progress(described, run)
    if evaluated:
        head, at = _evaluated(run), ""
    style = STYLES.get(state, "")
    # green only if all is calm
    style = "" if style == "green" and head != "healthy" else style
    facts = ["steps estimated"] if has_estimated_steps(run) else []
    facts += _times(described, run, now)
    yield Text.assemble(
        name,
        ": ",
        (head, STYLES.get(head, "")),
        f"{at}, ",
        (state, style),
        condition,
        *(f", {fact}" for fact in facts),
    )
    for line in ("why", "next"):
        if described[line] is not None:
            yield Text(f"{line}: {described[line]}")


def _is_evaluated(described: Mapping[str, Any], run: Run) -> bool:
    return is_evaluation(run) and not described["findings"]


def _progress(described: Mapping[str, Any], run: Run) -> tuple[str, str]:
    """Return the step that the verdict applies to, and what the state says of steps."""
    step, total, state = (described[key] for key in ("step", "total_steps", "state"))
    if step is None:
        if is_evaluation(run):
            return "", ""
        if unread_form(run):
            return "", ", its steps cannot be read"
        how = {"waiting": "for", "crashed": "before", "ended?": "before"}.get(state)
        first = f"the first of {total} steps" if total else "the first step"
        return "", f" {how} {first}" if how else " without a step"
    if not total:
        goes_on = state in ("waiting", "running", "stalled")
        return f" at step {step}" + " (total unknown)" * goes_on, ""
    if state == "finished" and step >= total:
        return "", f" after all {total} steps"
    # Rounded down, as on the screen: 100% is the end.
    return f" at step {step} of {total} ({min(100, 100 * step // total)}%)", ""


def _times(described: Mapping[str, Any], run: Run, now: float) -> Iterator[str]:
    left = described["remaining_s"]
    quiet = described["last_record_age_s"]
    if left is not None:
        yield f"about {duration(left)} left"
    if quiet is not None:
        ago = age(quiet)
        when = "just now" if ago == "now" else f"{ago} ago"
        by_file = run.dated_by_file and evidence(run, now) is None
        yield f"last record {when}" + " by its file's time" * by_file
    early = ahead(run, now)
    if early is not None:
        yield f"last record dated {age(early)} ahead of the clock"


def _evaluated(run: Run) -> str:
    """Describe the result of an evaluation, or the newest samples of a training whose log is not
    there.
    """
    trained = run.series(f"{PREFIX}count") is not None
    prefix = PREFIX if trained else f"val_{PREFIX}"
    count, score = (run.series(f"{prefix}{name}") for name in ("count", "score"))
    words = "an evaluation"
    if count is not None:
        samples = counted(int(count.values[-1]), "sample")
        words = f"{words} of {samples}"
        if trained:
            words = f"{samples} of step {count.steps[-1]}"
    if score is not None and len(score.values):
        words += f", mean score {score.values[-1]:.4g}"
    return words


def _first(described: Mapping[str, Any]) -> tuple[Mapping[str, Any] | None, int]:
    """Return the finding that the report opens with, and how many more have causes of their own."""
    found = [one for one in described["findings"] if one["consequence_of"] is None]
    return (found[0], len(found) - 1) if found else (None, 0)


def _why(described: Mapping[str, Any], run: Run, word: str, judged: int) -> str:
    if not word:
        return unread_form(run) or _unjudged(described)
    first, more = _first(described)
    message: str = first["message"] if first else ""
    if more:
        message += f" (and {counted(more, 'more finding')} below)"
    if message and word in ("critical", "warning"):
        return message
    missing = _coverage(described).words
    said = f"no warning{missing}; noted: {message}"
    said = said if message else f"none found anything{missing}"
    return f"{counted(judged, 'rule')} judged, {said}"


def _unjudged(described: Mapping[str, Any]) -> str:
    if described["step"] is None:
        return "no step to judge yet"
    if not described["indicators"]:
        return "no indicator of this log is known, nothing to judge"
    if _awaits_steps(described):
        return "too few steps to judge"
    return "no rule applies to what this log has"


def _next(described: Mapping[str, Any], run: Run) -> str:
    first, _ = _first(described)
    if first is not None:
        if not first["advice"]:
            return "look at what the finding names below"
        advice = lowered(first["advice"]).rstrip(".")
        return advice + _checkpoint_before(first, run)
    if described["state"] == "finished" and (keep := _worth_keeping(described["best"])):
        return keep
    if unread_form(run):
        return _UNREAD
    return _NEXT.get(described["state"], "nothing to do")


def _checkpoint_before(finding: Mapping[str, Any], run: Run) -> str:
    """Name the checkpoint to go back to or to resume from, if that is the advice."""
    before = finding["since_step"]
    where = f" from before step {before}"
    if finding["id"] in ("crash", "ended-early"):
        before, where = math.inf, ""
    elif before is None or not _GO_BACK.search(finding["advice"]):
        return ""
    if run.saved_step is not None:
        before = min(before, run.saved_step + 1)
    saved = usable(run)
    newest = max((at for at in saved if at < before), default=None)
    if newest is not None:
        return f". The newest checkpoint{where} is of step {newest}: {saved[newest]}"
    return where and f". No checkpoint{where} is known"


def _worth_keeping(best: Mapping[str, Any] | None) -> str:
    """Name the best checkpoint by the metric; empty if none is known."""
    near = best and best["nearest_checkpoint"]
    if best is None or near is None:
        return ""
    label = metric_label(best["indicator"])
    words = f"keep the checkpoint of step {near['step']}"
    value = number(best["value"])
    if best["checkpoint"]:
        return f"{words}, where the {label} was best ({value})"
    return f"{words}, the nearest to the best {label} ({value} at step {best['step']})"


def metric_label(metric: str) -> str:
    """Return what an indicator, or a log's own key, is called."""
    return INDICATORS[metric].label if metric in INDICATORS else metric

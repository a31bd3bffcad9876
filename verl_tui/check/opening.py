"""The first three lines about a run: how it is doing, why, and what to do next."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from rich.text import Text

from verl_tui.check.colours import STYLES
from verl_tui.evaluation import PREFIX
from verl_tui.health.coverage import coverage
from verl_tui.health.finding import KINDS_OF_REASONS, kind_of_reason
from verl_tui.indicators import INDICATORS
from verl_tui.patterns import pattern
from verl_tui.runs.views.checkpoints import usable
from verl_tui.runs.views.provenance import has_estimated_steps
from verl_tui.runs.views.signs_of_life import evidence
from verl_tui.runs.views.state import State, ahead, is_evaluation, unread_form
from verl_tui.times import age, duration
from verl_tui.words import counted, lowered, number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from verl_tui.health.coverage import Coverage
    from verl_tui.health.guide import Guide
    from verl_tui.runs.run import Run

_GO_BACK = pattern(r"\bgo back to\b", re.IGNORECASE)
_GOES_ON = ("waiting", "running", "stalled")
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
    found: dict[str, str | None] = {"verdict": word or None, "why": None, "next": None}
    if described["state"] != State.NO_TRAINING.value and not _is_evaluated(
        described, run
    ):
        found["why"] = _why(described, run, word, judged)
        found["next"] = _next(described, run)
    return found


def judging_rules(described: Mapping[str, Any], guide: Guide) -> int:
    """Return the number of rules that judged a run."""
    return len(
        {rule.id for rule in guide.rules}
        - {rule["id"] for rule in described["not_judged"]}
    )


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
    if described["state"] == State.NO_TRAINING.value:
        yield Text.assemble((described["name"], "bold"), ": no training found in it")
        return
    yield _headline(described, run, now)
    for line in ("why", "next"):
        if described[line] is not None:
            yield Text(f"{line}: {described[line]}")


def _is_evaluated(described: Mapping[str, Any], run: Run) -> bool:
    return is_evaluation(run) and not described["findings"]


def _headline(described: Mapping[str, Any], run: Run, now: float) -> Text:
    evaluation = _is_evaluated(described, run)
    head = described["verdict"] or no_verdict(described)
    head = _evaluated(run) if evaluation else head
    at = "" if evaluation else _at(described)
    return Text.assemble(
        (described["name"], "bold"),
        ": ",
        (head, STYLES.get(head, "")),
        at,
        ", ",
        _condition(described, run, calm=head == "healthy"),
        ", steps estimated" if has_estimated_steps(run) else "",
        *(f", {fact}" for fact in _times(described, run, now)),
    )


def _at(described: Mapping[str, Any]) -> str:
    """Return the step that the verdict applies to; empty before the first step and after the
    last.
    """
    step, total, state = (described[key] for key in ("step", "total_steps", "state"))
    if step is None or _complete(described):
        return ""
    if total:
        # Rounded down, as on the screen: 100% is the end.
        return f" at step {step} of {total} ({min(100, 100 * step // total)}%)"
    return f" at step {step}" + (" (total unknown)" if state in _GOES_ON else "")


def _complete(described: Mapping[str, Any]) -> bool:
    step = described["step"]
    total = described["total_steps"]
    return (
        described["state"] == "finished"
        and bool(total)
        and step is not None
        and step >= total
    )


def _condition(described: Mapping[str, Any], run: Run, *, calm: bool) -> Text:
    """Return the state, with details that the verdict's step does not give; green only if all is
    calm.
    """
    state = described["state"]
    total = described["total_steps"]
    style = STYLES.get(state, "")
    words = Text(state, style if calm or style != STYLES["healthy"] else "")
    if _complete(described):
        return Text.assemble(words, f" after all {total} steps")
    if described["step"] is not None or is_evaluation(run):
        return words
    if unread_form(run):
        return Text.assemble(words, ", its steps cannot be read")
    first = f"the first of {total} steps" if total else "the first step"
    if state in ("waiting", "crashed", "ended?"):
        return Text.assemble(
            words, f" {'for' if state == 'waiting' else 'before'} {first}"
        )
    return Text.assemble(words, " without a step")


def _times(described: Mapping[str, Any], run: Run, now: float) -> Iterator[str]:
    left = described["remaining_s"]
    quiet = described["last_record_age_s"]
    if left is not None:
        yield f"about {duration(left)} left"
    if quiet is not None:
        ago = age(quiet)
        by = ""
        if run.dated_by_file and evidence(run, now) is None:
            by = " by its file's time"
        yield (
            f"last record just now{by}"
            if ago == "now"
            else f"last record {ago} ago{by}"
        )
    early = ahead(run, now)
    if early is not None:
        yield f"last record dated {age(early)} ahead of the clock"


def _evaluated(run: Run) -> str:
    """Describe the result of an evaluation, or the newest samples of a training whose log is not
    there.
    """
    prefix = PREFIX if run.series(f"{PREFIX}count") is not None else f"val_{PREFIX}"
    count, score = (run.series(f"{prefix}{name}") for name in ("count", "score"))
    words = "an evaluation"
    if count is not None:
        samples = counted(int(count.values[-1]), "sample")
        trained = prefix == PREFIX
        words = (
            f"{samples} of step {count.steps[-1]}"
            if trained
            else f"{words} of {samples}"
        )
    if score is not None and len(score.values):
        words += f", mean score {score.values[-1]:.4g}"
    return words


def _primary(described: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return [one for one in described["findings"] if one["consequence_of"] is None]


def _why(described: Mapping[str, Any], run: Run, word: str, judged: int) -> str:
    findings = _primary(described)
    if findings:
        more = f" (and {counted(len(findings) - 1, 'more finding')} below)"
        message: str = findings[0]["message"] + (more if len(findings) > 1 else "")
        if word in ("healthy", "no warning"):
            missing = _coverage(described).words
            return f"{counted(judged, 'rule')} judged, no warning{missing}; noted: {message}"
        return message
    if word:
        missing = _coverage(described).words
        return f"{counted(judged, 'rule')} judged, none found anything{missing}"
    if said := unread_form(run):
        return said
    if run.step is None:
        return "no step to judge yet"
    if not described["indicators"]:
        return "no indicator of this log is known, nothing to judge"
    if _awaits_steps(described):
        return "too few steps to judge"
    return "no rule applies to what this log has"


def _next(described: Mapping[str, Any], run: Run) -> str:
    for finding in _primary(described)[:1]:
        if finding["advice"]:
            return lowered(finding["advice"]).rstrip(".") + _checkpoint_before(
                finding, run
            )
        return "look at what the finding names below"
    if described["state"] == "finished" and (keep := _worth_keeping(described["best"])):
        return keep
    if unread_form(run):
        return _UNREAD
    return _NEXT.get(described["state"], "nothing to do")


def _checkpoint_before(finding: Mapping[str, Any], run: Run) -> str:
    """Name the checkpoint to go back to or to resume from, if that is the advice."""
    paths = _complete_checkpoints(run)
    if finding["id"] in ("crash", "ended-early"):
        newest = max(paths, default=None)
        if newest is None:
            return ""
        return f". The newest checkpoint is of step {newest}: {paths[newest]}"
    since = finding["since_step"]
    if since is None or not _GO_BACK.search(finding["advice"]):
        return ""
    before = max((at for at in paths if at < since), default=None)
    if before is None:
        return f". No checkpoint from before step {since} is known"
    return f". The newest checkpoint from before step {since} is of step {before}: {paths[before]}"


def _complete_checkpoints(run: Run) -> dict[int, str]:
    """Return the paths of a run's usable checkpoints by step, up to the last that it has saved."""
    saved = run.saved_step
    return {
        at: path for at, path in usable(run).items() if saved is None or at <= saved
    }


def _worth_keeping(best: Mapping[str, Any] | None) -> str:
    """Name the best checkpoint by the metric; empty if none is known."""
    near = None if best is None else best["nearest_checkpoint"]
    if best is None or near is None:
        return ""
    metric = best["indicator"]
    label = INDICATORS[metric].label if metric in INDICATORS else metric
    words = f"keep the checkpoint of step {near['step']}"
    value = number(best["value"])
    if best["checkpoint"]:
        return f"{words}, where the {label} was best ({value})"
    return f"{words}, the nearest to the best {label} ({value} at step {best['step']})"

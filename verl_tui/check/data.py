"""One look at runs as data for programs: what is known of each, the verdict, why, and what to do
next; and as an exit code for cron.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from verl_tui.health.finding import (
    KINDS_OF_REASONS,
    Coverage,
    Episode,
    Verdict,
    coverage_of,
    kind_of_reason,
)
from verl_tui.health.next_step import next_step
from verl_tui.indicators import INDICATORS, factor
from verl_tui.plain_data import Data, plain, value_fields
from verl_tui.runs.run_id import run_id
from verl_tui.runs.views.checkpoints import Best, BestBy, best, called_best, targets_of
from verl_tui.runs.views.identity import as_data, identity
from verl_tui.runs.views.provenance import losses
from verl_tui.runs.views.signs_of_life import phase
from verl_tui.runs.views.state import (
    State,
    is_evaluation,
    remaining,
    silence,
    state,
    unread_form,
)
from verl_tui.sources.formats.catalog import FORMATS
from verl_tui.sources.http.addresses import SERVER
from verl_tui.times import age, duration
from verl_tui.words import counted

if TYPE_CHECKING:
    from verl_tui.comparison.differences import Against
    from verl_tui.health.guide import Guide
    from verl_tui.monitor import Monitor
    from verl_tui.records import SourceStatus
    from verl_tui.runs.run import Run

VERSION = 1
"""Version of the report's schema: grows when a field is removed or changes its meaning."""

HEALTHY, WARNING, CRITICAL, NOTHING_READABLE = 0, 1, 2, 3
"""Exit codes of `check`."""
OUTCOMES = {
    "worse": CRITICAL,
    "not comparable": NOTHING_READABLE,
    **dict.fromkeys(("missing", "changed", "better"), WARNING),
    "within": HEALTHY,
}
"""What is said of a run compared with a baseline, the worst first -> exit code."""
_CODES = {"critical": CRITICAL, "warning": WARNING, "info": HEALTHY, **OUTCOMES}
_LOG_FORMATS = frozenset((*(format.name for format in FORMATS), SERVER))


# -- the report ------------------------------------------------------------------------------------


def report(
    monitor: Monitor,
    now: float,
    by: BestBy = BestBy(),  # noqa: B008 - it is immutable
    held: Mapping[str, Against] | None = None,
) -> Data:
    """Return a report on all runs, ready for JSON: no value is NaN or infinite.

    Args:
        monitor: Has read and judged.
        now: Seconds since the epoch.
        by: The metric that the best checkpoint is chosen by.
        held: The runs compared with a baseline, by name: only these are reported; None for a report
            on all runs.
    """
    runs, wanted = [], monitor.config.targets
    for name, run in monitor.runs.items():
        if held is None or name in held:
            verdict = monitor.verdicts.get(name, Verdict())
            found = run_data(run, verdict, monitor.guide, now, by, wanted)
            if held is not None:
                against = plain(held[name])
                found = {**found, "against": {**against, "outcome": outcome(against)}}
            runs.append(found)
    whole = {
        "version": VERSION,
        "runs": runs,
        "passed_over": [one._asdict() for one in monitor.passed],
    }
    return {**whole, **_summed(runs)} if held else whole


def _summed(runs: Sequence[Data]) -> Data:
    """Return the sum of what is said of runs that are compared with a baseline."""
    found = [one["against"]["outcome"] for one in runs]
    summed = {
        "baseline": runs[0]["against"]["baseline"],
        "worst_first": [one["name"] for one in sorted(runs, key=_how_bad)],
        "outcomes": {word: found.count(word) for word in OUTCOMES if word in found},
    }
    return {"against": summed}


def outcome(against: Data) -> str:
    """Return the worst that is said of a run compared with a baseline, one of `OUTCOMES`."""
    found = {one["breach"] for one in against["figures"]}
    if found <= {"missing"}:
        return "not comparable"
    return next((word for word in OUTCOMES if word in found), "within")


def _how_bad(run: Data) -> tuple[int, int]:
    """Return the sort key of runs compared with a baseline, the worst first: by exit code, then by
    what is said of them.
    """
    codes = _run_codes(run)
    code = max(codes) if CRITICAL not in codes else NOTHING_READABLE + 1
    return -code, [*OUTCOMES].index(run["against"]["outcome"])


def exit_code(report: Data, *, strict: bool = False) -> int:
    """Return 0 for healthy, 1 if the worst finding is a warning, 2 if it is critical, 3 if nothing
    is readable; runs compared with a baseline are also judged by that, see `OUTCOMES`.

    Args:
        report: What `report` returned.
        strict: Whether 3 is also returned for a run without a verdict, unless another is critical.
    """
    if not is_readable(report):
        return NOTHING_READABLE
    codes = {HEALTHY}
    for run in report["runs"]:
        codes |= _run_codes(run)
        if strict and run["verdict"] is None:
            codes.add(NOTHING_READABLE)
    return CRITICAL if CRITICAL in codes else max(codes)


def _run_codes(run: Data) -> set[int]:
    found = {HEALTHY, *(_CODES[finding["severity"]] for finding in run["findings"])}
    return found | {_CODES[run["against"]["outcome"]]} if "against" in run else found


def is_readable(report: Data) -> bool:
    """Return whether there was a record in any log: not in settings or dumps beside one."""
    # The format of a console is named after its program.
    return any(
        source["records"]
        and (source["format"] in _LOG_FORMATS or source["program"] is not None)
        for run in report["runs"]
        for source in run["sources"]
    )


# -- a run -----------------------------------------------------------------------------------------


def run_data(
    run: Run,
    verdict: Verdict,
    guide: Guide,
    now: float,
    by: BestBy = BestBy(),  # noqa: B008 - it is immutable
    wanted: Mapping[str, float] | None = None,
) -> Data:
    """Return what is known of a run, as the report has it.

    Args:
        run: The run.
        verdict: The verdict on it.
        guide: The rules by which it was judged.
        now: Seconds since the epoch.
        by: The metric that the best checkpoint is chosen by.
        wanted: The user's targets.
    """
    left, current = remaining(run, now), state(run, now)
    top = best(run, by.metric, lowest=by.lowest)
    metrics = ((id, key) for id in INDICATORS if (key := run.indicators.get(id)))
    described = {
        "name": run.name,
        "id": run_id(run),
        "paths": list(run.paths),
        "dialect": run.dialect,
        "state": current.value,
        "step": run.step,
        "total_steps": run.total_steps,
        **_age(run, now),
        "indicators": _newest(run, metrics),
        "findings": [finding.as_data() for finding in verdict.findings],
        "not_judged": [rule._asdict() for rule in verdict.not_judged],
        "sources": [source_data(one) for one in run.statuses],
        "best": _best(run, top),
        "targets": targets_of(run, wanted or {}),
        "history": list(map(_episode, verdict.history)),
        "identity": as_data(identity(run)),
        "losses": _newest(run, zip(losses(run), losses(run), strict=True)),
        "remaining_s": None if left is None else round(left, 3),
        "phase": None if current is State.FINISHED else phase(run),
    }
    following = next_step(run, next(iter(verdict.primary), None), current, top)
    return {**described, **_judgement(described, run, guide, verdict, following)}


def times_in_words(found: Data, by: str = "") -> Iterator[str]:
    """Yield what an answer tells of a run's times: whether its steps are estimated, what is left,
    and when its last record came.

    Args:
        found: The answer.
        by: What says when that was, where it is not the record itself.
    """
    if found["steps_estimated"]:
        yield "steps estimated"
    if (left := found["remaining_s"]) is not None:
        passed = found["last_record_age_s"] or 0.0
        yield f"about {duration(max(0.0, left - passed))} left"
    if (quiet := found["last_record_age_s"]) is not None:
        ago = age(quiet)
        yield f"last record {'just now' if ago == 'now' else f'{ago} ago'}{by}"


def _age(run: Run, now: float) -> Data:
    quiet = silence(run, now)
    by = "file" if run.dated_by_file else "record"
    return {
        "last_record_age_s": None if quiet is None else round(quiet, 3),
        "last_record_by": None if quiet is None else by,
    }


def _episode(episode: Episode) -> Data:
    described = {**episode._asdict(), "severity": episode.severity.word}
    del described["key"]
    return described


def source_data(status: SourceStatus) -> Data:
    """Return what was read of a source, ready for JSON."""
    same = ("program", "records", "unreadable", "note")
    rest = {name: getattr(status, name) for name in same}
    return {"path": status.path, "format": status.title, **rest}


def _newest(run: Run, metrics: Iterable[tuple[str, str]]) -> Data:
    """Return the newest values of indicators, or of metrics, each with its key and its step."""
    found = {}
    for id, key in metrics:
        if (series := run.present(key)) is not None:
            value = value_fields(series.values[-1], factor(id, key))
            named = {"key": key} if id in INDICATORS else {}
            found[id] = {**named, **value, "step": series.steps[-1]}
    return found


def _best(run: Run, found: Best | None) -> Data | None:
    """Return where the metric was best, first of equals, with the checkpoints of that step, next to
    it, and newest.
    """
    if found is None:
        return None
    called = called_best(run)
    return {
        "indicator": found.metric,
        "key": found.key,
        "step": found.step,
        "value": found.value,
        "checkpoint": found.checkpoint and found.checkpoint.path,
        "nearest_checkpoint": found.nearest and found.nearest._asdict(),
        "latest_checkpoint": found.latest and found.latest._asdict(),
        "called_best": [checkpoint.path for checkpoint in called],
        "called_best_at": [{**one._asdict(), "key": None} for one in called],
    }


# -- the verdict, why, and what to do next ---------------------------------------------------------


def _judgement(
    described: Data, run: Run, guide: Guide, verdict: Verdict, following: str
) -> dict[str, str | None]:
    """Return the verdict, why, and, of a training, what to do next."""
    skipped = {rule.id for rule in verdict.not_judged}
    judged = len({rule.id for rule in guide.rules} - skipped)
    covered = coverage_of(run, verdict)
    word = _verdict(described, judged, covered)
    if not is_trained(described, run):
        return {"verdict": word, "why": None, "next": None}
    why = _opening(described)
    if word is None:
        why = unread_form(run) or _unjudged(described)
    elif not why or word not in _CODES:
        noted, words = f"; noted: {why}" if why else "", covered.words
        said = f"{'no warning' if why else 'none found anything'}{words}{noted}"
        why = f"{counted(judged, 'rule')} checked, {said}"
    return {"verdict": word, "why": why, "next": following}


def _verdict(described: Data, judged: int, covered: Coverage) -> str | None:
    """Return `critical`, `warning`, `healthy`, or None where there is nothing to judge; `no
    warning` where reward, KL, entropy or response length could not be judged.
    """
    found = {finding["severity"] for finding in described["findings"]}
    for severity in ("critical", "warning"):
        if severity in found:
            return severity
    if not found and not (judged and described["indicators"]):
        return None
    return "healthy" if covered.complete else "no warning"


def is_trained(described: Data, run: Run) -> bool:
    """Return whether a run is a training: neither files without one nor an evaluation."""
    if described["state"] == State.NO_TRAINING.value:
        return False
    return bool(described["findings"]) or not is_evaluation(run)


def awaits_steps(described: Data) -> bool:
    """Return whether some rule will judge when there are more steps."""
    kinds = {kind_of_reason(rule["reason"]) for rule in described["not_judged"]}
    return bool(described["indicators"]) and KINDS_OF_REASONS[-1] in kinds


def _opening(described: Data) -> str:
    """Return what the first finding says, and that more have causes of their own; empty without
    any.
    """
    found = [one for one in described["findings"] if one["consequence_of"] is None]
    more = f" (and {counted(len(found) - 1, 'more finding')})" if found[1:] else ""
    return f"{found[0]['message']}{more}" if found else ""


def _unjudged(described: Data) -> str:
    if described["step"] is None:
        return "no step to check yet"
    if not described["indicators"]:
        return "no indicator of this log is known, nothing to check"
    if awaits_steps(described):
        return "too few steps to check"
    return "no rule applies to what this log has"

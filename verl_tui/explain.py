"""Why a run is as its verdict says: what moved first and what followed, the samples that show it,
what is new in its log, the setting to change.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from math import isfinite
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_tui.check.data import run_data
from verl_tui.health.consequences import NEWS
from verl_tui.health.finding import Severity, coverage_of
from verl_tui.health.limits import CAUSES
from verl_tui.health.moves import AROUND, FEWEST, PAST, is_of_training, moves
from verl_tui.health.next_step import ENDS
from verl_tui.health.root_cause import root_cause, waiting
from verl_tui.metrics import describe
from verl_tui.on_demand.samples import StepSamples
from verl_tui.plain_data import plain
from verl_tui.records import Sample
from verl_tui.runs.run_id import run_id
from verl_tui.text import one_line
from verl_tui.times import age
from verl_tui.words import counted, number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from verl_tui.health.finding import Finding, Verdict
    from verl_tui.health.guide import Guide
    from verl_tui.health.moves import Move, Moves
    from verl_tui.runs.run import Run
    from verl_tui.runs.samples import Place

VERSION = 1
"""Version of the data: grows when a field is removed or changes its meaning."""
_METHOD = (
    f"heuristic: a metric moves with the first of three points in a row beyond three interquartile "
    f"ranges from the quartiles of the {PAST} before; what moved first need not be the cause"
)
_FOLLOWED = 4
"""Most parts behind the break that the line names."""
_READ = 4 * 2**20
"""Bytes of a dump that are looked at."""
_HEAD, _TAIL = 200, 120
"""Characters shown of the beginning and the end of a text."""
_SHRUNK = ("length-collapse", "response-short")
_WHY = {
    "crash": "fits the error: a guess",
    "": "twice the room, if the text is sound: a guess",
}
"""Why a setting should be changed that is not unusual."""


class Part(NamedTuple):
    """One thing that happened, and how many steps from the break, below 0 before it."""

    step: int | None
    what: str
    by: int = 0
    key: str | None = None
    finding: str | None = None
    moved: bool = False
    """Whether a metric left its usual range there."""


def explain(run: Run, verdict: Verdict, guide: Guide, now: float) -> dict[str, Any]:
    """Return why a run is as its verdict says, ready for JSON; dumps of its samples are read.

    Args:
        run: The run.
        verdict: The verdict on it.
        guide: The rules by which it was judged.
        now: Seconds since the epoch.
    """
    known = run_data(run, verdict, guide, now)
    worst = next(iter(verdict.primary), None)
    news = worst.evidence if worst is not None else ()
    found = {
        "version": VERSION,
        "run": run.name,
        "run_id": run_id(run),
        "state": known["state"],
        "step": run.step,
        "verdict": known["verdict"],
        "line": "",
        "finding": worst and worst.as_data(),
        "others": [one.id for one in verdict.primary[1:]],
        "chain": [],
        "method": None,
        "samples": [],
        "new_in_log": [one for one in news if one.startswith(NEWS)],
        "setting": None,
        "next": known["next"],
    }
    if worst is None:
        found["line"] = _nothing(run, verdict, guide, known)
    elif worst.id in (*ENDS, "hang"):
        found |= _stood_still(run, worst, now)
    else:
        found |= _changed(run, verdict, guide, worst)
    explained: dict[str, Any] = plain(found)
    return explained


def _nothing(run: Run, verdict: Verdict, guide: Guide, known: Mapping[str, Any]) -> str:
    """Return what is said of a run without a finding."""
    if not (known["verdict"] and known["why"]):
        return known["why"] or "no training, nothing to explain"
    every = {rule.id for rule in guide.rules} - guide.silenced
    judged = len(every - {one.id for one in verdict.not_judged})
    rules = f"{judged} of {counted(len(every), 'rule')} could judge"
    return f"nothing found: {rules}{coverage_of(run, verdict).words}"


def _stood_still(run: Run, found: Finding, now: float) -> dict[str, Any]:
    """Return when a run made its last record, and the line of its log that says why."""
    said, chain, setting = [found.message], [], None
    hangs = found.id == "hang"
    if run.last_record is not None:
        moment = datetime.fromtimestamp(run.last_record, timezone.utc)
        by = " by its file's time" * run.dated_by_file
        ago = age(now - run.last_record)
        what = f"last record {moment:%Y-%m-%d %H:%M:%S} UTC{by}, {ago} ago"
        chain.append(Part(run.step, what))
        said += [what] * hangs
    cause = (waiting(run) if hangs else None) or root_cause(run)
    if cause is not None:
        said.append(f"{cause.path}, line {cause.event.line}")
        chain.append(Part(cause.event.step, cause.line))
        setting = cause.setting and _setting(*cause.setting, _WHY["crash"])
    chain.append(Part(found.since_step, found.headline, finding=found.id))
    return {"line": "; ".join(said), "chain": chain, "setting": setting}


# -- a run that changed ----------------------------------------------------------------------------


def _changed(
    run: Run, verdict: Verdict, guide: Guide, found: Finding
) -> dict[str, Any]:
    """Return what moved about the beginning of a finding, and what shows it."""
    after, is_info = verdict.consequences(found), found.severity is Severity.INFO
    around = None if is_info else moves(run, found, after)
    if around is None:
        chain = [Part(found.since_step, found.headline, finding=found.id)]
        return {"line": "no warning; noted: " * is_info + found.message, "chain": chain}
    chain = [*_parts(around, found, after)]
    chain.sort(key=lambda one: (one.by or 0, one.finding != found.id))
    return {
        "line": (_line if around.known >= FEWEST else _early)(chain, around, found),
        "chain": chain,
        "method": _METHOD,
        "samples": [*_samples(run, found, around.step)],
        "setting": _suspect(run, guide, found),
    }


def _parts(around: Moves, found: Finding, after: Sequence[Finding]) -> Iterator[Part]:
    """Yield moves and findings; a finding whose metric has moved stands at that move."""
    of = {one.key: one for one in (*after[::-1], found)}
    for move in around.moves:
        one = of.get(move.key)
        by, id = move.step - around.step, one.id if one else None
        yield Part(move.step, _went(move), by, move.key, id, moved=True)
    moved: set[str | None] = {move.key for move in around.moves}
    for one in (replace(found, since_step=around.step), *after):
        step = one.since_step
        if step is not None and one.key not in moved:
            yield Part(step, one.headline, step - around.step, one.key, one.id)
            moved.add(one.key)


def _went(move: Move) -> str:
    """Return how a metric went."""
    about = describe(move.key)
    times = 100 if about.unit == "share" else 1
    begun, now = (
        number(times * one) if isfinite(one) else str(one) for one in move[2:]
    )
    percent = " %" * (about.unit in ("share", "percent"))
    return f"{one_line(about.label, 80)} {begun} → {now}{percent}"


def _line(chain: Sequence[Part], around: Moves, found: Finding) -> str:
    """Return the course in a line: what moved first, by how many steps, what followed."""
    course = [one for one in chain if one.moved or one.by >= 0]
    at = next(i for i, one in enumerate(course) if one.finding == found.id)
    words, last = [], course[0].by
    for one in course[: at + 1 + _FOLLOWED]:
        gap = one.by - last
        last += gap
        later = f"{counted(gap, 'step')} later" if gap else "at the same step"
        words.append(f"{later} {one.what} (step {around.step + last})")
    words[0] = words[0].replace("at the same step ", "first " * bool(at), 1)
    words[at] += f": {found.headline}" * course[at].moved
    none = f"; nothing else left its usual range in the {AROUND} points before"
    return "; ".join(words) + none * (not at)


def _early(chain: Sequence[Part], around: Moves, found: Finding) -> str:
    """Return what is known of a finding that began before any range was usual."""
    since = f"{found.headline} since step {around.step}"
    if not around.known:
        return f"{since}, the first that is logged: nothing moved before it"
    few = f"only {counted(around.known, 'point')} before it to say what moved first"
    went = ", ".join(one.what for one in chain if one.moved)
    return f"{since}, with {few}" + f"; since the first point: {went}" * bool(went)


# -- what shows it ---------------------------------------------------------------------------------


def _suspect(run: Run, guide: Guide, found: Finding) -> dict[str, Any] | None:
    """Return the setting that is furthest from what is usual, of those that may be to blame."""
    kinds = dict.fromkeys(rule.causes for rule in guide.rules if rule.id == found.id)
    known = [one for kind in kinds for one in CAUSES[kind](run)]
    usable = [one for one in known if one.proposed and not _is_idle(run, one.key)]
    worst = max(usable, key=attrgetter("times"), default=None)
    return worst and _setting(worst.key, worst.value, worst.proposed, worst.why)


def _is_idle(run: Run, key: str) -> bool:
    """Return whether a setting is of a KL term that is switched off."""
    switches = map(run.config.find, (["use_kl_loss"], ["use_kl_in_reward"]))
    stated = [one[1] for one in switches if one is not None]
    return "kl" in key.lower() and False in stated and True not in stated


def _setting(key: str, value: object, proposed: object, reason: str) -> dict[str, Any]:
    reason = reason.strip() or _WHY[""]
    return {"key": key, "value": value, "proposed": proposed, "why": reason}


def _samples(run: Run, found: Finding, step: int) -> Iterator[dict[str, Any]]:
    """Yield a sample from before the break and one of the newest, of training where there are
    some.
    """
    every = run.samples.up_to(run.end) if is_of_training(found.key) else ()
    places = [one for one in every if not one.validation] or every
    before = [one for one in places if one.step < step]
    for place in (*before[-1:], *places[len(before) :][-1:]):
        yield _sample(run, found, place)


def _sample(run: Run, found: Finding, place: Place) -> dict[str, Any]:
    """Return the longest sample of a step, or the shortest, where that is what was found, else that
    with the middle score; or why it cannot be read.
    """
    said, why = place._asdict(), "middle score"
    if describe(found.key or "").group == "length":
        why = "shortest" if found.id in _SHRUNK else "longest"
    try:
        step = StepSamples(run.samples, place, size=_READ)
        facts = step.facts()
        by_length = sorted(facts, key=attrgetter("length"))
        scored = [one for one in facts if one.score is not None]
        by_score = sorted(scored, key=attrgetter("score")) or facts
        middle = by_score[len(by_score) // 2]
        at = {"longest": by_length[-1], "shortest": by_length[0]}.get(why, middle).index
        row = step.row(at)
    except (OSError, IndexError) as error:
        return {**said, "problem": f"cannot be read: {error}"}
    if not isinstance(row, Sample):
        return {**said, "problem": f"line {row.line} cannot be read: {row.reason}"}
    names = ("prompt", "response", "ground_truth")
    texts = {name: _short(getattr(row, name)) for name in names}
    return {**said, "why": f"{why} of {len(facts)}", "score": row.score, **texts}


def _short(text: str | None) -> str | None:
    """Return a text in one line, its middle left out where it is long."""
    if text is None or len(text) <= _HEAD + _TAIL:
        return text and one_line(text, _HEAD + _TAIL)
    return f"{one_line(text[:_HEAD])} … {one_line(text[-_TAIL:])}"

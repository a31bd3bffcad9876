"""Why a run is as its verdict says: what moved first and what followed, the samples that show it,
what is new in its log, the setting to change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from itertools import pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.check.data import run_data
from verl_tui.health.consequences import NEWS
from verl_tui.health.finding import Finding, Severity, Verdict, number
from verl_tui.health.limits import CAUSES
from verl_tui.health.moves import (
    AROUND,
    BLUR,
    FEWEST,
    PAST,
    Moves,
    is_of_training,
    moves,
)
from verl_tui.health.next_step import ENDS
from verl_tui.health.root_cause import root_cause, waiting
from verl_tui.metrics import describe
from verl_tui.on_demand.samples import StepSamples
from verl_tui.patterns import pattern
from verl_tui.plain_data import Data, plain
from verl_tui.records import Sample
from verl_tui.runs.run_id import run_id
from verl_tui.text import one_line
from verl_tui.times import age
from verl_tui.words import counted, figure

if TYPE_CHECKING:
    from verl_tui.health.guide import Guide
    from verl_tui.runs.run import Run
    from verl_tui.runs.samples import Place

_METHOD = (
    f"heuristic: a metric moves with the first of three points in a row beyond three interquartile "
    f"ranges from the quartiles of the {PAST} before; what moved first need not be the cause"
)
_FOLLOWED = 4
"""Most parts after the break that the line names."""
_READ, _HEAD, _TAIL = 4 * 2**20, 200, 120
"""Bytes of a dump that are looked at; characters shown of a text's beginning and its end."""
_START = ", from the start"
_ROOM = "twice the room, if the text is sound: a guess"
_CHANGE = pattern(
    r"(?<![\w./-])(?P<key>[\w./-]{1,80}) (?P<value>[\w.+-]{1,40}) → (?P<proposed>[\w.+-]{0,40}\w)"
)
"""How advice on an error names a setting to change."""


class Part(NamedTuple):
    """One thing that happened: a metric moved, or a finding begins; and how many steps after the
    break, below 0 before it.
    """

    step: int | None
    what: str
    by: int = 0
    key: str | None = None
    finding: str | None = None
    moved: bool = False


def explain(run: Run, verdict: Verdict, guide: Guide, now: float) -> Data:
    """Return why a run is as its verdict says, ready for JSON; dumps of its samples are read.

    Args:
        run: The run.
        verdict: The verdict on it.
        guide: The rules by which it was judged.
        now: Seconds since the epoch.
    """
    known = run_data(run, verdict, guide, now)
    found = {
        "version": 1,
        "run": run.name,
        "run_id": run_id(run),
        **{name: known[name] for name in ("state", "step", "verdict")},
        "line": known["why"] or "no training, nothing to explain",
        **dict.fromkeys(("finding", "setting", "method")),
        **dict.fromkeys(("chain", "samples", "new_in_log", "others"), ()),
        "next": known["next"],
    }
    if verdict.primary:
        worst, *others = verdict.primary
        found |= {
            "finding": worst.as_data(),
            "new_in_log": [one for one in worst.evidence if one.startswith(NEWS)],
            "others": [one.id for one in others],
            **_course(run, verdict, guide, now),
        }
    elif known["verdict"] and known["why"]:
        count = len({rule.id for rule in guide.rules} - guide.silenced)
        found["line"] = f"of {counted(count, 'rule')}, {known['why']}"
    explained: Data = plain(found)
    return explained


def _stood_still(run: Run, found: Finding, now: float) -> Data:
    """Return when a run made its last record, and the line of its log that says why."""
    said, hangs = [found.message], found.id == "hang"
    if hangs and run.last_record is not None:
        moment = datetime.fromtimestamp(run.last_record, timezone.utc)
        by = " by its file's time" * run.dated_by_file
        ago = age(now - run.last_record)
        said.append(f"last record {moment:%Y-%m-%d %H:%M:%S} UTC{by}, {ago} ago")
    cause = (waiting(run) if hangs else None) or root_cause(run)
    if cause:
        said.append(f"{cause.path}, line {cause.event.line}")
    change = _CHANGE.search((found.advice or "").replace(",", ""))
    setting = change and {**change.groupdict(), "why": "fits the error: a guess"}
    chain = [Part(found.since_step, one) for one in found.evidence]
    return {"line": "; ".join(said), "chain": chain, "setting": setting}


# -- a run that changed ----------------------------------------------------------------------------


def _course(run: Run, verdict: Verdict, guide: Guide, now: float) -> Data:
    """Return what moved about the beginning of the worst finding, and what shows it."""
    found = verdict.primary[0]
    if found.id in (*ENDS, "hang"):
        return _stood_still(run, found, now)
    after, is_info = verdict.consequences(found), found.severity is Severity.INFO
    around = None if is_info else moves(run, found, after)
    if not around:
        chain = [Part(found.since_step, found.headline, finding=found.id)]
        return {"line": "noted: " * is_info + found.message, "chain": chain}
    chain = _chain(around, found, after)
    return {
        "line": (_line if around.known >= FEWEST else _early)(chain, around, found),
        "chain": chain,
        "method": _METHOD,
        "samples": [*_samples(run, found, around.step)],
        "setting": _setting(run, guide, found),
    }


def _chain(around: Moves, found: Finding, after: Sequence[Finding]) -> list[Part]:
    """Return moves and findings in order; a finding whose metric has moved stands at that move."""
    of = {one.key: one.id for one in (*after[::-1], found)}
    parts = {}
    for key, step, *values in around.moves:
        about = describe(key)
        went = [figure(one, about.unit, number) for one in values]
        what = f"{one_line(about.label, 80)} {' → '.join(went)}"
        parts[key] = Part(step, what, step - around.step, key, of.get(key), moved=True)
    for one in (replace(found, since_step=around.step), *after):
        if one.since_step is not None:
            by = one.since_step - around.step
            so = _START * (one.since_step <= around.first)
            part = Part(one.since_step, one.headline + so, by, one.key, one.id)
            parts.setdefault(one.key or one.id, part)
    return sorted(parts.values(), key=lambda one: (one.by, one.finding != found.id))


def _line(chain: Sequence[Part], around: Moves, found: Finding) -> str:
    """Return the course in a line: what moved first, by how many steps, what followed."""
    course = [one for one in chain if _is_sure(one, around)]
    at = next(i for i, one in enumerate(course) if one.finding == found.id)
    words = []
    for before, one in pairwise((course[0], *course[: at + 1 + _FOLLOWED])):
        gap = one.by - before.by
        later = f"{counted(gap, 'step')} later" if gap else "at the same step"
        words.append(f"{later} {one.what} (step {one.step})")
    words[0] = words[0].replace("at the same step ", "first " * bool(at), 1)
    words[at] += f": {found.headline}" * course[at].moved
    if not any(-AROUND <= one.by < 0 for one in chain):
        points = min(AROUND, around.known)
        words.append(f"nothing else left its usual range in the {points} points before")
    return "; ".join(words)


def _is_sure(one: Part, around: Moves) -> bool:
    """Return whether a part has its place in the order. Windows blur where findings begin: only
    where no metric moved they tell what came before, unless it has been so since the first point.
    """
    early = around.first < around.step + one.by and one.by < -BLUR
    return one.moved or one.by >= 0 or (early and not around.moves)


def _early(chain: Sequence[Part], around: Moves, found: Finding) -> str:
    """Return what is known of a finding that began before any range was usual."""
    if not around.known:
        return (
            f"{found.headline}{_START} (step {around.step}, the first that is logged)"
        )
    since = f"{found.headline} since step {around.step}"
    few = f"only {counted(around.known, 'point')} before it to say what moved first"
    went = ", ".join(one.what for one in chain if one.moved)
    return f"{since}, with {few}" + f"; since the first point: {went}" * bool(went)


# -- what shows it ---------------------------------------------------------------------------------


def _setting(run: Run, guide: Guide, found: Finding) -> Data | None:
    """Return the setting that is furthest from what is usual, of those that may be to blame."""
    rules = (rule for rule in guide.rules if rule.id == found.id)
    known = (one for rule in rules for one in CAUSES[rule.causes](run) if one.proposed)
    worst = max(known, key=attrgetter("times"), default=None)
    if not worst:
        return None
    return {**worst._asdict(), "why": worst.why.strip(": ") or _ROOM}


def _samples(run: Run, found: Finding, step: int) -> Iterator[Data]:
    """Yield a sample from before the break and one of the newest, of training where there are
    some.
    """
    every = run.samples.up_to(run.end) if is_of_training(found.key) else ()
    places = [one for one in every if not one.validation] or every
    before = [one for one in places if one.step < step]
    for place in (*before[-1:], *places[len(before) :][-1:]):
        yield {**place._asdict(), **_sample(run, place)}


def _sample(run: Run, place: Place) -> Data:
    """Return the sample of a step that has the middle score, or why it cannot be read."""
    try:
        step = StepSamples(run.samples, place, size=_READ)
        scored = step.ranked()
        row = step.row(scored[len(scored) // 2] if scored else 0)
    except (OSError, IndexError) as error:
        return {"why": f"cannot be read: {error}"}
    if not isinstance(row, Sample):
        return {"why": f"line {row.line} cannot be read: {row.reason}"}
    score = f"the middle score, {number(row.score or 0)}" if scored else "no score"
    texts = {"prompt": _short(row.prompt), "response": _short(row.response)}
    return {"why": f"{score}, of {len(step)}", "score": row.score, **texts}


def _short(text: str) -> str:
    """Return a text in one line, its middle left out where it is long."""
    if len(text) <= _HEAD + _TAIL:
        return one_line(text, _HEAD + _TAIL)
    return f"{one_line(text[:_HEAD])} … {one_line(text[-_TAIL:])}"


# -- written ---------------------------------------------------------------------------------------


def in_words(found: Data) -> Iterator[tuple[str, str]]:
    """Yield what `explain` returned in words, each with what it is; a text may be empty or None."""
    yield found["verdict"] or "no verdict", found["line"]
    for part in found["chain"]:
        yield f"step {'–' if part['step'] is None else part['step']}", part["what"]
    for one in found["samples"]:
        kind = "validation" if one["validation"] else "sample"
        yield kind, f"step {one['step']}: {one['why']}"
        yield "prompt", one.get("prompt")
        yield "response", one.get("response")
    yield from (("log", line) for line in found["new_in_log"])
    setting = found["setting"]
    if setting is not None:
        change = f"{setting['value']} → {setting['proposed']}"
        yield "setting", f"{setting['key']} {change} ({setting['why']})"
    yield "also found", ", ".join(found["others"])
    yield "next", found["next"]
    yield "method", found["method"]

"""The columns that a rule judges on one run: its metrics as finite numbers, its exemptions, what
its condition finds.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from verl_tui.health.conditions import KINDS
from verl_tui.health.conditions.column import (
    Breach,
    Column,
    Flags,
    Found,
    Judged,
    Numbers,
    Places,
    means,
    open_breach,
    shifted,
)
from verl_tui.health.exemptions import (
    BY_VALUES,
    FOR_WHOLE_RUN,
    WITHOUT_BREACH,
    exempt,
)
from verl_tui.health.finding import LACKS, Finding, number
from verl_tui.health.limits import LIMITS, Limit, all_cut, response_limit, stated_limit
from verl_tui.health.reward import components, gaining_components
from verl_tui.health.rule_context import RuleContext, present_names
from verl_tui.indicators import INDICATORS, factor
from verl_tui.runs.views.devices import WORKS, logs_device_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from verl_tui.health.guide import Rule
    from verl_tui.runs.cached import LastResult
    from verl_tui.runs.series import Series

    Kept = Mapping[Any, LastResult]

_MOST_PARTS, _MOST_KEYS = 12, 50
"""Most parts of the reward, and most keys that a rule with a wildcard judges."""
_OFTEN = 8
"""The first points of a breach are checked one by one, as many again at every second, and so on."""
_WHOSE = {
    "tutorial": "the verl tutorials'",
    "verl": "verl's own",
    "other": "other frameworks'",
}


def find_in_columns(context: RuleContext, kept: Kept) -> Sequence[Found]:
    """Return what is found in each column of a rule, or why none is judged.

    Args:
        context: The run, and the rule.
        kept: Figures by their name.
    """
    rule = context.rule
    if of_others := _of_others_names(context):
        return [Found(of_others)]
    keys = _keys(context)
    reasons = {key: exempt(context, [key], FOR_WHOLE_RUN) for key in keys}
    free = [key for key, reason in reasons.items() if reason is None]
    second = context.key_of(rule.beside_indicator, rule.beside_metric)
    if missing := _missing(context, len(keys), len(free), second):
        return [Found(missing)]
    if rule.stream == "mean of all" and free:
        return [_judge(context, kept, free)]
    judged = [
        _judge(context, kept, [key], _beside(rule, key, free, second)) for key in free
    ]
    return [*map(Found, filter(None, reasons.values())), *judged]


def _beside(
    rule: Rule, key: str, free: Sequence[str], second: str | None
) -> Sequence[str]:
    """Return the metrics that one is compared with: all others, or the rule's second one."""
    if rule.stream == "of the others":
        return [other for other in free if other != key]
    return [second] if second else []


def _of_others_names(context: RuleContext) -> str | None:
    """Return why a rule does not judge a log with such names, None if it does."""
    rule, spoken = context.rule, context.run.dialect
    if spoken in rule.not_in or spoken in rule.dialects:
        return rule.not_in.get(spoken)
    whose = " or ".join(_WHOSE[one] for one in rule.dialects)
    return f"checks only logs with {whose} names; these are {_WHOSE[spoken]}"


def _judge(
    context: RuleContext, kept: Kept, keys: Sequence[str], beside: Sequence[str] = ()
) -> Found:
    """Judge one metric, or several as one column, beside those that it is compared with."""
    rule, run = context.rule, context.run
    limit = LIMITS[rule.of](run, context.guide)
    gate = _gate(context)
    series = [*filter(None, map(run.series, (*keys, *beside)))]
    scale = _scale(rule, series)
    restarts = tuple([mark.step for mark in run.restarts])
    threshold = rule.threshold * limit.value
    title = rule.title + f" ({keys[0]})" * rule.parts
    title += " in validation" * keys[0].startswith("val_samples/")
    same = tuple([(one.key, one.revision) for one in series])
    basis = (same, threshold, gate, scale, restarts)
    newest = [(len(one), one.values[-1:].tobytes()) for one in series]

    def judge() -> Judged:
        column = column_of(series, context.end, rule.stream, scale, gate)
        marked = column._replace(restarts=restarts)
        return KINDS[rule.condition].judge(marked, rule, threshold)

    judged = kept[keys[0]].of((basis, context.end, newest), judge)
    breaches = judged.breaches
    if breaches and BY_VALUES.keys() & {*rule.unless}:
        known: dict[int, bool] = kept[keys[0], "exempt"].of(basis, dict)
        steps = series[0].until(context.end).steps
        breaches = _not_exempt(context, keys, steps, breaches, known)
    now: Finding | str | None = judged.needs
    if judged.facts and open_breach(breaches):
        now = _finding(context, keys[0], title, judged, limit)
    else:
        excuses = WITHOUT_BREACH if judged.facts is None else BY_VALUES.keys()
        now = exempt(context, keys, excuses) or now
    return Found(now, breaches, title, keys[0])


def _missing(
    context: RuleContext, keys: int, free: int, second: str | None
) -> str | None:
    """Return what the log lacks of a rule's metrics, None if nothing: `keys` of them are there,
    `free` of these are not exempt, `second` is the one that they are compared with.
    """
    rule = context.rule
    beside = rule.beside_indicator, rule.beside_metric
    least = 1 + (rule.stream == "of the others")
    if keys >= least and (not free or free >= least):
        return None if second or not any(beside) else _has_no(*beside)
    if rule.parts:
        return f"{LACKS} no components of the reward"
    if rule.indicator == "gpu_memory" and logs_device_memory(context.run):
        return f"{LACKS} the memory of single devices alone"
    if least > 1:
        return f"{LACKS} fewer than two devices that the run uses"
    return _has_no(rule.indicator, rule.metric)


def _keys(context: RuleContext) -> Sequence[str]:
    """Return the key of the rule's indicator or metric, all keys that match its wildcards, or the
    reward's parts; a single one is the reward itself.
    """
    rule = context.rule
    if rule.parts:
        parts = gaining_components(context.run)[:_MOST_PARTS]
        return parts if len(components(context.run)) > 1 else []
    if any("*" in name for name in rule.metric):
        return _matching(context.run.keys, rule.metric)
    key = context.key_of(rule.indicator, rule.metric)
    return [key] if key else []


@lru_cache(256)
def _matching(keys: tuple[str, ...], patterns: tuple[str, ...]) -> Sequence[str]:
    found = [
        key
        for name, key in present_names(keys).items()
        if any(fnmatchcase(name, one) for one in patterns)
    ]
    return [*dict.fromkeys(found)][:_MOST_KEYS]


def _has_no(indicator: str, metrics: Sequence[str]) -> str:
    if indicator in INDICATORS:
        indicator = INDICATORS[indicator].label
    if metrics and metrics[0].startswith("samples/"):
        return f"{LACKS} no samples"
    return f"{LACKS} no {indicator or ' or '.join(metrics)}"


def _gate(context: RuleContext) -> float:
    if context.rule.stream != "at limit":
        return math.inf
    limit: Limit | None = response_limit(context.run, context.guide)
    if "prompt_length/max" in context.rule.beside_metric:
        limit = stated_limit(context.run, "prompt_limit")
    return limit.value if limit else math.inf


def _scale(rule: Rule, series: Sequence[Series]) -> float:
    """Return the factor from the log's values to the rule's unit."""
    scale = factor(rule.indicator, series[0].key) if rule.indicator else 1.0
    is_share = rule.unit == "percent" and max(one.highest for one in series) <= 1.0
    return scale * 100.0 if is_share else scale


def _finding(
    context: RuleContext,
    key: str,
    title: str,
    judged: Judged,
    limit: Limit,
) -> Finding:
    """Return the breach that holds."""
    known = judged.facts or {}
    rule, since, newest = context.rule, known["since"], known["at"]
    facts = {
        **known,
        "title": title,
        "key": key + f" ({rule.title})" * (rule.stream in ("widest", "of the others")),
        "long": context.duration(since, newest),
        "newest": f"{rule.written(known['last'])} at step {newest}",
        "note": f" ({_multiple(rule, limit)})" if limit.words else "",
        "says": rule.says,
        "label": f" ({rule.label})" if rule.label else "",
    }
    case = known.get("case", "")
    if rule.says:
        case = "says-often" if case else "says"
    return rule.finding(
        facts,
        case=case,
        words=judged.words,
        since=since,
        step=newest,
        key=key,
        certain=rule.id != "truncation" or all_cut(context),
    )


def _multiple(rule: Rule, limit: Limit) -> str:
    """Return what a threshold is a multiple of."""
    share = f"{rule.threshold:.0%} of "
    times = share if rule.threshold < 2 else f"{number(rule.threshold)} × "
    return limit.words if rule.threshold == 1 else times + limit.words


def _not_exempt(
    context: RuleContext,
    keys: Sequence[str],
    steps: Sequence[int],
    breaches: Iterable[Breach],
    known: dict[int, bool],
) -> Sequence[Breach]:
    """Return the parts of breaches in which the rule was not exempt by the values known at the
    time: from the first to the last such point.

    Args:
        context: The run, and the rule.
        keys: The metrics.
        steps: Those of the first of them.
        breaches: What is found in them.
        known: At which steps it is known to be exempt, or not.
    """
    known.pop(steps[-1], None)  # the newest point may still change

    def is_exempt(step: int) -> bool:
        if step not in known:
            known[step] = bool(exempt(context.at(step), keys, BY_VALUES))
        return known[step]

    return [*filter(None, (_free(one, steps, is_exempt) for one in breaches))]


def _free(
    breach: Breach, steps: Sequence[int], is_exempt: Callable[[int], bool]
) -> Breach | None:
    """Return the part of a breach in which the rule was not exempt, None if it always was."""
    at = first = bisect_left(steps, breach.raised)
    cleared = breach.cleared
    over = len(steps) if cleared is None else bisect_left(steps, cleared)
    places = []
    while at < over:
        places.append(steps[at])
        at += 1 + (at - first) // _OFTEN
    free = [step for step in places if not is_exempt(step)]
    if not free:
        return None
    if free[-1] != places[-1]:
        cleared = places[places.index(free[-1]) + 1]
    return breach._replace(raised=free[0], cleared=cleared)


# -- one or more metrics as one column of finite numbers -------------------------------------------


def column_of(
    series: Sequence[Series],
    end: int | None,
    kind: str = "value",
    scale: float = 1.0,
    limit: float = math.inf,
) -> Column:
    """Return a column.

    Args:
        series: The one or more metrics.
        end: Step the run has reached; points of an abandoned segment beyond it are left out.
            None = no end.
        kind: How one number is made of one metric (`value`, `absolute`, `highest`), of several that
            are alike (`mean of all`), or of the first and others (`COMBINATIONS`).
        scale: Factor of all values.
        limit: The limit of `at limit` and `without spread`.
    """
    known = [one.until(end) for one in series]
    first, *others = [
        Column(np.array(one.steps), np.array(one.values)) for one in known
    ]
    steps, values, _ = first
    with np.errstate(all="ignore"):
        if kind == "mean of all":
            values = _mean(steps, (first, *others))
        elif kind in COMBINATIONS:
            beside = others[0]
            if kind == "of the others":
                beside = Column(steps, _mean(steps, others))
            is_known = np.isin(steps, beside.steps)
            second = beside.values[np.isin(beside.steps, steps)]
            steps, values = steps[is_known], values[is_known]
            values = COMBINATIONS[kind](values, second, limit)
        elif kind == "absolute":
            values = abs(values)
        elif kind == "highest":
            values = np.fmax.accumulate(abs(values))
        values = values * scale
    finite = np.isfinite(values)
    return Column(steps[finite], values[finite])


def _mean(steps: Places, metrics: Sequence[Column]) -> Numbers:
    """Return the mean of several metrics at some steps, over those that have the step."""
    values = np.full((len(metrics), len(steps)), math.nan)
    for row, one in zip(values, metrics, strict=True):
        row[np.isin(steps, one.steps)] = one.values[np.isin(one.steps, steps)]
    known = np.isfinite(values)
    mean: Numbers = np.where(known, values, 0.0).sum(axis=0) / known.sum(axis=0)
    return mean


_CLIMB, _SPAN, _LEVEL = 1.5, 100, 10
"""A metric climbs if it has gained a half over so many points, by levels of ten: heuristic."""


def _climbs(values: Numbers) -> Flags:
    """Return where a metric climbs."""
    level = means(values, _LEVEL)
    begun = shifted(level, _SPAN)
    found: Flags = (level >= _CLIMB * begun) & (begun > 0)
    return found


def _of_others(own: Numbers, others: Numbers) -> Numbers:
    """Return what a device does of what the others do, where these work."""
    least = WORKS / (100 if others.max(initial=0.0) <= 1 else 1)
    return np.where(others >= least, own / others, 1.0)


COMBINATIONS: Mapping[str, Callable[[Numbers, Numbers, float], Numbers]] = {
    "ratio": lambda first, second, _: np.where(second > 0, first / second, math.nan),
    "difference": lambda first, second, _: first - second,
    "product": lambda first, second, _: abs(first * second),
    # nan where one is not finite
    "widest": lambda first, second, _: (
        np.maximum(abs(first), abs(second)) + 0 * (first + second)
    ),
    "while climbing": lambda first, second, _: np.where(
        _climbs(second), abs(first), 0.0
    ),
    "at limit": lambda first, second, limit: np.where(second >= limit, first, 0.0),
    "without spread": lambda first, second, limit: np.where(
        (second >= 0) & (second <= limit), 1.0, first
    ),
    "of the others": lambda first, second, _: _of_others(first, second),
}
"""Name -> how one number is made of two, with a limit."""

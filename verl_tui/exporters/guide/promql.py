"""The guide's rules in PromQL, as far as it can express them.

The guide counts logged steps, Prometheus seconds. A window is therefore as long as its steps take
at the usual time of a step, and nothing is found unless so many steps were made in it: a run with
faster steps is found later, one with slower steps not at all.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from verl_tui import prometheus_names as names
from verl_tui.health.guide import DIALECTS, Rule
from verl_tui.indicators import dialect, spellings
from verl_tui.prometheus_names import named

if TYPE_CHECKING:
    from collections.abc import Sequence


STEPS = "verl:steps"
"""Series of the recording rule for the step that each run has reached."""
RL_INSIGHT = "rl_insight_monitor_"
"""Prefix that verl's rl_insight adds to every key (`rl_insight/utils/constants.py`, 0.3.0)."""
_SLACK = 1.25
"""A window is longer than its steps by a quarter, or a step a bit slower than usual would fall out
of it.
"""
_CONDITIONS = frozenset({"above", "at-least", "below", "outside", "streak"})
_STREAMS = {"value": "", "absolute": "", "difference": "-", "ratio": "/"}
"""Streams that PromQL can express -> operator between their two inputs."""


def why_not_promql(rule: Rule) -> str | None:
    """Return why a rule cannot be expressed in PromQL, None if it can."""
    reasons = {
        "looks at several signals, samples or the log's text": rule.condition
        == "diagnosis",
        "depends on the run's settings or on what else it logs": (
            rule.unless or rule.of or rule.parts
        ),
        "compares a run with its own past, step by step": (
            rule.condition not in _CONDITIONS or rule.trend or rule.climb
        ),
        "is made of several metrics": (
            rule.stream not in _STREAMS or "*" in "".join(rule.metric)
        ),
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


def signal(rule: Rule) -> tuple[str, str]:
    """Return the name of the series by `run` that a rule judges, which a recording rule makes, and
    its expression, in base units.
    """
    expr = series(_keys(rule, rule.indicator, rule.metric), rule.dialects)
    name = _plain(rule.name)
    if rule.stream == "absolute":
        expr = f"abs({expr})"
    elif joined := _STREAMS[rule.stream]:
        keys_beside = _keys(rule, rule.beside_indicator, rule.beside_metric)
        expr += f"\n{joined}\n{series(keys_beside, rule.dialects)}"
    elif rule.indicator:
        # Rules that judge one indicator in the same logs share it.
        whose = rule.dialects if set(rule.dialects) != set(DIALECTS) else ()
        name = "_".join([rule.indicator, *whose])
    return f"verl:{name}", expr


def series(keys: Sequence[str], dialects: Sequence[str]) -> str:
    """Return the newest value of several metrics by run, under all their names: for each run the
    first that it has.
    """
    found = [named(key).name for key in keys]
    if "verl" in dialects:
        found += [rl_insight(key) for key in keys if dialect((key,)) == "verl"]
    return "max by (run) (\n  " + "\n  or ".join(dict.fromkeys(found)) + "\n)"


def rl_insight(key: str, matchers: str = 'experiment_name!=""') -> str:
    """Return the series of a metric that verl's rl_insight logger writes, in base units, with its
    run as label `run`.
    """
    metric = f"{RL_INSIGHT}{_plain(key)}{{{matchers}}}"
    factor = named(key).factor
    joined = f'label_join({metric}, "run", "/", "project", "experiment_name")'
    return joined if factor == 1 else f"({joined} * {factor:g})"


def breach(rule: Rule, step: float) -> str:
    """Return the expression that has a value for each run in breach of a rule.

    Args:
        rule: One that PromQL can express.
        step: Seconds that a step usually takes.
    """
    points = _points(rule)
    window = f"{max(60, math.ceil(_SLACK * points * step))}s"
    name, _ = signal(rule)
    if points > 1:
        found = _breached(rule, f"{name}[{window}]")
        enough = f"and on (run) changes({STEPS}[{window}]) >= {points}\n"
    else:
        outside = (f"{name} {sign} {limit}" for sign, limit in _limits(rule))
        found, enough = "\n  or ".join(outside), ""
    return f"({found})\n{enough}unless on (run) {names.STATE}"


def _points(rule: Rule) -> int:
    return rule.count if rule.condition == "streak" else rule.window


def _keys(rule: Rule, indicator: str, metrics: Sequence[str]) -> Sequence[str]:
    if not indicator:
        return metrics
    known = spellings(indicator)
    return [one for one in known if dialect((one,)) in rule.dialects]


def _threshold(rule: Rule, limit: float) -> str:
    """Return a limit in base units, as the metrics have it."""
    keys = _keys(rule, rule.indicator, rule.metric)
    return f"{limit * (named(keys[0]).factor if keys and rule.stream != 'ratio' else 1.0):g}"


def _breached(rule: Rule, past: str) -> str:
    """Return the condition of the guide: most of a window's values, and their mean, lie outside."""
    if rule.condition == "streak":
        return f"min_over_time({past}) > {_threshold(rule, rule.threshold)}"
    return "\n  or ".join(
        f"avg_over_time({past}) {sign} {limit}\n  and {_most(rule.share, sign, past)} {sign} "
        f"{limit}"
        for sign, limit in _limits(rule)
    )


def _limits(rule: Rule) -> list[tuple[str, str]]:
    if rule.condition == "outside":
        return [(">", _threshold(rule, rule.high)), ("<", _threshold(rule, rule.low))]
    signs = {"above": ">", "at-least": ">=", "below": "<"}
    return [(signs[rule.condition], _threshold(rule, rule.threshold))]


def _most(share: float, sign: str, past: str) -> str:
    """Return the value that a share of the window is beyond."""
    if share >= 1:
        return f"{'max' if sign == '<' else 'min'}_over_time({past})"
    return (
        f"quantile_over_time({round(share if sign == '<' else 1 - share, 6):g}, {past})"
    )


def _plain(key: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]", "_", key)

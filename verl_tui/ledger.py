"""Where the GPU hours of a run went: those that taught, those that were lost by cause, and what a
stop at the first critical finding would have saved.

The time of each step is given to the causes in the order of `ledger.toml`: each takes of what those
before it have left, so that an hour is counted once. What nothing has taken has taught.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from verl_tui.health.diagnoses.dead_groups import BATCH, shares_of
from verl_tui.health.finding import Episode, Finding, Severity, Verdict, filled, number
from verl_tui.health.limits import positive_setting
from verl_tui.health.rule_context import RuleContext, minutes, rule_context
from verl_tui.indicators import factor
from verl_tui.runs.settings import gpu_counts
from verl_tui.runs.time.passes import Passes, passes
from verl_tui.runs.views.devices import WORKED, device_count, used_keys
from verl_tui.runs.views.state import State, silence
from verl_tui.text import one_line
from verl_tui.toml_tables import toml_table
from verl_tui.words import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from verl_tui.health.guide import Guide
    from verl_tui.runs.run import Run
    from verl_tui.runs.time.step_timing import Numbers

_TABLES: Any = toml_table(__file__, "ledger.toml")
_LINES, _NAMES = _TABLES["lines"], _TABLES["names"]
_WORDS: Mapping[str, str] = _TABLES["words"]
_MOST_SPANS, _MOST_NAMED, _SPANS_SHOWN = 50, 5, 3
_LEAST_SHARE = 0.0005
"""Share of all hours below which a line is not listed."""


class _Loss(NamedTuple):
    """What a cause takes of each row, and beside the rows; the metrics that it rests on, what shows
    it (their means, if nothing else), the finding that it is of, and whether it is measured, so
    that nothing is taken for granted.
    """

    seconds: Any
    figures: Sequence[str] = ()
    evidence: Sequence[str] = ()
    finding: str | None = None
    measured: bool = False
    more: float = 0.0


class _Account(NamedTuple):
    """A run with the time of each row that no cause has taken yet, and what dead groups took."""

    context: RuleContext
    verdict: Verdict
    made: Passes
    left: Numbers
    dead: Any = 0.0

    def at(self, steps: Any, values: Any) -> Numbers:
        """Return values of some steps at each row, as they were last where a row has none."""
        at = np.searchsorted(np.array(steps), self.made.steps, side="right") - 1
        found: Numbers = np.nan_to_num(np.array(values)[np.maximum(0, at)], posinf=0.0)
        return found

    def held(self, key: str) -> Numbers:
        """Return a metric at each row, 0 without one."""
        series = self.context.known(key)
        return self.at(series.steps, series.values) if series else 0.0 * self.left

    def logged(self, key: str, rows: Any) -> Numbers:
        """Return a metric's own points at the steps of rows, what is held there without any."""
        series = self.context.known(key)
        steps, values = map(
            np.array, (series.steps, series.values) if series else ((), ())
        )
        own: Numbers = values[
            np.isin(steps, self.made.steps[rows]) & np.isfinite(values)
        ]
        return own if len(own) else self.held(key)[rows]


# -- causes ----------------------------------------------------------------------------------------


def _down(of: _Account) -> _Loss | str:
    told = of.made.stated or of.made.down.any()
    return _Loss(of.made.down, (), _restarts(of)) if told else _WORDS["no_times"]


def _restarts(of: _Account) -> list[str]:
    marks = of.context.run.restarts[:_MOST_NAMED]
    return [f"restart at step {one.step}: {one.reason}" for one in marks]


def _hung(of: _Account) -> _Loss:
    made, worst = of.made, np.flatnonzero(of.made.hung)[:_MOST_NAMED].tolist()
    words = [f"step {made.steps[at]} took {minutes(made.seconds[at])}" for at in worst]
    found = _Loss(made.hung, [made.key], words)
    for one in _hang(of):
        words.append(one_line(one.message, 300))
        found = found._replace(finding="hang", more=_behind(of))
    return found


def _behind(of: _Account) -> float:
    """Return the seconds behind the last step that the run held its devices, as far as is known."""
    run, context = of.context.run, of.context
    lives = [one.life for one in run.sources.values() if one.step is not None]
    quiet = (silence(run, context.now) or 0.0) * (context.state is State.STALLED)
    behind = max([quiet, *(life.until_newest(life.since) for life in lives)])
    return behind * (bool(_hang(of)) or context.state is not State.RUNNING)


def _hang(of: _Account) -> list[Finding]:
    return [one for one in of.verdict.findings if one.id == "hang"][:1]


def _breaks(of: _Account) -> list[Episode]:
    """Return the episodes in which little is learnt, by the steps where they begin."""
    found = [
        one
        for one in of.verdict.history
        if one.severity is Severity.CRITICAL or one.id in _NAMES["breaks"]
        if one.since_step is not None and one.id not in _NAMES["no_breaks"]
        if one.id != "not-finite" or _breaks_updates(of.context, one)
    ]
    return sorted(found, key=lambda one: one.since_step or 0)


def _breaks_updates(context: RuleContext, one: Episode) -> bool:
    """Return whether numbers that are not finite are those of the update itself."""
    keys = map(context.indicators.get, _NAMES["updates"])
    known = filter(None, map(context.known, (*keys, context.run.loss_alone)))
    values = [it.until(one.cleared_step).since(one.since_step or 0) for it in known]
    return not all(np.isfinite([*it.values()]).all() for it in values)


def _broken(of: _Account) -> _Loss:
    steps, is_broken, breaks = of.made.steps, 0.0 * of.left, _breaks(of)
    for one in breaks:
        end = one.cleared_step or steps[-1]
        is_broken[(steps >= one.since_step) & (steps <= end)] = 1.0
    told = [(f"{one.id} since step {one.since_step}", one.message) for one in breaks]
    words = [f"{begun}: {one_line(message, 300)}" for begun, message in told]
    keys = [one.key for one in breaks if one.key]
    first = breaks[0].id if breaks else None
    measured = all(one.severity is Severity.CRITICAL for one in breaks)
    return _Loss(of.left * is_broken, keys, words[:_MOST_NAMED], first, measured)


def _waiting(of: _Account) -> _Loss | str:
    """Return the waits that a trainer logs, or the time in which GPUs are idle if that is longer:
    it lies in these.
    """
    run, names, waits, found = of.context.run, of.context.names, 0.0 * of.left, []
    pools = gpu_counts(run.config) or (1, 0)
    for name, (unit, pool, *less) in _TABLES["waits"].items():
        if names.keys() >= {name, *less}:
            taken = of.held(names[name]) - sum(of.held(names[one]) for one in less)
            rows = of.made.strides if unit == "s" else of.left
            waits += taken * rows * pools[pool] / sum(pools)
            found.append(names[name])
    devices = used_keys(run)
    idle = sum(((of.held(key) < WORKED) * of.left for key in devices), 0.0 * of.left)
    seconds = np.maximum(waits, idle / max(1, len(devices)))
    found += devices
    loss = _Loss(seconds, found, measured=not devices)
    return loss if found else _WORDS["no_waits"]


def _dead(of: _Account) -> _Loss | str:
    found = shares_of(of.context)
    if isinstance(found, str):
        return found
    share, points, _ = found
    shares = of.at(points.steps, points.values) if len(points) else 0.0 * of.left
    taken, whole = shares * of.left, of.left.sum() or 1.0
    words = f"{share.key}{share.words}: {taken.sum() / whole:.0%} on average"
    measured = len(points) >= len(of.left) and not share.words
    return _Loss(taken, [share.key], [words], measured=measured)


def _masked(of: _Account) -> _Loss | str:
    """Return what responses take that the loss leaves out, beyond the groups without spread."""
    context, key = of.context, of.context.indicators.get("truncated_share")
    name, masks = context.run.config.find(_NAMES["masks"]) or ("", False)
    rejected = context.first_key(_NAMES["rejected"])
    found = [*filter(None, (rejected, key if masks is True else None))]
    if not found:
        return _WORDS["no_masks"].format(key=key) if key else _Loss(0.0)
    shares = [of.held(one) * factor("truncated_share", one) for one in found]
    taken = np.max(shares, axis=0) * (of.left + of.dead) - of.dead
    return _Loss(taken, found, [f"left out by {name}"] if name else ())


def _stale(of: _Account) -> _Loss | str:
    context, key = of.context, of.context.names.get(_NAMES["evicted"], "")
    if dropped := context.first_key(_NAMES["dropped"]):
        return f"{dropped} does not tell of which steps"
    _, batch = positive_setting(context.run, BATCH) or ("", np.inf)
    series = context.known(key)
    gone = series.since(0) if series is not None else {}
    counts = np.array([gone.get(step, 0.0) for step in of.made.steps.tolist()])
    return _Loss(counts / (counts + batch) * of.left, [key])


_CAUSES: Mapping[str, Callable[[_Account], _Loss | str]] = {
    "start-up": lambda of: (
        _Loss(0.0, more=of.made.start) if of.made.start else _WORDS["no_start"]
    ),
    "down": _down,
    "repeated": lambda of: _Loss(
        of.made.repeated, (), _restarts(of), measured=of.made.stated
    ),
    "hang": _hung,
    "break": _broken,
    "aside": lambda of: _Loss(of.made.aside, of.made.timers),
    "waiting": _waiting,
    "dead-groups": _dead,
    "masked": _masked,
    "stale": _stale,
    "end": lambda of: _Loss(0.0, more=0.0 if _hang(of) else _behind(of)),
    "taught": lambda of: _Loss(of.left, [of.made.key]),
}


# -- the ledger ------------------------------------------------------------------------------------


def ledger(
    run: Run, verdict: Verdict, guide: Guide, now: float
) -> dict[str, Any] | None:
    """Return where the hours of a run went, ready for JSON; None where nothing tells how long its
    steps took.

    Args:
        run: The run, all of it read.
        verdict: On it.
        guide: The rules in force.
        now: Seconds since the epoch; a run that hangs loses hours until then.
    """
    made = None if run.preview else passes(run)
    if made is None:
        return None
    count, by = device_count(run)
    of = _Account(rule_context(run, guide, now), verdict, made, made.seconds)
    of, losses, unknown = _shared_out(of)
    whole = float(sum(one.seconds.sum() + one.more for one in losses.values()))
    scale = (count or 1) / 3600
    hours = whole * scale
    lines = [_line(of, id, one, hours, scale) for id, one in losses.items()]
    return {
        "unit": "GPU hours" if count else "hours of the run",
        "devices": count,
        "devices_by": by,
        "wall_hours": whole / 3600,
        "hours": hours,
        "taught_hours": lines[-1]["hours"],
        "at_most": not unknown.keys().isdisjoint(_NAMES["of_taught"]),
        "times": made.origin,
        "times_stated": made.stated,
        "lines": lines,
        "unknown": [{"id": id, "reason": why} for id, why in unknown.items()],
        "stop": _stop(of, scale),
    }


def _shared_out(of: _Account) -> tuple[_Account, dict[str, _Loss], dict[str, str]]:
    """Return what causes have left, what each has taken, and why some are not known."""
    none, losses, unknown = 0.0 * of.left, {}, {}
    for id, cause in _CAUSES.items():
        found = cause(of)
        if isinstance(found, str):
            unknown[id], found = found, _Loss(none)
        between = id in ("down", "repeated")
        wanted = np.nan_to_num(found.seconds + none)
        taken = np.clip(wanted, 0.0, np.inf if between else of.left)
        losses[id] = found._replace(seconds=taken)
        of = of._replace(dead=taken if id == "dead-groups" else of.dead)
        of = of._replace(left=of.left - taken * (not between and id != "taught"))
    return of, losses, unknown


def _line(
    of: _Account, id: str, loss: _Loss, whole: float, scale: float
) -> dict[str, Any]:
    """Return a line ready for JSON."""
    hours = float(loss.seconds.sum() + loss.more) * scale
    loss = loss if hours else _Loss(loss.seconds)
    rows, spans = np.flatnonzero(loss.seconds), _spans(of.made, id, loss)
    figures = loss.figures if len(rows) else ()
    points = {key: of.logged(key, rows) for key in figures}
    means = [
        f"{key}: {number(points[key].mean())} on average"
        for key in sorted(points, key=lambda key: -points[key].sum())
    ]
    return {
        "id": id,
        "label": _LINES[id]["label"],
        "hours": hours,
        "share": hours / (whole or 1.0),
        "heuristic": _LINES[id].get("assumed") if hours and not loss.measured else None,
        "finding": loss.finding,
        "step": spans[0][0] if spans else None,
        "steps": spans[:_MOST_SPANS],
        "spans_left_out": max(0, len(spans) - _MOST_SPANS),
        "figures": list(loss.figures),
        "evidence": [*loss.evidence] or means,
    }


def _spans(made: Passes, id: str, loss: _Loss) -> list[list[int]]:
    """Return the first and last step of each stretch of rows that a line has taken of."""
    if id == "repeated":
        return made.again
    rows = np.flatnonzero(loss.seconds)
    parts = np.split(made.steps[rows], np.flatnonzero(np.diff(rows) > 1) + 1)
    edge = [[int(made.steps[-(id != "start-up")])] * 2] * (loss.more > 0)
    return [[int(one[0]), int(one[-1])] for one in parts if len(one)] or edge


def _stop(of: _Account, scale: float) -> dict[str, Any] | None:
    """Return what a stop at the first critical finding would have saved, or without one at the
    first break; None where there was neither. A crash stops by itself.
    """
    hangs = [one for one in of.verdict.history if one.id == "hang"]
    known = [*_breaks(of), *hangs]
    critical = [one for one in known if one.severity is Severity.CRITICAL]
    if not known:
        return None
    first = min(critical or known, key=lambda one: one.raised_step or 0)
    made, after = of.made, of.made.steps > (first.raised_step or 0)
    saved = (made.seconds + made.down + made.repeated)[after].sum()
    return {
        "finding": first.id,
        "severity": first.severity.word,
        "step": first.raised_step,
        "hours": float(saved + _behind(of)) * scale,
        "taught_hours": float(of.left[after].sum()) * scale,
    }


# -- in words --------------------------------------------------------------------------------------


def listed(found: Mapping[str, Any]) -> list[tuple[Mapping[str, Any], Sequence[str]]]:
    """Return each line that has any hours with its name, hours, share and evidence; what taught
    first, then what was lost.
    """
    *lost, taught = found["lines"]
    shown = [taught, *(one for one in lost if one["share"] >= _LEAST_SHARE)]
    return [
        (one, (one["label"], number(one["hours"]), f"{one['share']:.1%}", _note(one)))
        for one in shown
    ]


def _note(line: Mapping[str, Any]) -> str:
    spans = [str(a) if a == b else f"{a}-{b}" for a, b in line["steps"]]
    more = len(spans) - _SPANS_SHOWN + line["spans_left_out"]
    spans[_SPANS_SHOWN:] = [f"{more} more"] if more > 0 else []
    guessed = line["heuristic"] and f"heuristic: {line['heuristic']}"
    steps = f"at {', '.join(spans)}" if spans else ""
    return "; ".join(filter(None, (steps, *line["evidence"][:1], guessed)))


def in_words(found: Mapping[str, Any]) -> list[str]:
    """Return how many hours there were and how many of them taught, what a stop would have saved,
    and what is not counted, a sentence each.
    """
    count, stop = found["devices"], found["stop"]
    facts = {
        "gpus": f"{counted(count, 'GPU')} by {found['devices_by']}"
        if count
        else _WORDS["no_count"],
        "estimated": "" if found["times_stated"] else "estimated by ",
        "most": "at most " if found["at_most"] else "",
        "share": found["lines"][-1]["share"],
    }
    said = [filled(_WORDS["whole"], {**found, **facts})]
    said += [filled(_WORDS["stop"], {**found, **stop})] if stop else []
    names = [(_LINES[one["id"]]["label"], one["reason"]) for one in found["unknown"]]
    return said + [f"not counted: {label}: {why}" for label, why in names]

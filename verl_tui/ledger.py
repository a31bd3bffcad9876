"""Where the GPU hours of a run went: those that taught, those that were lost by cause, and what a
stop at the first critical finding would have saved.

The time of each step is given to the causes in the order of `ledger.toml`: each takes of what those
before it have left, so that an hour is counted once. What nothing has taken has taught.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from verl_tui.health.diagnoses.dead_groups import shares_of
from verl_tui.health.finding import Episode, Finding, Severity, Verdict, filled, number
from verl_tui.health.rule_context import RuleContext, minutes, rule_context
from verl_tui.indicators import factor
from verl_tui.runs.settings import gpu_counts
from verl_tui.runs.time.step_clocks import Passes, passes
from verl_tui.runs.time.step_timing import durations, occasional_parts
from verl_tui.runs.views.devices import WORKED, device_count, used_keys
from verl_tui.runs.views.state import State, silence
from verl_tui.text import one_line
from verl_tui.toml_tables import toml_table
from verl_tui.words import counted, few, figure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from verl_tui.health.conditions.column import Column
    from verl_tui.health.guide import Guide
    from verl_tui.plain_data import Data
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
    it (their means, if nothing else), the finding that it is of, whether it is measured, so that
    nothing is taken for granted, and why it is not known.
    """

    seconds: Any = 0.0
    figures: Sequence[str] = ()
    evidence: Sequence[str] = ()
    finding: str | None = None
    measured: bool = False
    more: float = 0.0
    unknown: str = ""


class _Account(NamedTuple):
    """A run with what each cause has taken so far, and the time of each row that none has."""

    context: RuleContext
    verdict: Verdict
    made: Passes
    left: Numbers
    losses: dict[str, _Loss]

    def held(self, figure: str | Column) -> Numbers:
        """Return a metric at each row, as it was last where a row has none; 0 without it."""
        known = self.context.known(figure) if isinstance(figure, str) else figure
        if not known or not len(known.steps):
            return 0.0 * self.left
        at = np.searchsorted(np.array(known.steps), self.made.steps, side="right") - 1
        values = np.array(known.values)[np.maximum(0, at)]
        found: Numbers = np.nan_to_num(values, posinf=0.0)
        return found

    def logged(self, key: str) -> Numbers:
        """Return a metric at each row, nan where it has no number."""
        series = self.context.known(key)
        points = series.since(0) if series else {}
        found = [points.get(step, np.nan) for step in self.made.steps.tolist()]
        return np.where(np.isfinite(found), found, np.nan)


# -- causes ----------------------------------------------------------------------------------------


def _timed(of: _Account) -> dict[str, _Loss]:
    """Return what is lost by the times of the steps alone."""
    made, restarts = of.made, of.context.run.restarts[:_MOST_NAMED]
    marks = [f"restart at step {one.step}: {one.reason}" for one in restarts]
    timer = durations(of.context.indicator("step_time"), made.steps)
    words = [
        f"step {made.steps[at]} took {minutes(made.seconds[at])}"
        + f", {minutes(timer[at])} of them by its timer"
        * bool(timer[at] < made.hung[at])
        for at in np.flatnonzero(made.hung)[:_MOST_NAMED].tolist()
    ]
    hangs = [one for one in of.verdict.findings if one.id == "hang"][:1]
    words += [one_line(one.message, 300) for one in hangs]
    hung, behind = _Loss(made.hung, [made.key], words), _behind(of.context, hangs)
    if hangs:
        hung = hung._replace(finding="hang", more=behind)
    is_told = made.stated or made.down.any()
    return {
        "start-up": _Loss(more=made.start, unknown=_why("no_start", made.start)),
        "down": _Loss(made.down, (), marks, unknown=_why("no_times", is_told)),
        "repeated": _Loss(made.repeated, (), marks, measured=made.stated),
        "hang": hung,
        "aside": _Loss(made.aside, occasional_parts(of.context.run)),
        "end": _Loss(more=behind - hung.more),
    }


def _why(reason: str, known: object) -> str:
    return "" if known else _WORDS[reason]


def _behind(context: RuleContext, hangs: Sequence[Finding]) -> float:
    """Return the seconds after the last step that the run held its devices, as far as is known."""
    run, now = context.run, context.now
    if context.state is State.RUNNING and not hangs:
        return 0.0
    lives = [one.life for one in run.sources.values() if one.step is not None]
    quiet = silence(run, now) if context.state is State.STALLED else None
    return max([quiet or 0.0, *(life.until_newest(life.since) for life in lives)])


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
    steps, breaks, is_broken = of.made.steps, _breaks(of), 0.0 * of.left
    for one in breaks:
        end = one.cleared_step or steps[-1]
        is_broken[(steps >= one.since_step) & (steps <= end)] = 1.0
    words = [
        f"{one.id} since step {one.since_step}: {one_line(one.message, 300)}"
        for one in breaks[:_MOST_NAMED]
    ]
    keys = [one.key for one in breaks if one.key]
    first = breaks[0].id if breaks else None
    measured = all(one.severity is Severity.CRITICAL for one in breaks)
    return _Loss(of.left * is_broken, keys, words, first, measured)


def _waiting(of: _Account) -> _Loss:
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
    idle = sum(of.held(key) < WORKED for key in devices) / max(1, len(devices))
    found, seconds = [*found, *devices], np.maximum(waits, idle * of.left)
    return _Loss(seconds, found, measured=not devices, unknown=_why("no_waits", found))


def _dead(of: _Account) -> _Loss:
    found = shares_of(of.context)
    if isinstance(found, str):
        return _Loss(unknown=found)
    share, points = found
    taken, whole = of.held(points) * of.left, of.left.sum() or 1.0
    words = f"{share.key}{share.words}: {taken.sum() / whole:.0%} on average"
    measured = len(points.steps) >= len(of.left) and not share.words
    return _Loss(taken, [share.key], [words], measured=measured)


def _masked(of: _Account) -> _Loss:
    """Return what responses take that the loss leaves out, beyond the groups without spread."""
    context, key = of.context, of.context.indicators.get("truncated_share")
    name, masks = context.run.config.named("masks")
    found = context.first_key(_NAMES["rejected"]), key if masks is True else None
    keys, dead = [*filter(None, found)], of.losses["dead-groups"].seconds
    shares = [of.held(one) * factor("truncated_share", one) for one in keys]
    taken = np.max([0.0 * dead, *shares], axis=0) * (of.left + dead) - dead
    why = _WORDS["no_masks"].format(key=key) if key and not keys else ""
    return _Loss(taken, keys, [f"left out by {name}"] if name else (), unknown=why)


def _stale(of: _Account) -> _Loss:
    if dropped := of.context.first_key(_NAMES["dropped"]):
        return _Loss(unknown=f"{dropped} does not tell of which steps")
    key = of.context.names.get(_NAMES["evicted"], "")
    _, batch = of.context.run.config.positive("batch_size")
    counts = of.logged(key)
    return _Loss(counts / (counts + (batch or np.inf)) * of.left, [key])


_CAUSES: Mapping[str, Callable[[_Account], _Loss]] = {
    "break": _broken,
    "waiting": _waiting,
    "dead-groups": _dead,
    "masked": _masked,
    "stale": _stale,
    "taught": lambda of: _Loss(of.left, [of.made.key]),
}


# -- the ledger ------------------------------------------------------------------------------------


def ledger(run: Run, verdict: Verdict, guide: Guide, now: float) -> Data | None:
    """Return where the hours of a run went, ready for JSON; None where nothing tells how long its
    steps took.

    Args:
        run: The run, all of it read.
        verdict: On it.
        guide: The rules in force.
        now: Seconds since the epoch; a run that hangs loses hours until then.
    """
    made = None if run.preview else passes(run)
    if not made:
        return None
    of = _Account(rule_context(run, guide, now), verdict, made, made.seconds, {})
    _share_out(of)
    count, by = device_count(run)
    scale = (count or 1) / 3600
    whole = float(sum(one.seconds.sum() + one.more for one in of.losses.values()))
    lines = [_line(of, id, whole * scale, scale) for id in of.losses]
    unknown = {id: one.unknown for id, one in of.losses.items() if one.unknown}
    return {
        "unit": "GPU hours" if count else "hours of the run",
        "devices": count,
        "devices_by": by,
        "wall_hours": whole / 3600,
        "hours": whole * scale,
        "taught_hours": lines[-1]["hours"],
        "at_most": not unknown.keys().isdisjoint(_NAMES["of_taught"]),
        "times": made.origin,
        "times_stated": made.stated,
        "lines": lines,
        "unknown": [{"id": id, "reason": why} for id, why in unknown.items()],
        "stop": _stop(of, scale),
    }


def _share_out(of: _Account) -> None:
    """Give each cause, in their order, what it takes of what those before it have left."""
    timed = _timed(of)
    for id in _LINES:
        loss, is_between = timed.get(id) or _CAUSES[id](of), id in _NAMES["between"]
        wanted = np.nan_to_num(loss.seconds + 0.0 * of.left)
        taken = np.clip(wanted, 0.0, np.inf if is_between else of.left)
        of.losses[id] = loss._replace(seconds=taken)
        of = of._replace(left=of.left - taken * (not is_between))


def _line(of: _Account, id: str, whole: float, scale: float) -> Data:
    """Return a line ready for JSON."""
    loss = of.losses[id]
    hours = float(loss.seconds.sum() + loss.more) * scale
    if not hours:
        loss = _Loss(loss.seconds)
    spans = _spans(of.made, id, loss)
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
        "evidence": [*loss.evidence] or _means(of, loss),
    }


def _spans(made: Passes, id: str, loss: _Loss) -> list[list[int]]:
    """Return the first and last step of each stretch of rows that a line has taken of."""
    if id == "repeated":
        return made.again
    edges = np.flatnonzero(np.diff(loss.seconds > 0, prepend=False, append=False))
    spans: list[list[int]] = made.steps[edges.reshape(-1, 2) - [0, 1]].tolist()
    edge = int(made.steps[0 if id == "start-up" else -1])
    return spans or [[edge, edge]] * (loss.more > 0)


def _means(of: _Account, loss: _Loss) -> list[str]:
    """Return the mean of each figure at the rows taken of, the largest sum first: that of its
    points there, or without any that of the values held.
    """
    rows, found = loss.seconds > 0, []
    for key in loss.figures if rows.any() else ():
        own = of.logged(key)[rows]
        own = own[np.isfinite(own)]
        found.append((key, own if len(own) else of.held(key)[rows]))
    found.sort(key=lambda one: -one[1].sum())
    return [f"{key}: {number(own.mean())} on average" for key, own in found]


def _stop(of: _Account, scale: float) -> Data | None:
    """Return what a stop at the first critical finding would have saved, or without one at the
    first break; None where there was neither. A crash stops by itself.
    """
    known = [*_breaks(of), *(one for one in of.verdict.history if one.id == "hang")]
    known.sort(key=lambda one: (one.severity < Severity.CRITICAL, one.raised_step or 0))
    if not known:
        return None
    first, made, losses = known[0], of.made, of.losses
    after = made.steps > (first.raised_step or 0)
    saved = (made.seconds + made.down + made.repeated)[after].sum()
    saved += losses["hang"].more + losses["end"].more
    return {
        "finding": first.id,
        "severity": first.severity.word,
        "step": first.raised_step,
        "hours": float(saved) * scale,
        "taught_hours": float(losses["taught"].seconds[after].sum()) * scale,
    }


# -- in words --------------------------------------------------------------------------------------


def listed(found: Data) -> list[tuple[Data, Sequence[str]]]:
    """Return each line that has any hours with its name, hours, share and evidence; what taught
    first, then what was lost.
    """
    *lost, taught = found["lines"]
    lost = [one for one in lost if one["share"] >= _LEAST_SHARE]
    return [(one, _cells(one)) for one in (taught, *lost)]


def _cells(line: Data) -> Sequence[str]:
    share = figure(line["share"], "share", number)
    return line["label"], _time(line["hours"]), share, _note(line)


def _time(hours: float, unit: str = "h") -> str:
    """Write hours, less than one in minutes or seconds."""
    if hours >= 1:
        return f"{number(hours)} {unit}"
    return minutes(3600 * hours) + _WORDS.get(unit, "")


def _note(line: Data) -> str:
    spans = [str(a) if a == b else f"{a}-{b}" for a, b in line["steps"]]
    spans += [""] * line["spans_left_out"]  # which are only counted
    guessed = line["heuristic"] and f"heuristic: {line['heuristic']}"
    steps = few(spans, _SPANS_SHOWN)
    where = steps and f"step{'s' * (not steps.isdigit())} {steps}"
    return "; ".join(filter(None, (where, *line["evidence"][:1], guessed)))


def in_words(found: Data) -> list[str]:
    """Return how many hours there were and how many of them taught, what a stop would have saved,
    and what is not counted, a sentence each.
    """
    count, stop = found["devices"], found["stop"]
    gpus = f"{counted(count or 0, 'GPU')} by {found['devices_by']}"
    facts = {
        "whole": _time(found["hours"], found["unit"]),
        "wall": _time(found["wall_hours"]),
        "gpus": gpus if count else _WORDS["no_count"],
        "estimated": "" if found["times_stated"] else "estimated by ",
        "most": "at most " if found["at_most"] else "",
        "share": found["lines"][-1]["share"],
    }
    said = [filled(_WORDS["whole"], {**found, **facts})]
    if stop:
        saved, taught = (_time(stop[one]) for one in ("hours", "taught_hours"))
        said.append(filled(_WORDS["stop"], {**stop, "saved": saved, "taught": taught}))
    names = [(_LINES[one["id"]]["label"], one["reason"]) for one in found["unknown"]]
    return said + [f"not counted: {label}: {why}" for label, why in names]

"""Notes on a comparison: what it cannot say, and what to bear in mind when reading it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from verl_tui.comparison.differences import incomparable
from verl_tui.comparison.outcomes import FIGURES
from verl_tui.metrics import modern, slashed
from verl_tui.patterns import NamePattern
from verl_tui.runs.views.alignment import Alignment

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.comparison.outcomes import MeasuredRun
    from verl_tui.comparison.seeds import RunGroup
    from verl_tui.runs.run import Run

_NAMED = 5
"""Most runs named in a sentence."""
_LONGER = 1.25
"""Ratio of steps from which on runs count as unlike in length: heuristic."""


def notes(
    measured: Sequence[MeasuredRun],
    groups: Sequence[RunGroup],
    alignment: Alignment,
    count: int,
) -> Iterator[str]:
    """Yield a sentence for each thing that is not compared, or only with care.

    Args:
        measured: All runs.
        groups: The runs grouped by everything but the seed.
        alignment: The point up to which each run counts.
        count: Number of last logged values that means are made of.
    """
    if len(measured) == 1:
        yield (
            "a single run: there is nothing to hold it against; name several paths, or a "
            "directory of runs"
        )
    empty = [run for run in measured if run.stop.step is None]
    if empty:
        what = "time" if alignment is Alignment.TIME else "step"
        yield f"not compared, as no {what} is known: {some_names(empty)}"
    if not _has_common(measured):
        yield "no figure of this comparison is logged by two of the runs"
    yield from _rewards([run for run in measured if run not in empty], count)
    yield from _not_alike(measured)
    if alignment is Alignment.END:
        yield from _unlike(
            measured,
            "the runs end at steps {:,} to {:,}, so that their last values are not of equally "
            "long trainings; --align step compares all at the same step",
        )
    yield from _groups(groups)
    yield from _unknown_settings(measured)


def _unknown_settings(measured: Sequence[MeasuredRun]) -> Iterator[str]:
    unknown = [one for one in measured if not one.run.settings]
    if unknown and len(measured) > 1:
        yield f"no settings are known of {some_names(unknown)}"


def some_names(measured: Sequence[MeasuredRun]) -> str:
    """Name runs, the first few of many."""
    found = [one.run.name for one in measured]
    more = len(found) - _NAMED
    return ", ".join(found if more <= 0 else [*found[:_NAMED], f"{more} more"])


def _has_common(measured: Sequence[MeasuredRun]) -> bool:
    """Return whether two runs log one of the figures, or there is only one run."""
    known = Counter(
        id
        for run in measured
        for id, figure in run.figures.items()
        if figure.value is not None and figure.key
    )
    return len(measured) < 2 or max(known.values(), default=0) > 1


def _rewards(stepped: Sequence[MeasuredRun], count: int) -> Iterator[str]:
    """Yield a note on runs without a reward, and on those whose last ones are left out."""
    none = [one for one in stepped if "reward" not in one.run.indicators]
    if none:
        yield f"{some_names(none)} {'logs' if len(none) == 1 else 'log'} no reward"
    for one in stepped:
        final = one.figures["final_reward"]
        if final.not_finite and final.size:
            yield (
                f"{final.not_finite} of the last {final.size + final.not_finite} rewards of "
                f"{one.run.name} are not finite and are left out"
            )
        elif final.not_finite:
            yield (
                f"the last {count} rewards of {one.run.name} are not finite: there is no final "
                "reward"
            )


def _not_alike(measured: Sequence[MeasuredRun]) -> Iterator[str]:
    yield from differing([one.run for one in measured])
    reasons = (incomparable(kind, measured) for kind in FIGURES if kind.indicator)
    for reason in dict.fromkeys(filter(None, reasons)):
        yield f"{reason}; runs that differ in this are not held against each other"
    by_key: dict[str, list[MeasuredRun]] = {}
    for run in measured:
        key = run.key("reward")
        if key is not None:
            by_key.setdefault(modern(key), []).append(run)
    if len(by_key) > 1:
        listed = (f"{key} of {some_names(found)}" for key, found in by_key.items())
        yield f"rewards are taken from several metrics: {'; '.join(listed)}"


def _groups(groups: Sequence[RunGroup]) -> Iterator[str]:
    if any(group.by == "settings" for group in groups):
        yield (
            "runs count as seeds of one kind where all their settings are the same but for seeds, "
            "names, places and dates"
        )
    for group in groups:
        # braces are part of some names
        name = group.name.replace("{", "{{").replace("}", "}}")
        yield from _unlike(
            group.members,
            f"the runs of {name} end at steps {{:,}} to {{:,}}: their means are of trainings of "
            "unlike length",
        )
    by_names = [group.name for group in groups if group.by == "names"]
    if by_names:
        yield (
            f"the settings of {', '.join(by_names[:_NAMED])} are not known: its runs are taken "
            "together because their names differ only by the seed"
        )


def _unlike(measured: Sequence[MeasuredRun], words: str) -> Iterator[str]:
    """Yield a sentence with the steps at which the first and the last run end, if unlike."""
    steps = [run.stop.step for run in measured if run.stop.step is not None]
    if len(steps) > 1 and max(steps) > _LONGER * max(1, min(steps)):
        yield words.format(min(steps), max(steps))


# -- what versions of verl measure differently -----------------------------------------------------

_SINCE = "verl 0.9.1"
_SUCCESSFUL = NamePattern(r"val-(?:core|aux)/.+/acc_success_only/.+")
"""verl 0.9.1 counts failed sessions of a validation as 0 in `acc`
(`trainer/ppo/metric_utils.py`).
"""
_ACCURACY = NamePattern(r"val-core/.+/acc/.+")
_TURNS = {"num_turns/mean", "training/num_turns/mean"}
"""No earlier version logs both; logs of verl seldom state its version."""
_GSPO_USUAL = "seq-mean-token-mean"
"""How GSPO's loss was always aggregated before (`trainer/ppo/core_algos.py`)."""


def differing(runs: Sequence[Run]) -> Iterator[str]:
    """Yield a sentence for each figure that the runs measure in two ways, as far as their logs
    tell.
    """
    new = [run for run in runs if _has(run, _SUCCESSFUL)]
    old = [run for run in runs if run not in new and _has(run, _ACCURACY)]
    if new and old:
        yield (
            f"validation: acc of {_names(new)} counts failed sessions as 0 ({_SINCE}, as "
            f"its key acc_success_only shows); {_names(old)} "
            f"{'have' if len(old) > 1 else 'has'} no such key: there acc is of the sessions "
            "that succeeded"
        )
    yield from _policy_loss(list(filter(_aggregated_otherwise, runs)))


def _policy_loss(affected: Sequence[Run]) -> Iterator[str]:
    new = list(filter(_is_later, affected))
    old = [run for run in affected if run not in new]
    if new and old:
        yield (
            f"policy loss: GSPO goes by loss_agg_mode since {_SINCE}, which keys of "
            f"{_names(new)} show; {_names(old)} may be older, with the scale of "
            f"{_GSPO_USUAL} whatever is set"
        )


def _is_later(run: Run) -> bool:
    """Return whether a run has metrics that only later versions of verl log."""
    return _has(run, _SUCCESSFUL) or _TURNS.issubset(map(slashed, run.keys))


def _has(run: Run, form: NamePattern) -> bool:
    return any(form.fullmatch(slashed(key)) for key in run.keys)


def _aggregated_otherwise(run: Run) -> bool:
    """Return whether a run states GSPO with an aggregation that earlier versions passed over."""
    loss = run.config.stated(("policy_loss.loss_mode",))
    mode = run.config.stated(("actor.loss_agg_mode",)) or ("", _GSPO_USUAL)
    return loss is not None and loss[1] == "gspo" and mode[1] != _GSPO_USUAL


def _names(runs: Sequence[Run]) -> str:
    return ", ".join(run.name for run in runs)

"""Warnings for a comparison of runs: versions of verl measure some figures differently.

verl 0.9.1 counts failed sessions of a validation as 0 in `acc` (`trainer/ppo/metric_utils.py`), and
GSPO goes by `loss_agg_mode`; its loss was always `seq-mean-token-mean` before
(`trainer/ppo/core_algos.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.metrics import slashed
from verl_tui.patterns import NamePattern

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.runs.run import Run

_SINCE = "verl 0.9.1"
_SUCCESSFUL = NamePattern(r"val-(?:core|aux)/.+/acc_success_only/.+")
_TURNS = {"num_turns/mean", "training/num_turns/mean"}
"""No earlier version logs both; logs of verl seldom state its version."""
_ACCURACY = NamePattern(r"val-core/.+/acc/.+")
_GSPO_USUAL = "seq-mean-token-mean"


def differing(runs: Sequence[Run]) -> list[str]:
    """Return a sentence for each figure that the runs measure in two ways, as far as their logs
    tell.
    """
    return [*_validation(runs), *_policy_loss(runs)]


def _validation(runs: Sequence[Run]) -> list[str]:
    new = [run for run in runs if _has(run, _SUCCESSFUL)]
    old = [run for run in runs if run not in new and _has(run, _ACCURACY)]
    if not new or not old:
        return []
    return [
        f"validation: acc of {_names(new)} counts failed sessions as 0 ({_SINCE}, as its key "
        "acc_success_only shows); "
        f"{_names(old)} {'have' if len(old) > 1 else 'has'} no such key: there acc is of the "
        "sessions that succeeded"
    ]


def _policy_loss(runs: Sequence[Run]) -> list[str]:
    affected = [run for run in runs if _aggregated_otherwise(run)]
    new = list(filter(_measures_sessions, affected))
    old = [run for run in affected if run not in new]
    if not new or not old:
        return []
    return [
        f"policy loss: GSPO goes by loss_agg_mode since {_SINCE}, which keys of {_names(new)} "
        f"show; {_names(old)} may "
        f"be older, with the scale of {_GSPO_USUAL} whatever is set"
    ]


def _measures_sessions(run: Run) -> bool:
    """Return whether a run has metrics that only later versions of verl log."""
    return _has(run, _SUCCESSFUL) or _TURNS.issubset(map(slashed, run.keys))


def _aggregated_otherwise(run: Run) -> bool:
    """Return whether a run states GSPO with an aggregation that earlier versions passed over."""
    loss, mode = (
        run.config.stated((name,))
        for name in ("policy_loss.loss_mode", "actor.loss_agg_mode")
    )
    return (
        loss is not None
        and loss[1] == "gspo"
        and mode is not None
        and mode[1] != _GSPO_USUAL
    )


def _has(run: Run, form: NamePattern) -> bool:
    return any(form.fullmatch(slashed(key)) for key in run.keys)


def _names(runs: Sequence[Run]) -> str:
    return ", ".join(run.name for run in runs)

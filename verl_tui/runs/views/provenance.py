"""The sources that gave the points of a metric."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.metrics import describe
from verl_tui.runs.table import origin_of
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from verl_tui.records import SourceStatus
    from verl_tui.runs.run import Run


ESTIMATED = "its steps are estimated: no source states them"


class Share(NamedTuple):
    """The points of a metric that one source gave."""

    status: SourceStatus
    points: int
    """Points whose value it gave; where several files are one log, those of all of them."""


def shares(run: Run, key: str) -> tuple[Share, ...]:
    """Return the sources that a metric's points come from, the one that gave most first."""
    series = run.series(key)
    if series is None:
        return ()
    counted = Counter(map(origin_of, series.orders))
    found = ((_status(run, source), points) for source, points in counted.most_common())
    return tuple(
        Share(status, points) for status, points in found if status is not None
    )


def leading(run: Run) -> Mapping[str, int]:
    """Return by path the number of metrics whose values in force come from that source; for a log
    in several files, the first path.

    Other sources of the same metric only fill its gaps.
    """
    counted = Counter(map(origin_of, run.precedences()))
    counts = ((_status(run, source), count) for source, count in counted.items())
    return {status.path: count for status, count in counts if status is not None}


def has_estimated_steps(run: Run) -> bool:
    """Return whether no source states the steps of a run: they were counted or estimated."""
    told = [state.status for state in run.sources.values() if state.rows]
    return bool(told) and all(status.counts_steps for status in told)


def origin(run: Run, key: str, step: int) -> SourceStatus | None:
    """Return the source that gave a metric's value at exactly this step, None where there is no
    such point.
    """
    series = run.series(key)
    at = bisect_left(series.steps, step) if series is not None else 0
    if series is None or series.steps[at : at + 1].tolist() != [step]:
        return None
    return _status(run, origin_of(series.orders[at]))


def provenance_words(run: Run, key: str) -> tuple[str, ...]:
    """Return a few words for each source of a metric, the one that gave most first: format, file,
    points.
    """
    found = shares(run, key)
    total = sum(share.points for share in found)
    names = [f"{share.status.title} {_short(share.status.path)}" for share in found]
    if len(found) < 2:
        return tuple(names)
    counts = [f"({share.points} of {total})" for share in found]
    return tuple(map("{} {}".format, names, counts))


def _short(path: str) -> str:
    """Return the end of a path: the folder tells runs apart, the rest is the same for all."""
    return one_line("/".join(PurePath(path).parts[-2:]), 100)


def _status(run: Run, source: tuple[int, int]) -> SourceStatus | None:
    known = (state.status for state in run.sources.values())
    return next(
        (status for status in known if (status.rank, status.ordinal) == source), None
    )


KL_INDICATORS = ("policy_kl", "reference_kl")
"""The KL to the policy that made the samples, which the guide judges first, and that to the
reference.
"""


def shown_kl(run: Run) -> str:
    """Return the indicator of the first KL that a run logs.

    One that is always the same says nothing: a policy that is updated once for each batch has a KL
    of 0 to the one that made its samples, however far from the reference it goes.
    """
    logged = [name for name in KL_INDICATORS if name in run.indicators]
    varied = (name for name in logged if not run.is_constant(run.indicators[name]))
    return next(varied, logged[0] if logged else KL_INDICATORS[0])


def losses(run: Run) -> tuple[str, ...]:
    """Return the keys of a supervised training's losses, those of its validations last; none if
    there are rewards: then a loss is the policy's.
    """
    loss = run.loss_alone
    if loss is None:
        return ()
    held_out = (key for key in run.metrics if describe(key).group == "validation")
    return (loss, *(key for key in held_out if key.endswith("loss")))

"""The sources that gave the points of a metric."""

from __future__ import annotations

from collections import Counter
from pathlib import PurePath
from typing import TYPE_CHECKING

from verl_tui.metrics import describe
from verl_tui.runs.table import origin_of
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from verl_tui.records import SourceStatus
    from verl_tui.runs.run import Run


ESTIMATED = "its steps are estimated: no source states them"


def leading(run: Run) -> Mapping[str, int]:
    """Return by path the number of metrics whose values in force come from that source; for a log
    in several files, the first path.

    Other sources of the same metric only fill its gaps.
    """
    return {status.path: count for status, count in _sources_of(run, run.precedences())}


def has_estimated_steps(run: Run) -> bool:
    """Return whether no source states the steps of a run: they were counted or estimated."""
    with_rows = [state.status for state in run.sources.values() if state.rows]
    return bool(with_rows) and all(status.counts_steps for status in with_rows)


def provenance_words(run: Run, key: str) -> tuple[str, ...]:
    """Return a few words for each source of a metric, the one that gave most first: format, file,
    and the points whose value it gave; several files that are one log count together.
    """
    # The folder tells runs apart, what is before it is the same for all.
    found = [
        (
            f"{status.title} {one_line('/'.join(PurePath(status.path).parts[-2:]), 100)}",
            points,
        )
        for status, points in _sources_of(run, run.orders(key))
    ]
    if len(found) < 2:
        return tuple(name for name, _ in found)
    total = sum(points for _, points in found)
    return tuple(f"{name} ({points} of {total})" for name, points in found)


def _sources_of(run: Run, orders: Iterable[int]) -> list[tuple[SourceStatus, int]]:
    """Return the sources of values with such precedences, each with their number, the one that gave
    most first; for a log in several files, the first of these.
    """
    known = {(one.rank, one.ordinal): one for one in reversed(run.statuses)}
    counted = Counter(map(origin_of, orders)).most_common()
    return [(known[source], count) for source, count in counted if source in known]


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
    if not loss:
        return ()
    held_out = (key for key in run.metrics if describe(key).group == "validation")
    return (loss, *(key for key in held_out if key.endswith("loss")))

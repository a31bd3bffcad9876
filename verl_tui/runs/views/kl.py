"""The one KL that is shown of a run where there is no room for several."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from verl_tui.runs.run import Run

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

"""The losses that tell of learning where there are no rewards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.metrics import describe

if TYPE_CHECKING:
    from verl_tui.runs.run import Run


def losses(run: Run) -> tuple[str, ...]:
    """Return the keys of a supervised training's losses, those of its validations last; none if
    there are rewards: then a loss is the policy's.
    """
    loss = run.loss_alone
    if loss is None:
        return ()
    held_out = (key for key in run.metrics if describe(key).group == "validation")
    return (loss, *(key for key in held_out if key.endswith("loss")))

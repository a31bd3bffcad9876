"""Names of checkpoints and of the folders they lie in."""

from __future__ import annotations

from verl_tui.patterns import pattern

_NAME = pattern(r"^(?:global_step_|policy-step-|checkpoint-|step_?)(\d{1,15})$")
HOMES = ("checkpoints", "ckpts", "ckpt", "checkpoint")
"""Folders below a run in which checkpoints lie; the run's own folder is looked at too."""


def checkpoint_step(name: str) -> int | None:
    """Return the step in a directory's name if it is a checkpoint, else None."""
    found = _NAME.match(name)
    if not found:
        return None
    return int(found.group(1))

"""Turning points on a console: starts, checkpoints, stages, normal ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.patterns import pattern
from verl_tui.records import Event, EventKind
from verl_tui.secrets import hide
from verl_tui.text import one_line

if TYPE_CHECKING:
    import re

WORDS = (
    "validation metrics", "global_step", "global step to", "checkpoint", "Ray instance",
    "from scratch", "queue termination", "Pdb)", "ipdb>", "generation end", "test_gen_batch meta",
    "Running ", "wandb: ", "Capturing", "ready to fit", "instance expiration", "raysubmit_",
)  # fmt: skip
"""Every line that states one contains one of these."""
_MARKS: tuple[tuple[re.Pattern[bytes], EventKind], ...] = (
    (pattern(rb"^[('\"]*Final validation metrics:"), EventKind.FINISHED),
    (
        pattern(
            rb"^\[FullyAsyncTrainer\] Training stopped by queue termination signal"
        ),
        EventKind.FINISHED,
    ),
    (pattern(rb"^Job 'raysubmit_\w+' succeeded"), EventKind.FINISHED),
    # Printed at the end of every process that logged to W&B, of one that failed too.
    (
        pattern(rb"^wandb: (?:Find logs at: |Synced \d|\W*View run .* at: )"),
        EventKind.EXITED,
    ),
    (
        pattern(
            rb"(?:Resuming from .{1,1000}, s|^S)etting global step to (?P<step>\d{1,15})(?!\d)"
        ),
        EventKind.RESUMED,
    ),
    (
        pattern(rb"^Training from scratch|Started a local Ray instance"),
        EventKind.STARTED,
    ),
    (
        pattern(
            rb"(?:local_global_step_folder|Saving checkpoint to):? +"
            rb"(?P<text>\S*global_step_(?P<step>\d{1,15})(?!\d)\S*)"
        ),
        EventKind.CHECKPOINT,
    ),
    (
        pattern(
            rb"Saving model checkpoint to (?P<text>\S*checkpoint-(?P<step>\d{1,15})(?!\d))"
        ),
        EventKind.CHECKPOINT,
    ),
    (
        pattern(
            rb"^\(Pdb\)|^ipdb>|^test_gen_batch meta info|^validation generation end"
            rb"|^\*\*\*\*\* Running \w+|^Capturing [Cc][Uu][Dd][Aa] graph"
            rb"|all initialize finished, ready to fit|instance expiration approaching"
        ),
        EventKind.STAGE,
    ),
)


def turning_point(part: bytes, number: int) -> Event | None:
    """Return the event that a line states, None for most.

    Args:
        part: The line without the prefix of a process.
        number: Its number.
    """
    for form, kind in _MARKS:
        if found := form.search(part):
            groups = found.groupdict()
            step = groups.get("step")
            text = shown(groups.get("text") or part)
            return Event(kind, text, number, int(step) if step else None)
    return None


def shown(text: bytes) -> str:
    """Return a line as an event keeps it: safe, without secrets, not too long."""
    return one_line(hide(text[:2000].decode("utf-8", "replace")), 400)

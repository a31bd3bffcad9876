"""What a console states in words of the steps of its training."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.patterns import pattern
from verl_tui.sources.formats.console.word_search import any_of

if TYPE_CHECKING:
    from collections.abc import Mapping

WORDS = (
    "Total training", "Total optimization", "Total steps", "Size of train", "epoch ",
    "update steps per", "logging_steps", "Continuing training",
    "Setting global step", "validation generation end",
)  # fmt: skip
"""Every line that is read here contains one of these."""
_MAY_STATE = any_of(WORDS)
_FORMS = pattern(
    # verl's trainers, the Trainer of transformers, and Unsloth's
    rb"Total (?:training steps:|(?:optimization )?steps =) (?P<total>[\d,]{1,15})(?!\d)"
    rb"|Size of train dataloader: (?P<batches>\d{1,15})(?!\d)"
    rb"|Num update steps per epoch = (?P<each>[\d,]{1,12})(?!\d)"  # transformers from 5 on
    rb"|logging_steps['\"]?\s{0,40}[=: ]\s{0,40}(?P<every>\d{1,9})\b"
    rb"|^epoch \d{1,9}, step (?P<begun>\d{1,15})\s*$"
    rb"|Continuing training from global step (?P<reached>\d{1,15})(?!\d)"
    rb"|Setting global step to (?P<resumed>\d{1,15})(?!\d)"
    rb"|validation generation end(?P<validated>)"
)


def stated(part: bytes) -> Mapping[str, int]:
    """Return the numbers that a line states, by what they count.

    - `total`: steps of the training
    - `batches`, `each`: steps of an epoch as verl and as transformers state them
    - `every`: steps between two dicts of metrics
    - `begun`: the step that begins
    - `reached`, `resumed`: the step from which transformers' and verl's trainers go on
    - `validated`: 0 where a validation has been generated
    """
    said: dict[str, int] = {}
    for found in _FORMS.finditer(part) if _MAY_STATE.search(part) else ():
        name = found.lastgroup or ""
        said.setdefault(name, int(found[name].replace(b",", b"") or 0))
    return said

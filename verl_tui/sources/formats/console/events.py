"""What a line of a console states in words: turning points of the training, such as starts,
checkpoints, stages and normal ends, and numbers of steps.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from verl_tui.patterns import pattern
from verl_tui.records import Event, EventKind
from verl_tui.secrets import hide
from verl_tui.sources.formats.console.word_search import any_of
from verl_tui.text import one_line
from verl_tui.toml_tables import toml_table

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping, Sequence

TABLE = toml_table(__file__, "events.toml")
WORDS = [word for entry in TABLE["event"] for word in entry.get("words", ())]
"""Every line that states one contains one of these."""


def form_of(kind: str) -> re.Pattern[bytes]:
    """Return what finds all lines of a kind, see `events.toml`."""
    forms = [entry["match"] for entry in TABLE["event"] if entry["kind"] == kind]
    whole = "|".join(forms)
    for name in ("shell", "code"):
        whole = whole.replace(f"{{{name}}}", TABLE[name])
    return pattern(whole.encode())


@cache
def _turning_points() -> Sequence[tuple[re.Pattern[bytes], EventKind]]:
    return [
        (pattern(entry["match"].encode()), EventKind(entry["kind"]))
        for entry in TABLE["event"]
        if "words" in entry
    ]


def turning_point(part: bytes, number: int) -> Event | None:
    """Return the event that a line states, None for most.

    Args:
        part: The line without the prefix of a process.
        number: Its number.
    """
    for form, kind in _turning_points():
        if found := form.search(part):
            groups = found.groupdict()
            step = groups.get("step")
            text = shown(groups.get("text") or part)
            return Event(kind, text, number, int(step) if step else None)
    return None


def shown(text: bytes) -> str:
    """Return a line as an event keeps it: safe, without secrets, not too long."""
    return one_line(hide(text[:2000].decode("utf-8", "replace")), 400)


STATED = (
    "Total training", "Total optimization", "Total steps", "Size of train", "epoch ",
    "update steps per", "logging_steps",
    "Setting global step", "validation generation end",
)  # fmt: skip
"""Every line that is read here contains one of these."""
_MAY_STATE = any_of(STATED)
_FORMS = pattern(
    # verl's trainers, the Trainer of transformers, and Unsloth's
    rb"Total (?:training steps:|(?:optimization )?steps =) (?P<total>[\d,]{1,15})(?!\d)"
    rb"|Size of train dataloader: (?P<batches>\d{1,15})(?!\d)"
    rb"|Num update steps per epoch = (?P<each>[\d,]{1,12})(?!\d)"  # transformers from 5 on
    rb"|logging_steps['\"]?\s{0,40}[=: ]\s{0,40}(?P<every>\d{1,9})\b"
    rb"|^epoch \d{1,9}, step (?P<begun>\d{1,15})\s*$"
    rb"|Setting global step to (?P<resumed>\d{1,15})(?!\d)"
    rb"|validation generation end(?P<validated>)"
)


def stated(part: bytes) -> Mapping[str, int]:
    """Return the numbers that a line states, by what they count.

    - `total`: steps of the training
    - `batches`, `each`: steps of an epoch as verl and as transformers state them
    - `every`: steps between two dicts of metrics
    - `begun`: the step that begins
    - `resumed`: the step from which verl's trainer goes on
    - `validated`: 0 where a validation has been generated
    """
    said: dict[str, int] = {}
    for found in _FORMS.finditer(part) if _MAY_STATE.search(part) else ():
        name = found.lastgroup or ""
        said.setdefault(name, int(found[name].replace(b",", b"") or 0))
    return said

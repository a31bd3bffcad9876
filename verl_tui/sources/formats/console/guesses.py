"""Consoles of trainers that nobody has described: lines that state a step, again and again, with
metrics on them or below, show how this one writes it.
"""

from __future__ import annotations

import re
from collections import deque
from itertools import islice, pairwise
from typing import TYPE_CHECKING

from verl_tui.patterns import pattern
from verl_tui.sources.fields.row_batcher import MetricRow
from verl_tui.sources.formats.console.blocks import BlockReader
from verl_tui.sources.formats.console.leads import certain_parts
from verl_tui.sources.formats.console.unknown_lines import METRIC
from verl_tui.sources.formats.console.word_search import any_of
from verl_tui.text import strip_ansi
from verl_tui.trainers import Form

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from verl_tui.records import Sample

UNKNOWN = "unknown trainer"
NOTE = f"{UNKNOWN}: its steps are guessed, names are as printed; `verl-tui doctor` says how"
_STEP = pattern(
    rb"(?i)(?<![\w/])(?P<word>(?:global|train(?:ing)?|opt(?:imi[sz]er)?|policy)?[ _-]?"
    rb"(?:step|iteration|iter|update))s?[ _]?[#:=]?\s{0,20}(?P<step>\d{1,12})(?![\w.]|:\d)"
)
_WORDS = ("step", "Step", "STEP", "ter", "TER", "pdate", "PDATE")
"""Every line that states a step has one of these in it: most of `iter` and `update`."""
_MAY_STATE = any_of(_WORDS)
_TIME = pattern(rb"\d\d:\d\d:\d\d\S{0,20}")
_SPECIAL = pattern(rb"[\\.^$*+?{}\[\]()|]")
_BEHIND = (
    rb"(?P<step>\d{1,12})(?![\w.]|:\d)(?:\s{0,20}(?:/|of)\s{0,20}\d{1,12})?"
    rb"[\s:\])}=#*|,-]{0,200}"
)
"""The step, how many there are, and what marks a title."""
_ENOUGH = 3
"""Steps that ascend before a line that states them is taken for one: heuristic."""
_SHARED = 2
"""Fewest metrics that all blocks share: heuristic."""
_MOST_LINES = 1000
_MOST_FORMS = 50
_LONGEST = 4000
"""Bytes of a line that are looked at."""


class StepGuess:
    """Looks for the lines that state the steps of one console."""

    def __init__(self) -> None:
        self._lines: deque[bytes] = deque(maxlen=_MOST_LINES)
        """The last ones since the first that may state a step."""
        self._steps: dict[bytes, list[int]] = {}
        """What lines begin with -> the steps that they state."""

    def read(self, part: bytes) -> tuple[Form, Sequence[MetricRow | Sample]] | None:
        """Take a line that nothing else could read; return how steps are stated, and the blocks so
        far, once that is known.
        """
        part = part[:_LONGEST]
        found = _STEP.search(part) if _MAY_STATE.search(part) is not None else None
        if not self._lines and found is None:
            return None
        self._lines.append(part)
        if found is None:
            return None
        begin = _TIME.split(part[: found.start("step")])[-1].lstrip()
        shape = _shape(begin)
        steps = self._steps.setdefault(shape, [])
        steps.append(int(found["step"]))
        if len(self._steps) > _MOST_FORMS:
            self._steps.clear()
        # Blocks of the steps before are complete once the next one begins. Each try looks at all
        # lines again, so there are fewer and fewer.
        if len(steps) <= _ENOUGH or len(steps) & (len(steps) - 1):
            return None
        form = Form(UNKNOWN, found["word"], pattern(_expression(begin)))
        rows = _rows(form, self._lines)
        return (form, rows) if _are_metrics(rows) else None


def form_in(text: bytes) -> Form | None:
    """Return how a text that a console may begin with states its steps; None if it does not."""
    # Of a whole text, each word is found faster alone.
    if not any(word.encode() in text for word in _WORDS):
        return None
    stated = islice(_STEP.finditer(text), _ENOUGH + 1)
    if len(list(stated)) <= _ENOUGH:
        return None
    guess = StepGuess()
    for line in text.split(b"\n"):
        found = guess.read(certain_parts(strip_ansi(line)).text)
        if found is not None:
            return found[0]
    return None


def entry_for(text: bytes) -> str | None:
    """Return the file that would describe the trainer of a console, None if its steps are not
    guessed.
    """
    form = form_in(text)
    if form is None:
        return None
    step = form.step.pattern.decode("utf-8", "replace")
    return f"""# Put this into the folder `trainers` beside the configuration.
name = "my trainer"
own = []  # metrics that no other trainer writes
names = [  # indicator, metric, what it is, where that was read
  # ["reward", "the metric", "its definition", "file.py:12"],
]

[[console]]
word = {form.word.decode()!r}
step = '{step}'
"""


def _shape(begin: bytes) -> bytes:
    return re.sub(rb"\d+", b"0", begin)


def _expression(begin: bytes) -> bytes:
    """Return the expression of a line that begins like one, with other digits."""
    return (
        rb"(?:^|\s)"
        + re.sub(rb"\d+", rb"\\d{1,20}", _SPECIAL.sub(rb"\\\g<0>", begin))
        + _BEHIND
    )


def _rows(form: Form, lines: Iterable[bytes]) -> Sequence[MetricRow | Sample]:
    reader = BlockReader(form)
    return [row for line in lines for row in reader.feed(line) or ()]


def _are_metrics(rows: Sequence[MetricRow | Sample]) -> bool:
    """Return whether blocks are those of a training: they share metrics, and are of steps that
    ascend.
    """
    found = [row for row in rows if isinstance(row, MetricRow)]
    if len(found) < _ENOUGH or any(b.step < a.step for a, b in pairwise(found)):
        return False
    shared = set.intersection(*(set(row.keys) for row in found))
    return len(shared) >= _SHARED and any(METRIC.search(key.encode()) for key in shared)

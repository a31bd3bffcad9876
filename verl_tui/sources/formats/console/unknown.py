"""Consoles of trainers that nobody has described: lines that state a step, again and again, with
metrics on them or below, show how this one writes it. Where no such lines are found, it is said
that there are metrics nevertheless.
"""

from __future__ import annotations

import re
from collections import deque
from itertools import chain, islice, pairwise

from verl_tui.patterns import pattern
from verl_tui.sources.fields.row_batcher import MetricRow
from verl_tui.sources.formats.console.blocks import BlockReader, plain_lines
from verl_tui.sources.formats.console.line_parts import TABLE, any_of
from verl_tui.text import decoded, one_line
from verl_tui.trainers import Form

UNKNOWN = "unknown trainer"
NOTE = f"{UNKNOWN}: its steps are guessed, names are as printed; `verl-tui doctor` says how"
_STEP = pattern(
    rb"(?i)(?<![\w/])(?P<word>(?:global|train(?:ing)?|opt(?:imi[sz]er)?|policy)?[ _-]?"
    rb"(?:step|iteration|iter|update))s?[ _]?[#:=]?\s{0,20}(?P<step>\d{1,12})(?![\w.]|:\d)"
)
_MAY_STATE = any_of(TABLE["states"])
"""Found in every line that states a step, in small letters."""
_METRIC = pattern(
    rb"(?i)loss|entropy|grad|\bkl\b|kl_|_kl"
    rb"|(?:mean|avg|average|std)[ _]?(?:reward|return|score)"
    rb"|(?:reward|return|score)s?[ _]?(?:mean|avg|std)"
)
"""Words in a line of a training's metrics; a reward alone may be that of one sample."""
_MAY_MEASURE = any_of(TABLE["measures"])
"""Found in every such line, in small letters."""
_PAIR = pattern(
    rb"(?i)(?<!\w)([a-z][\w/.-]{1,40})(?:['\"]? {0,20}[=:] {0,20}| {1,20})"
    rb"([-+]?(?:\d{1,15}(?:\.\d{0,20})?|\.\d{1,20})(?:e[-+]?\d{1,3})?)"
    rb"(?=[%\s,;:/|)\]}]|[a-z]{1,3}\b|$)"
)
"""A name and its number."""
_TIME = pattern(rb"\d\d:\d\d:\d\d\S{0,20}")
_BEHIND = (
    rb"(?P<step>\d{1,12})(?![\w.]|:\d)(?:\s{0,20}(?:/|of)\s{0,20}(?P<total>\d{1,12}))?"
    rb"[\s:\])}=#*|,-]{0,200}"
)
"""The step, how many there are, and what marks a title."""
_ENOUGH = 3
"""Steps that ascend before a line that states them is taken for one: heuristic."""
_SHARED = 2
"""Fewest metrics that all blocks share: heuristic."""
_PAIRS = 3
"""Fewest numbers of a line of metrics: heuristic."""
_ALIKE = 5
"""Lines with the same names that are no chance: heuristic."""
_MOST_LINES = 1000
_MOST_FORMS = 50
_LONGEST = 4000
"""Bytes of a line that are looked at."""
_WATCHED = 20_000
"""Lines among which the first such ones are looked for."""


class UnknownTrainer:
    """Looks for the metrics of one console, as long as no step of it is known."""

    def __init__(self) -> None:
        self.lines: deque[bytes] = deque(maxlen=_MOST_LINES)
        """The last ones since the first that may state a step."""
        self._last = ""
        """The last of many lines with metrics in no known form, with its number."""
        self._steps: dict[bytes, list[int]] = {}
        """What lines begin with -> the steps that they state."""
        self._alike: dict[tuple[bytes, ...], tuple[int, tuple[bytes, ...]]] = {}
        """By the names in them: lines, and the last numbers; those that repeat are settings."""
        self._seen = 0

    @property
    def watches(self) -> bool:
        """True while lines may be such."""
        return bool(self._last) or self._seen < _WATCHED

    @property
    def words(self) -> str:
        """Say how many lines have metrics; empty if none."""
        many = sum(times for times, _ in self._alike.values() if times >= _ALIKE)
        said = f"{many:,} lines with metrics are in no known form, as {self._last}"
        return said if many else ""

    def read(self, part: bytes, number: int) -> Form | None:
        """Take a line that nothing else could read; return how steps are stated, once that is
        known.
        """
        self._seen += 1
        part = part[:_LONGEST]
        lower = part.lower()
        found = _STEP.search(part) if _MAY_STATE.search(lower) else None
        if self.watches and _MAY_MEASURE.search(lower) and _METRIC.search(part):
            pairs = _PAIR.findall(part)
            if len(pairs) >= _PAIRS - (found is not None):
                self._note(part, number, *zip(*pairs, strict=True))
        if self.lines or found:
            self.lines.append(part)
        return self._form(part, found) if found else None

    def _note(
        self,
        part: bytes,
        number: int,
        names: tuple[bytes, ...],
        numbers: tuple[bytes, ...],
    ) -> None:
        """Note a line with metrics."""
        times, before = self._alike.get(names, (0, ()))
        if before == numbers or (not before and len(self._alike) >= _MOST_FORMS):
            return
        self._alike[names] = times + 1, numbers
        if times + 1 >= _ALIKE:
            said = one_line(decoded(part), 80)
            self._last = f"line {number}: {said}"

    def _form(self, part: bytes, found: re.Match[bytes]) -> Form | None:
        """Return how a line states its step, where enough lines do so with a training's metrics."""
        begin = _TIME.split(part[: found.start("step")])[-1].lstrip()
        steps = self._steps.setdefault(re.sub(rb"\d+", b"0", begin), [])
        steps.append(int(found["step"]))
        if len(self._steps) > _MOST_FORMS:
            self._steps.clear()
        # Blocks of the steps before are complete once the next one begins. Each try looks at all
        # lines again, so there are fewer and fewer.
        if len(steps) <= _ENOUGH or len(steps) & (len(steps) - 1):
            return None
        escaped = re.escape(begin).replace(b"\\ ", b" ")
        expression = rb"(?:^|\s)" + re.sub(rb"\d+", rb"\\d{1,20}", escaped) + _BEHIND
        form = Form(UNKNOWN, found["word"], pattern(expression), pattern(b""))
        return form if self._are_metrics(form) else None

    def _are_metrics(self, form: Form) -> bool:
        """Return whether blocks are those of a training: they share metrics, and are of steps that
        ascend.
        """
        reader = BlockReader(form)
        read = chain.from_iterable(reader.feed(line) or () for line in self.lines)
        rows = [row for row in read if isinstance(row, MetricRow)]
        if len(rows) < _ENOUGH or any(b.step < a.step for a, b in pairwise(rows)):
            return False
        shared = set.intersection(*(set(row.keys) for row in rows))
        named = _METRIC.search("\n".join(shared).encode()) is not None
        return named and len(shared) >= _SHARED


def form_in(text: bytes) -> Form | None:
    """Return how a text that a console may begin with states its steps; None if it does not."""
    stated = _STEP.finditer(text) if _MAY_STATE.search(text.lower()) else ()
    if len(list(islice(stated, _ENOUGH + 1))) <= _ENOUGH:
        return None
    guess = UnknownTrainer()
    forms = (guess.read(line, 0) for line in plain_lines(text))
    return next(filter(None, forms), None)


def entry_for(text: bytes) -> str | None:
    """Return the file that would describe the trainer of a console, None if its steps are not
    guessed.
    """
    form = form_in(text)
    if not form:
        return None
    step = decoded(form.step.pattern)
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

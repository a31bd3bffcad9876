"""Samples as verl's reward managers print them on the console, over several lines each.

`[prompt] … [response] … [ground_truth] … [score] …`, and a line for every further value where the
reward function gives several (verl/workers/reward_manager/naive.py). `num_examine` is 0 in training
unless users change it: what follows `validation generation end` is a validation's.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from verl_tui.patterns import pattern
from verl_tui.records import Sample
from verl_tui.sources.fields.sample import LONGEST_TEXT
from verl_tui.sources.formats.console import fork_blocks
from verl_tui.sources.formats.console.fork_blocks import ForkBlock
from verl_tui.text import safe

if TYPE_CHECKING:
    from collections.abc import Sequence

_LONGEST_SAMPLE = 2000
"""Lines after which a block that did not end is given up."""
_AT_ONCE = 8192
"""Bytes in which lines of a sample are looked for at once."""
_NOT_PLAIN = (b"step:", b"\r", b"\x1b")
"""A line that has one of these may be more than a model's text."""
_FIELD = pattern(rb"^\[(prompt|response|ground_truth|score)\] ?")
_NAME = len("[ground_truth]")
"""The most bytes of a field's name."""
_VALUE = pattern(rb"^\[(\w{1,60})\] ([^\n]{0,2000})$")
"""A further value of the reward function."""
BEGIN = "[prompt]"
"""The first line of a sample contains it."""
_VALIDATED = b"validation generation end"
WORDS = ("validation generation end", "Setting global step", *fork_blocks.WORDS)
"""Every line that says which samples follow contains one of these."""
_BEGUN = pattern(rb"epoch \d{1,9}, step (\d{1,15})\s*$")
_RESUMED = pattern(rb"Setting global step to (\d{1,15})(?!\d)")


class SampleBlock:
    """Collects samples; a complete one waits for the values that may follow its score."""

    def __init__(self) -> None:
        self._prefix = b""
        self._fields: dict[str, list[bytes]] = {}
        self._field: str | None = None
        self._count = 0
        self._values: dict[str, Any] = {}
        """Further values of the waiting sample."""
        self._waiting: Sample | None = None
        self._validating = False
        """True if a validation has been generated since the last step."""
        self._resumed: int | None = None
        """The step from which the run resumes, until a step line follows."""
        self._reached: int | None = None
        """The step that the console says it has begun."""
        self._forks = ForkBlock()

    @property
    def begun(self) -> bool:
        """True if a sample has begun and not ended."""
        return self._field is not None

    @property
    def waits(self) -> bool:
        """True if a complete sample waits for further values, or a fork's for its end."""
        return self._waiting is not None or self.listens

    @property
    def listens(self) -> bool:
        """True if any line may belong to a sample, and be something else as well."""
        return self._forks.begun

    def holds(self, prefix: bytes) -> bool:
        """Return True if a line of this actor is part of a sample, so that a model wrote it."""
        return self._field is not None and prefix == self._prefix

    def leave(self) -> None:
        """Give the block up: a step line shows that it is over."""
        self._fields = {}
        self._field = None
        self._count = 0

    def trained(self) -> None:
        """Note that a step has ended: the next samples belong to another one."""
        self._validating = False
        self._resumed = None

    def notice(self, part: bytes) -> None:
        """Take a line outside of a sample that may say which samples follow."""
        if _VALIDATED in part:
            self._validating = True
        elif b"Setting global step" in part and (found := _RESUMED.search(part)):
            self._resumed = int(found[1])
        elif found := _BEGUN.match(part):
            self._reached = int(found[1])

    def held(self, step: int | None) -> Sequence[Sample]:
        """Return the samples that only wait for lines that may never come.

        Args:
            step: Last step seen.
        """
        return (*self._held(), *self._placed(self._forks.held(), step))

    def _placed(self, samples: Sequence[Sample], step: int | None) -> Sequence[Sample]:
        """Return samples of forks at the step that they belong to."""
        return [
            one._replace(step=self._step(step), validation=self._validating)
            for one in samples
        ]

    def _held(self) -> Sequence[Sample]:
        """Return the sample that waits for further values."""
        if self._waiting is None:
            return ()
        sample = self._waiting
        values = self._values
        self._waiting = None
        self._values = {}
        return (sample._replace(extras=values) if values else sample,)

    def feed(self, prefix: bytes, part: bytes, step: int | None) -> Sequence[Sample]:
        """Take a line; return the samples that it completes.

        Args:
            prefix: Names the actor that printed the line.
            part: The line.
            step: Last step seen; the sample belongs to the one after it.
        """
        found = _FIELD.match(part) if part.startswith(b"[") else None
        samples: Sequence[Sample] = ()
        if self._waiting is not None and prefix == self._prefix:
            if found is None and self._value(part):
                return ()
            samples = self._held()
        if found is not None:
            if self._enter(found[1].decode(), prefix):
                self._add(part[found.end() :], step)
        elif self.holds(prefix):
            self._continue(part, step)
        if not self.begun:
            samples = (*samples, *self._placed(self._forks.feed(prefix, part), step))
        return samples

    def take(
        self, text: bytes, at: int, lead: bytes, step: int | None
    ) -> tuple[int, Sequence[Sample]]:
        """Take all lines that follow one of a sample and are certain to belong to it, or to others
        right behind it; return where they end, and the samples that they complete.

        Args:
            text: Complete lines.
            at: Where the first of them begins.
            lead: What the lines of the sample's actor begin with.
            step: Last step seen.
        """
        samples: list[Sample] = []
        while True:
            end = self._take_text(text, at, lead)
            if end == at and (line := self._field_at(text, at, lead)):
                samples.extend(self.feed(self._prefix, line, step))
                end = at + len(lead) + len(line) + 1
            if end == at:
                return at, samples
            at = end

    def _take_text(self, text: bytes, at: int, lead: bytes) -> int:
        """Take the lines of the open field that follow one another; return where they end."""
        if self.waits or self._field is None:
            return at
        limit = at + _AT_ONCE
        found = _last_end(lead).search(text, at - 1, limit)
        end = found.start() if found is not None else text.rfind(b"\n", 0, limit)
        lines = text[at - 1 : end].replace(b"\n" + lead, b"\n")
        for sign in _NOT_PLAIN:
            other = lines.find(sign)
            if other >= 0:
                lines = lines[: lines.rfind(b"\n", 0, other)]
        count = lines.count(b"\n")
        if not count or self._count + count > _LONGEST_SAMPLE:
            return at
        self._count += count
        self._fields.setdefault(self._field, []).append(lines[1:])
        return at + len(lines) + count * len(lead)

    def _field_at(self, text: bytes, at: int, lead: bytes) -> bytes:
        """Return a line that begins a field of a sample; nothing where it may be something else."""
        begin = at + len(lead)
        if not text.startswith(lead + b"[", at) or not _FIELD.match(
            text[begin : begin + _NAME]
        ):
            return b""
        line = text[begin : text.index(b"\n", begin)]
        if any(sign in line for sign in _NOT_PLAIN):
            return b""
        # Behind a sample only the next one is certain; a bar before it is not the sample's.
        begins = line.startswith(BEGIN.encode()) and b"%|" not in line
        return line if self.begun or begins else b""

    def _continue(self, part: bytes, step: int | None) -> None:
        """Take a further line of the open field."""
        if self._field == "ground_truth" and self._value(part):
            self._complete(step)  # a reward function that gives no score
        else:
            self._add(part, step)

    def _enter(self, field: str, prefix: bytes) -> bool:
        """Begin a field; return False if it belongs to no sample of this actor."""
        if field == "prompt":
            self.leave()
            self._prefix = prefix
        elif not self.holds(prefix):
            return False
        self._field = field
        return True

    def _add(self, part: bytes, step: int | None) -> None:
        assert self._field is not None
        self._count += 1
        if self._count > _LONGEST_SAMPLE:
            self.leave()
            return
        self._fields.setdefault(self._field, []).append(part)
        if self._field == "score":
            self._complete(step)

    def _value(self, part: bytes) -> bool:
        """Take a further value of the reward function; return False if a line is none."""
        found = _VALUE.match(part) if part.startswith(b"[") else None
        if found is None:
            return False
        text = safe(found[2].decode("utf-8", "replace"))
        number = _float(text)
        self._values[safe(found[1].decode(), 60)] = text if number is None else number
        return True

    def _complete(self, step: int | None) -> None:
        """Let the sample wait for further values."""
        prompt, response, truth, score = (
            self._text(name) for name in ("prompt", "response", "ground_truth", "score")
        )
        has_response = "response" in self._fields
        self.leave()
        if not has_response:
            self._values = {}
            return
        self._waiting = Sample(
            self._step(step),
            prompt,
            response,
            _float(score),
            truth or None,
            validation=self._validating,
        )

    def _step(self, step: int | None) -> int | None:
        """Return a sample's step; that of a validation before training is the one resumed from."""
        if self._validating and self._resumed is not None:
            return self._resumed
        if step is None:
            return 0 if self._validating else self._reached
        return step + 1

    def _text(self, field: str) -> str:
        return safe(
            b"\n".join(self._fields.get(field, ())).decode("utf-8", "replace"),
            LONGEST_TEXT,
        )


@lru_cache(maxsize=64)
def _last_end(lead: bytes) -> re.Pattern[bytes]:
    """Return what finds the end of the last of the lines that begin alike and go on with no
    bracket.
    """
    return re.compile(b"\n(?!%b(?![^\\S\n]?[(\\[]|\\0))" % re.escape(lead))


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return {"True": 1.0, "False": 0.0}.get(text.strip())

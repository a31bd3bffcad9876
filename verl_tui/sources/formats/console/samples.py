"""Samples as verl and its forks print them on the console, over several lines each.

verl's reward managers (verl/workers/reward_manager/naive.py): `[prompt] … [response] …
[ground_truth] … [score] …`, and a line for every further value where the reward function gives
several. `num_examine` is 0 in training unless users change it: what follows `validation generation
end` is a validation's. A model wrote these lines: nothing else is read from them.

Search-R1 and TinyZero (verl/utils/reward_score/qa_em.py, countdown.py): `Golden answers: …`,
`Extracted answer: …`, `Solution string: …`, which holds the prompt, too. Logic-RL (kk.py):
`[Ground Truth] …`, `[Model Response]` and the response, some checks, and three scores. These have
no end that nothing else could be: what stands in them is read as any other line, too.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from verl_tui.patterns import pattern
from verl_tui.records import Sample
from verl_tui.sources.fields.sample import LONGEST_TEXT
from verl_tui.text import safe, strip_ansi

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_LONGEST = 2000
"""Lines after which a sample that did not end is given up."""
_AT_ONCE = 8192
"""Bytes in which lines of a sample are looked for at once."""
_FIELD = pattern(rb"^\[(prompt|response|output|ground_truth|score)\] ?")
_EASY = "output"
"""EasyR1's name of a response, which it prints of validations alone (logger/gen_logger.py)."""
_RAY = pattern(rb"(?:\x1b\[[\d;]{0,20}m)*\([^()\x1b\n]*\)(?:\x1b\[[\d;]{0,20}m)* ")
"""Ray's prefix with its colours."""
_VALUE = pattern(rb"^\[(\w{1,60})\] ([^\n]{0,2000})$")
"""A further value of the reward function."""
BEGIN = "[prompt]"
"""The first line of a sample contains it."""
_FORK_FIELD = pattern(
    rb"(?:(?P<truth>Golden answers:|Target:(?= \S{1,40} \| Numbers: )|\[Ground Truth\]:?)"
    rb"|(?P<extracted>Extracted (?:answer|equation):)"
    rb"|(?P<response>Solution string:|\[Model Response\]:?)"
    rb"|(?P<check>\[(?:Structure Validation|Model Answer Parsing|Content Validation)\]:?)) ?"
)
"""Begins a field of a fork's sample, or a check, which ends one."""
WORDS = (
    "Golden answers", "Target: ", "Extracted ", "Solution string", "[Ground Truth]",
    "[Model Response]", " Validation]", " Parsing]",
)  # fmt: skip
"""Every line that begins a field of a fork's sample contains one of these."""
_SCORE = pattern(rb"  (Format|Answer|Total): (-?\d{1,20}(?:\.\d{1,20})?)\s*$")
_OVER = pattern(
    rb"[-=]{20,}\s*$|epoch \d+, step \d|step:\d|ACTIVE_TRAJ_NUM|Traceback \(|Error executing job"
)
"""What comes behind a sample of Search-R1."""
_ANSWERS = (
    "<|im_start|>assistant\n",
    "<|start_header_id|>assistant<|end_header_id|>\n",
)
"""What stands between prompt and response."""


class _Texts:
    """The texts of a sample that one process prints."""

    def __init__(self, prefix: bytes = b"", field: str | None = None) -> None:
        self.prefix = prefix
        self.field = field
        """The field that is open; None outside of a sample."""
        self.lines: dict[str, list[bytes]] = {}
        self.count = 0

    def add(self, text: bytes, count: int = 1) -> bool:
        """Take lines of the open field; return False where they are too many."""
        self.count += count
        assert self.field is not None
        self.lines.setdefault(self.field, []).append(text)
        return self.count <= _LONGEST

    def __getitem__(self, field: str) -> str:
        text = b"\n".join(self.lines.get(field, ()))
        return safe(text.decode("utf-8", "replace"), LONGEST_TEXT)


class SampleReader:
    """Reads the samples of one console; a complete one waits for values behind its score."""

    def __init__(self) -> None:
        self._texts = _Texts()
        self._waiting: Sample | None = None
        self._values: dict[str, Any] = {}
        """Further values of the waiting sample."""
        self._validating = False
        """True if a validation has been generated since the last step."""
        self._resumed: int | None = None
        """The step from which the run resumes, until a step line follows."""
        self._reached: int | None = None
        """The step that the console says it has begun."""
        self._forks = _ForkReader()

    @property
    def begun(self) -> bool:
        """True if a sample has begun and not ended."""
        return self._texts.field is not None

    @property
    def is_busy(self) -> bool:
        """True if a sample has begun, or waits for further values or, a fork's, for its end."""
        return self.begun or self._waiting is not None or self.listens

    @property
    def listens(self) -> bool:
        """True if any line may belong to a sample, and be something else as well."""
        return self._forks.begun

    def holds(self, prefix: bytes) -> bool:
        """Return True if a line of this actor is part of a sample, so that a model wrote it."""
        return self.begun and prefix == self._texts.prefix

    def leave(self) -> None:
        """Give the sample up: a step line shows that it is over."""
        self._texts = _Texts(self._texts.prefix)

    def trained(self) -> None:
        """Note that a step has ended: the next samples belong to another one."""
        self._validating = False
        self._resumed = None

    def notice(self, said: Mapping[str, int]) -> None:
        """Take what a line outside of a sample states, which may say which samples follow."""
        self._validating = self._validating or "validated" in said
        self._resumed = said.get("resumed", self._resumed)
        self._reached = said.get("begun", self._reached)

    def held(self, step: int | None) -> Sequence[Sample]:
        """Return the samples that only wait for lines that may never come.

        Args:
            step: Last step seen.
        """
        return (*self._held(), *self._placed(self._forks.held(), step))

    def _held(self) -> Sequence[Sample]:
        """Return the sample that waits for further values."""
        waiting, values = self._waiting, self._values
        self._waiting, self._values = None, {}
        return (waiting._replace(extras=values),) if waiting is not None else ()

    def _placed(self, samples: Sequence[Sample], step: int | None) -> Sequence[Sample]:
        """Return samples at the step that they belong to."""
        return [
            one._replace(step=self._step(step), validation=self._validating)
            for one in samples
        ]

    def feed(self, prefix: bytes, part: bytes, step: int | None) -> Sequence[Sample]:
        """Take a line; return the samples that it completes.

        Args:
            prefix: Names the actor that printed the line.
            part: The line.
            step: Last step seen; the sample belongs to the one after it.
        """
        found = _FIELD.match(part) if part.startswith(b"[") else None
        samples: Sequence[Sample] = ()
        if self._waiting is not None and prefix == self._texts.prefix:
            if found is None and self._value(part):
                return ()
            samples = self._held()
        if found is not None and found[1] == b"prompt":
            self._texts = _Texts(prefix, "prompt")
        if self.holds(prefix):
            self._continue(found, part, step)
        if not self.begun:
            samples = (*samples, *self._placed(self._forks.feed(prefix, part), step))
        return samples

    def take(self, text: bytes, at: int, line: bytes) -> int:
        """Take the lines behind one of a sample that are certain to belong to its field; return
        where they end.

        Args:
            text: Complete lines.
            at: Where the first of them begins.
            line: The one before, which nothing was put before but by Ray.
        """
        ray = _RAY.match(line)
        lead = ray.group() if ray is not None else b""
        waits = self._waiting is not None or self.listens
        if waits or strip_ansi(lead) != self._texts.prefix:
            return at
        found = _plain_lines(lead).match(text, at, at + _AT_ONCE)
        lines = found.group() if found is not None else b""
        other = lines.find(b"step:")
        if other >= 0:
            lines = lines[: lines.rfind(b"\n", 0, other) + 1]
        count = lines.count(b"\n")
        if not count or self._texts.count + count > _LONGEST:
            return at
        self._texts.add(lines[len(lead) : -1].replace(b"\n" + lead, b"\n"), count)
        return at + len(lines)

    def _continue(
        self, found: re.Match[bytes] | None, part: bytes, step: int | None
    ) -> None:
        """Take a line of the sample, which may begin a field."""
        if found is not None:
            self._texts.field = found[1].decode().replace(_EASY, "response")
            self._validating = self._validating or found[1].decode() == _EASY
            part = part[found.end() :]
        field = self._texts.field
        # A reward function may give values but no score.
        may_end = field == "ground_truth" and found is None
        is_value = may_end and self._value(part)
        if not is_value and not self._texts.add(part):
            self.leave()
        elif is_value or field == "score":
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
        texts = self._texts
        self.leave()
        if "response" not in texts.lines:
            self._values = {}
            return
        self._waiting = Sample(
            self._step(step),
            texts["prompt"],
            texts["response"],
            _float(texts["score"]),
            texts["ground_truth"] or None,
            validation=self._validating,
        )

    def _step(self, step: int | None) -> int | None:
        """Return a sample's step; that of a validation before training is the one resumed from."""
        if self._validating and self._resumed is not None:
            return self._resumed
        if step is None:
            return 0 if self._validating else self._reached
        return step + 1


class _ForkReader:
    """Reads the samples of forks, without their steps."""

    def __init__(self) -> None:
        self._texts: _Texts | None = None
        """None outside of a sample."""
        self._scores: dict[str, Any] = {}

    @property
    def begun(self) -> bool:
        """True within a sample."""
        return self._texts is not None

    def feed(self, prefix: bytes, part: bytes) -> Sequence[Sample]:
        """Take a line; return the sample that it completes."""
        found = _FORK_FIELD.match(part)
        out: Sequence[Sample] = ()
        if found is not None and found.lastgroup == "truth":
            out = self.held()
            self._texts = _Texts(prefix.strip())
        texts = self._texts
        if texts is None or prefix.strip() != texts.prefix:
            return out
        if found is not None:
            texts.field = found.lastgroup
            part = part[found.end() :]
        elif self._ends(texts.field, part):
            return self.held()
        if not texts.add(part):
            self._texts = None
        return out

    def _ends(self, field: str | None, part: bytes) -> bool:
        """Return whether a line ends the sample: among checks the last score does."""
        if field == "response":
            return _OVER.match(part) is not None
        score = _SCORE.match(part) if field == "check" else None
        if score is None:
            return False
        self._scores[score[1].decode().lower()] = float(score[2])
        return score[1] == b"Total"

    def held(self) -> Sequence[Sample]:
        """Return the sample, which is over."""
        texts, scores = self._texts, self._scores
        self._texts, self._scores = None, {}
        if texts is None or "response" not in texts.lines:
            return ()
        prompt, response = _parted(texts["response"].strip("\n"))
        if "extracted" in texts.lines:
            scores = {"extracted_answer": texts["extracted"].strip("\n"), **scores}
        total = scores.pop("total", None)
        truth = texts["truth"].strip("\n") or None
        return (Sample(None, prompt, response, total, truth, extras=scores),)


def _parted(text: str) -> tuple[str, str]:
    """Return prompt and response of a text that may hold both."""
    for mark in _ANSWERS:
        prompt, found, response = text.partition(mark)
        if found:
            return prompt, response
    return "", text


@lru_cache(maxsize=64)
def _plain_lines(lead: bytes) -> re.Pattern[bytes]:
    """Return what matches lines that begin alike, and go on with no bracket or escape."""
    return re.compile(rb"(?:%b(?![^\S\n]?[(\[]|\0)[^\n\r\x1b]*\n)+" % re.escape(lead))


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return {"True": 1.0, "False": 0.0}.get(text.strip())

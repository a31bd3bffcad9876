"""Samples as forks of verl print them on the console, without an end that nothing else could be.

Search-R1 and TinyZero (verl/utils/reward_score/qa_em.py, countdown.py): `Golden answers: …`,
`Extracted answer: …`, `Solution string: …`, which holds the prompt, too. Logic-RL (kk.py):
`[Ground Truth] …`, `[Model Response]` and the response, some checks, and three scores.

What stands in a block may be anything else as well: nothing is taken from those who read events.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from verl_tui.patterns import pattern
from verl_tui.records import Sample
from verl_tui.sources.fields.sample import LONGEST_TEXT
from verl_tui.text import safe

if TYPE_CHECKING:
    from collections.abc import Sequence

_LONGEST_SAMPLE = 2000
"""Lines after which a block that did not end is given up."""
_FIELDS = {
    b"Golden answers": "truth",
    b"Target": "truth",
    b"[Ground Truth]": "truth",
    b"Extracted answer": "extracted",
    b"Extracted equation": "extracted",
    b"Solution string": "response",
    b"[Model Response]": "response",
    b"[Structure Validation]": "",
    b"[Model Answer Parsing]": "",
    b"[Content Validation]": "",
}
"""Lines that begin a field of a sample; those of checks end one."""
WORDS = tuple(name.decode() for name in _FIELDS)
_FIELD = pattern(
    rb"((?:Golden answers|Target(?=: \S{1,40} \| Numbers: )|Extracted (?:answer|equation)"
    rb"|Solution string)(?=: ?)"
    rb"|\[(?:Ground Truth|Model Response|Structure Validation|Model Answer Parsing"
    rb"|Content Validation)\]):? ?"
)
_SCORE = pattern(rb"  (Format|Answer|Total): (-?\d{1,20}(?:\.\d{1,20})?)\s*$")
_OVER = pattern(
    rb"[-=]{20,}\s*$|epoch \d+, step \d|step:\d|ACTIVE_TRAJ_NUM|Traceback \(|Error executing job"
)
"""What comes behind a block of Search-R1."""
_ANSWERS = (
    "<|im_start|>assistant\n",
    "<|start_header_id|>assistant<|end_header_id|>\n",
)
"""What stands between prompt and response."""


class ForkBlock:
    """Collects the samples of one console."""

    def __init__(self) -> None:
        self._prefix = b""
        self._texts: dict[str, list[bytes]] | None = None
        """The fields of the block so far, None outside of one."""
        self._lines = 0
        self._field = ""
        self._scores: dict[str, Any] = {}

    @property
    def begun(self) -> bool:
        """True within a block."""
        return self._texts is not None

    def feed(self, prefix: bytes, part: bytes) -> Sequence[Sample]:
        """Take a line; return the sample that it completes, without a step.

        Args:
            prefix: Names the actor that printed the line.
            part: The line.
        """
        found = _FIELD.match(part)
        out: Sequence[Sample] = ()
        if found is not None and _FIELDS[found[1]] == "truth":
            out = self.held()
            self._texts = {}
            self._lines = 0
            self._prefix = prefix.strip()
        if self._texts is None or prefix.strip() != self._prefix:
            return out
        if found is not None:
            self._field = _FIELDS[found[1]]
            part = part[found.end() :]
        elif self._field == "response" and _OVER.match(part):
            return self.held()
        return self._add(self._texts, part) or out

    def _add(self, texts: dict[str, list[bytes]], part: bytes) -> Sequence[Sample]:
        """Take a line of the field that is open; among checks only scores matter."""
        self._lines += 1
        if self._lines > _LONGEST_SAMPLE:
            self._texts = None
            return ()
        if not self._field:
            score = _SCORE.match(part)
            return self._score(score[1].decode(), float(score[2])) if score else ()
        texts.setdefault(self._field, []).append(part)
        return ()

    def held(self) -> Sequence[Sample]:
        """Return the sample of the block, which is over."""
        texts = self._texts or {}
        scores = self._scores
        self._texts = None
        self._scores = {}
        if "response" not in texts:
            return ()
        prompt, response = _parted(_text(texts["response"]))
        if "extracted" in texts:
            scores = {"extracted_answer": _text(texts["extracted"]), **scores}
        total = scores.pop("total", None)
        truth = _text(texts["truth"])
        return (Sample(None, prompt, response, total, truth or None, extras=scores),)

    def _score(self, name: str, value: float) -> Sequence[Sample]:
        self._scores[name.lower()] = value
        return self.held() if name == "Total" else ()


def _text(lines: Sequence[bytes]) -> str:
    return safe(b"\n".join(lines).decode("utf-8", "replace"), LONGEST_TEXT).strip("\n")


def _parted(text: str) -> tuple[str, str]:
    """Return prompt and response of a text that may hold both."""
    for mark in _ANSWERS:
        prompt, found, response = text.partition(mark)
        if found:
            return prompt, response
    return "", text

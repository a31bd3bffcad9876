"""Samples as verl's reward managers print them on the console, over several lines each."""

from __future__ import annotations

import re

from verl_tui.records import Sample
from verl_tui.sources.sample import LONGEST_TEXT
from verl_tui.text import safe

_LONGEST_SAMPLE = 2000
"""Lines after which a block that did not end is given up."""
_FIELD = re.compile(rb"^\[(prompt|response|ground_truth|score)\] ?")


class SampleBlock:
    """Collects `[prompt] … [response] … [ground_truth] … [score] …` (verl's reward managers, `num_examine`)."""

    def __init__(self) -> None:
        self._prefix = b""
        self._fields: dict[str, list[bytes]] = {}
        self._field: str | None = None
        self._count = 0

    @property
    def begun(self) -> bool:
        """Whether a sample has begun and not ended."""
        return self._field is not None

    def holds(self, prefix: bytes) -> bool:
        """Tell whether a line of this actor is part of a sample: a model wrote it."""
        return self._field is not None and prefix == self._prefix

    def leave(self) -> None:
        """Give the block up: a step line shows that it is over."""
        self._fields, self._field, self._count = {}, None, 0

    def feed(self, prefix: bytes, part: bytes, step: int | None) -> Sample | None:
        """Take a line; return the sample with its last one.

        Args:
            prefix: Names the actor that printed the line.
            part: The line.
            step: Last step seen; the sample belongs to the one after it.
        """
        found = _FIELD.match(part) if part.startswith(b"[") else None
        if found is not None:
            field = found.group(1).decode()
            if field == "prompt":
                self.leave()
                self._prefix = prefix
            elif self._field is None or prefix != self._prefix:
                return None
            self._field = field
            part = part[found.end() :]
        elif not self.holds(prefix):
            return None
        assert self._field is not None
        self._count += 1
        if self._count > _LONGEST_SAMPLE:
            self.leave()
            return None
        self._fields.setdefault(self._field, []).append(part)
        return self._sample(step) if self._field == "score" else None

    def _sample(self, step: int | None) -> Sample | None:
        prompt, response, truth, score = (self._text(name) for name in ("prompt", "response", "ground_truth", "score"))
        has_response = "response" in self._fields
        self.leave()
        if not has_response:
            return None
        try:
            value = float(score)
        except ValueError:
            value = None
        return Sample(None if step is None else step + 1, prompt, response, value, truth or None)

    def _text(self, field: str) -> str:
        return safe(b"\n".join(self._fields.get(field, ())).decode("utf-8", "replace"), LONGEST_TEXT)

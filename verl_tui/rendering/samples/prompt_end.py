"""The end of a prompt, of which a folded text shows the last rows."""

from __future__ import annotations

import re

from verl_tui.patterns import pattern
from verl_tui.rendering.text.wrap import spans

_OPENING = pattern(
    r"\s*(?:<[^<>]{1,40}>\s*)*"
    r"(?:(?:(?:assistant|model|gpt):?|:)\s*(?:<[^<>]{1,40}>\s*)*)?",
    re.IGNORECASE,
)
"""The lines that open the model's turn: `<|im_start|>assistant`, `Assistant:`, `<think>`."""
_LONGEST = 80
"""Characters of such a line at most."""
_MOST = 4
"""Such lines at most."""


def prompt_end(text: str) -> int:
    """Return the end of a prompt, without the last lines that only open the model's turn."""
    end = len(text.rstrip("\n"))
    for _ in range(_MOST):
        start = text.rfind("\n", 0, end) + 1
        if not start or end - start > _LONGEST:
            break
        if _OPENING.fullmatch(text, start, end) is None:
            break
        end = start - 1
    return end


def last_rows(text: str, end: int, width: int, rows: int) -> list[tuple[int, int]]:
    """Return the last rows of the text before `end`, wrapping only its last lines."""
    found: list[tuple[int, int]] = []
    while len(found) < rows and end >= 0:
        start = text.rfind("\n", 0, end) + 1
        line = spans(text[start:end], width)
        found[:0] = [(start + first, start + last) for first, last in line]
        end = start - 1
    return found[-rows:]

"""A prompt or response cut into stretches by speaker and kind: thoughts, tool calls, results, code.

The stretches joined are the text, whatever it is. Takes linear time.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.patterns import pattern
from verl_tui.rendering.samples.template import (
    ASSISTANT,
    CALL,
    CLOSE,
    CODE,
    END,
    FENCE,
    OPEN,
    PART,
    RESULT,
    TEXT,
    THOUGHT,
    TOOL,
    TURN,
    USER,
    signs,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.rendering.samples.template import Sign

_DEEPEST = 16
"""Blocks within one another that are followed."""
_JSON_CALL = pattern(
    r'^\{[^\S\n]*"(?:name|function|tool|tool_name|action)"[^\S\n]*:[^\n]{1,4000}\}$'
    r"|^\{\n(?:[^\S\n][^\n]{0,440}\n){1,40}\}$",
    re.MULTILINE,
)
_ARGUMENTS = pattern(r'"(?:arguments|parameters|args|action_input|input)"\s*:')


class Stretch(NamedTuple):
    """A part of a text said by one speaker in one way."""

    start: int
    end: int
    kind: str
    """`text`, `thought`, `call`, `result`, `code` or `answer`."""
    speaker: str
    """`system`, `user`, `assistant` or `tool`."""
    turn: int
    """Number of the turn in the text, from 0."""
    token: bool = False
    """True for a template's token, a tag or a fence."""


class Conversation(NamedTuple):
    """A text in stretches."""

    stretches: list[Stretch]
    open: tuple[tuple[str, str], ...] = ()
    """Blocks left open by the model at the end, name and kind, the innermost last."""


def parse_stretches(
    text: str, speaker: str = ASSISTANT, inside: Sequence[tuple[str, str]] = ()
) -> Conversation:
    """Cut a text into stretches.

    Args:
        text: Any text.
        speaker: Who speaks at its beginning: `user` for a prompt, `assistant` for a response.
        inside: Blocks open at its beginning, such as the `<think>` at the end of a prompt.
    """
    reading = _Reading(text, speaker, inside)
    for sign in signs(text, speaker):
        reading.take(sign)
    reading.say(len(text))
    left_open = tuple(reading.blocks) if reading.speaker == ASSISTANT else ()
    return Conversation(_with_json_calls(text, reading.stretches), left_open)


@lru_cache(maxsize=8)  # the same sample is laid out anew for another size or fold
def parse_both(prompt: str, response: str) -> tuple[Conversation, Conversation]:
    """Cut a prompt and its response into stretches; the response goes on in the prompt's blocks."""
    asked = parse_stretches(prompt, USER)
    return asked, parse_stretches(response, ASSISTANT, asked.open)


class _Reading:
    """The state of a parse."""

    def __init__(
        self, text: str, speaker: str, inside: Sequence[tuple[str, str]]
    ) -> None:
        self.stretches: list[Stretch] = []
        self.speaker = speaker
        self.blocks = list(inside)
        """Open blocks, name and kind, the innermost last."""
        self._text = text
        self._at = 0
        self._turn = 0
        self._base = TEXT
        """Kind of what stands in no block."""
        self._turn_start = 0
        """Index of the stretch that the turn begins with."""
        self._thought = bool(inside)
        """True once a thought was opened in this turn."""
        self._observes = False
        """True in a turn of a tool that the model wrote down."""

    def say(self, end: int, *, token: bool = False) -> None:
        """Add the text up to `end` as a stretch."""
        if end > self._at:
            kind = self.blocks[-1][1] if self.blocks else self._base
            self.stretches.append(
                Stretch(self._at, end, kind, self.speaker, self._turn, token=token)
            )
            self._at = end

    def take(self, sign: Sign) -> None:
        """Add the text before a sign, and the sign."""
        if sign.does == PART and not self._begins_part():
            return
        self.say(sign.start)
        closes = sign.does == CLOSE or (sign.does == FENCE and self._in_fence())
        if not closes:
            self._begin(sign)
        self.say(sign.end, token=True)
        if closes:
            self._close(sign)
        elif sign.does == END:
            self.blocks.clear()

    def _begin(self, sign: Sign) -> None:
        """Begin what a sign stands before, if it does."""
        if sign.does == TURN:
            self._begin_turn(sign)
        elif sign.does == PART:
            self._begin_part(sign)
        elif sign.does == OPEN:
            self._open(sign)
        elif sign.does == FENCE and len(self.blocks) < _DEEPEST:
            self.blocks.append((sign.name, sign.kind))

    def _in_fence(self) -> bool:
        return bool(self.blocks) and self.blocks[-1][1] == CODE

    def _begin_turn(self, sign: Sign) -> None:
        self._turn += any(
            not stretch.token for stretch in self.stretches[self._turn_start :]
        )
        self._turn_start = len(self.stretches)
        self._thought = False
        self.speaker = sign.name
        self.blocks = []
        self._observes = False
        self._base = RESULT if sign.name == TOOL else sign.kind

    def _begins_part(self) -> bool:
        """Return whether a label counts: users and systems only speak of them."""
        return (self.speaker == ASSISTANT or self._observes) and not self._in_fence()

    def _begin_part(self, sign: Sign) -> None:
        """Go on with another kind of text; a tool's is a turn of its own."""
        if sign.name != self.speaker:
            self._begin_turn(sign)
            self._observes = sign.name == TOOL
        self._base = sign.kind
        self.blocks = []
        self._thought |= sign.kind == THOUGHT

    def _open(self, sign: Sign) -> None:
        """Open a block; users and systems only speak of thoughts, calls and answers."""
        wanted = self.speaker in (ASSISTANT, TOOL) or sign.kind == RESULT
        if wanted and not self._in_fence() and len(self.blocks) < _DEEPEST:
            self.blocks.append((sign.name, sign.kind))
            self._thought |= sign.kind == THOUGHT

    def _close(self, sign: Sign) -> None:
        """Close the innermost block of the name, and those left open within it."""
        names = [name for name, _ in self.blocks]
        if sign.name in names:
            del self.blocks[len(names) - 1 - names[::-1].index(sign.name) :]
        elif sign.kind == THOUGHT and self.speaker == ASSISTANT and not self._thought:
            self._think_from_start()

    def _think_from_start(self) -> None:
        """Make a thought of the turn so far: its opening tag stood in the prompt."""
        self._thought = True
        for at in range(self._turn_start, len(self.stretches)):
            if self.stretches[at].kind == TEXT:
                self.stretches[at] = self.stretches[at]._replace(kind=THOUGHT)


def _with_json_calls(text: str, stretches: list[Stretch]) -> list[Stretch]:
    """Make calls of JSON objects that the model wrote without tags."""
    calls = [
        found.span()
        for found in _JSON_CALL.finditer(text)
        if _ARGUMENTS.search(text, *found.span())
    ]
    if not calls:
        return stretches
    result: list[Stretch] = []
    at = 0
    for stretch in stretches:
        while at < len(calls) and calls[at][1] <= stretch.start:
            at += 1
        inside: list[tuple[int, int]] = []
        if stretch.speaker == ASSISTANT and stretch.kind == TEXT and not stretch.token:
            inside = _starting_before(stretch.end, calls, at)
        result.extend(_split(stretch, inside))
    return result


def _starting_before(
    end: int, spans: list[tuple[int, int]], at: int
) -> list[tuple[int, int]]:
    """Return the spans from `at` on that start before `end`."""
    last = at
    while last < len(spans) and spans[last][0] < end:
        last += 1
    return spans[at:last]


def _split(stretch: Stretch, calls: list[tuple[int, int]]) -> Iterator[Stretch]:
    """Yield a stretch with the calls in it as stretches of their own."""
    at = stretch.start
    for start, end in calls:
        first = max(at, start)
        last = min(stretch.end, end)
        if first > at:
            yield stretch._replace(start=at, end=first)
        yield stretch._replace(start=first, end=last, kind=CALL)
        at = last
    if at < stretch.end:
        yield stretch._replace(start=at)

"""A prompt or response cut into chunks by speaker and kind: thoughts, tool calls, results, code.

The chunks joined are the text, whatever it is. Takes linear time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from verl_tui.rendering.samples.signs import signs
from verl_tui.rendering.text.numbers import compact

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from verl_tui.rendering.samples.signs import Sign

_DEEPEST = 16
"""Blocks within one another that are followed."""
_SCORES = (
    "turn_scores",
    "turn_rewards",
    "step_rewards",
    "step_scores",
    "process_rewards",
    "tool_rewards",
)
"""Fields with a number a turn; verl's agent loop has `turn_scores` and `tool_rewards`."""


class TextChunk(NamedTuple):
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

    @property
    def role(self) -> str:
        """How it is drawn: by its kind, plain text by who says it."""
        return self.speaker if self.kind == "text" else self.kind


def parse_both(prompt: str, response: str) -> tuple[list[TextChunk], list[TextChunk]]:
    """Cut a prompt and its response into chunks; the response goes on in the blocks that the prompt
    leaves open, such as a `<think>` at its end.
    """
    asked = _Parser(prompt, "user")
    inside = asked.blocks if asked.speaker == "assistant" else []
    return asked.chunks, _Parser(response, "assistant", inside).chunks


def parse(text: str, speaker: str = "assistant") -> list[TextChunk]:
    """Cut a text into chunks, given who speaks at its beginning."""
    return _Parser(text, speaker).chunks


class _Parser:
    """A text and its chunks."""

    def __init__(
        self, text: str, speaker: str, inside: Sequence[tuple[str, str]] = ()
    ) -> None:
        self.chunks: list[TextChunk] = []
        self.speaker = speaker
        self.blocks = list(inside)
        """Open blocks, name and kind, the innermost last."""
        self._at = 0
        self._turn = 0
        self._base = "text"
        """Kind of what stands in no block."""
        self._turn_start = 0
        """Index of the chunk that the turn begins with."""
        self._thought = bool(inside)
        """True once a thought was opened in this turn."""
        for sign in signs(text, speaker):
            self._take(sign)
        self._say(len(text))

    def _say(self, end: int, *, token: bool = False) -> None:
        """Add the text up to `end` as a chunk."""
        if end > self._at:
            kind = self.blocks[-1][1] if self.blocks else self._base
            self.chunks.append(
                TextChunk(self._at, end, kind, self.speaker, self._turn, token=token)
            )
            self._at = end

    def _take(self, sign: Sign) -> None:
        """Add the text before a sign, and the sign."""
        self._say(sign.start)
        in_fence = bool(self.blocks) and self.blocks[-1][1] == "code"
        closes = sign.does == "close" or (sign.does == "fence" and in_fence)
        if sign.does == "turn":
            self._begin_turn(sign)
        elif sign.does == "fence" or (sign.does == "open" and not in_fence):
            self._open(sign, follows=not closes)
        self._say(sign.end, token=True)
        if closes:
            self._close(sign)
        elif sign.does == "end":
            self.blocks.clear()

    def _begin_turn(self, sign: Sign) -> None:
        self._turn += any(not chunk.token for chunk in self.chunks[self._turn_start :])
        self._turn_start = len(self.chunks)
        self._thought = False
        self.speaker = sign.name
        self.blocks = []
        self._base = "result" if sign.name == "tool" else sign.kind

    def _open(self, sign: Sign, *, follows: bool) -> None:
        """Open a block; users and systems only speak of thoughts, calls and answers."""
        said = self.speaker in ("assistant", "tool") or sign.kind in ("result", "code")
        if follows and said and len(self.blocks) < _DEEPEST:
            self.blocks.append((sign.name, sign.kind))
            self._thought |= sign.kind == "thought"

    def _close(self, sign: Sign) -> None:
        """Close the innermost block of the name, and those left open within it."""
        names = [name for name, _ in self.blocks]
        if sign.name in names:
            del self.blocks[len(names) - 1 - names[::-1].index(sign.name) :]
        elif (
            sign.kind == "thought" and self.speaker == "assistant" and not self._thought
        ):
            # the opening tag of the turn's thought stood in the prompt
            self._thought = True
            for at in range(self._turn_start, len(self.chunks)):
                if self.chunks[at].kind == "text":
                    self.chunks[at] = self.chunks[at]._replace(kind="thought")


def turn_words(
    chunks: Sequence[TextChunk], extras: Mapping[str, Any]
) -> dict[int, str]:
    """Return a line above each of the model's turns; none of a single turn.

    Scores are named only if there are as many as turns: otherwise it is unknown which belongs to
    which.
    """
    turns = _turns(chunks)
    if len(turns) < 2:
        return {}
    words = {turn: f"turn {at} of {len(turns)}" for at, turn in enumerate(turns, 1)}
    for name in _SCORES:
        scores = _numbers(extras.get(name))
        if len(scores) == len(turns):
            kind = "reward" if name.endswith("rewards") else "score"
            named = zip(words, scores, strict=True)
            return {
                turn: f"{words[turn]}, {kind} {compact(one)}" for turn, one in named
            }
    return words


def _turns(chunks: Iterable[TextChunk]) -> list[int]:
    """Return the numbers of the turns in which the model says something, in order."""
    spoken = (one for one in chunks if one.speaker == "assistant")
    return list(dict.fromkeys(one.turn for one in spoken if not one.token))


def _numbers(value: object) -> Sequence[float]:
    """Return the numbers of a list, which extras hold as JSON text."""
    try:
        found = orjson.loads(value) if isinstance(value, str) else None
    except ValueError:
        return ()
    if not isinstance(found, list):
        return ()
    fits = all(isinstance(one, int | float) for one in found)
    return found if fits else ()

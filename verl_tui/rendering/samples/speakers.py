"""A prompt or response cut into chunks by speaker and kind: thoughts, tool calls, results, code.

The chunks joined are the text, whatever it is. Takes linear time. They are told by tokens of chat
templates, tags of thinking, tools and answers, and code fences: ChatML (Qwen, Phi-4), Llama 2 to 4,
Mistral, Gemma, DeepSeek, GLM, Phi-3, gpt-oss, and the plain forms that remain after a tokenizer has
skipped special tokens: `user` on a line of its own (Qwen), `…assistant` before an empty line
(Llama 3), `user:` at the beginning of a line.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from verl_tui.patterns import pattern
from verl_tui.rendering.text.numbers import compact
from verl_tui.repetition import TOKEN, disjoint, runs
from verl_tui.toml_tables import toml_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from verl_tui.rendering.text.piece import MarkedSpan


_TABLE = toml_table(__file__, "signs.toml")
_BY_NAME: dict[str, str] = {
    name: one for one, said in _TABLE["speakers"].items() for name in said.split()
}
_KINDS = {
    name: kind for kind, said in _TABLE["blocks"].items() for name in said.split()
}
_TAGS = "|".join(sorted((*_KINDS, *_TABLE["markers"].split()), key=len, reverse=True))
_DOES = [row["does"] for row in _TABLE["forms"]]


def _form(at: int, form: str) -> str:
    """Return a form of the table with its number in the names of all groups."""
    form = form.replace("CHANNEL", _TABLE["channel"]).replace("TAGS", _TAGS)
    numbered = re.sub(r"\?P<(\w+)>", rf"?P<\g<1>{at}>", form)
    return f"(?P<form{at}>{numbered})"


_FORMS = (_form(at, row["form"]) for at, row in enumerate(_TABLE["forms"]))
_SIGNS = pattern("|".join(_FORMS), re.MULTILINE)
_ROLE = (
    "system|developer|user|human|assistant|model|gpt|tool|ipython|observation|function"
)
_OWN_LINE = pattern(rf"^(?P<role>{_ROLE})$", re.MULTILINE)
_GLUED = pattern(
    r"(?:^|(?<=[^\s\w]))(?P<role>user)(?=\n\n)|(?<=\S)(?P<model>assistant)(?=\n\n)"
)
_BEFORE_COLON = pattern(
    rf"^(?P<role>{_ROLE}|environment)(?: [\w.-]{{1,60}})?:(?!/)",
    re.MULTILINE | re.IGNORECASE,
)


class Sign(NamedTuple):
    """A token, tag or fence."""

    start: int
    end: int
    does: str
    """`turn`, `open`, `close`, `end` (of a turn), `fence` or `other`."""
    name: str = ""
    """The speaker of a turn; the name of a block, by which it is closed."""
    kind: str = "text"
    """Kind of the block that it opens or closes, or that the turn begins with."""


def signs(text: str, speaker: str) -> Iterator[Sign]:
    """Yield the signs of a text, ascending and disjoint, in linear time.

    Args:
        text: A prompt or a response.
        speaker: Who speaks at its beginning.
    """
    found = template_signs(text)
    if not any(sign.does == "turn" for sign in found):
        found += _plain_turns(text, speaker)
    end = 0
    for sign in sorted(found):
        if sign.start >= end:
            yield sign
            end = sign.end


def template_signs(text: str) -> list[Sign]:
    """Return the tokens, tags and fences of a text, without turns that only words mark."""
    return [_sign(found) for found in _SIGNS.finditer(text)]


def _sign(found: re.Match[str]) -> Sign:
    at = (found.lastgroup or "").removeprefix("form")
    does = _DOES[int(at)]
    groups = found.groupdict()
    name = groups.get(f"name{at}") or ""
    if does in ("user", "assistant", "system"):
        return Sign(*found.span(), "turn", does)
    if does == "turn":
        kind = _TABLE["channels"].get(groups.get(f"kind{at}", ""), "text")
        return Sign(*found.span(), "turn", _speaker(name), kind)
    name = name.lower().replace("▁", "_")
    if does == "block":
        does = "close" if groups.get(f"close{at}") else "open"
    if does != "end" and name not in _KINDS:
        does, name = "other", ""
    return Sign(*found.span(), does, name, _KINDS.get(name, "text"))


def _speaker(name: str) -> str:
    return _BY_NAME.get(name.strip().lower(), "assistant")


def _plain_turns(text: str, speaker: str) -> list[Sign]:
    """Return turns that only words mark; as that is a heuristic, a single word does not count."""
    turns = list(_OWN_LINE.finditer(text))
    if not _converse(text, turns, speaker):
        turns = list(_BEFORE_COLON.finditer(text))
        if not _converse(text, turns, speaker):
            return []
    elif text.startswith(f"{turns[0]['role']}\n\n"):  # Llama 3's form
        turns += (found for found in _GLUED.finditer(text) if found.start())
    return [
        Sign(*one.span(), "turn", _speaker(one.groupdict().get("model") or one["role"]))
        for one in turns
    ]


def _converse(text: str, turns: list[re.Match[str]], speaker: str) -> bool:
    """Return whether words that name speakers are the turns of a conversation."""
    if not turns:
        return False
    speakers = {_speaker(found["role"]) for found in turns}
    begins = not text[: turns[0].start()].strip()
    return begins or (
        "assistant" in speakers and (len(speakers) > 1 or speaker != "assistant")
    )


TAG = "tag"
TOKEN_ROLE = "token"  # noqa: S105 - a role, no password
REPEATED = "repeated"

_N = 12
"""Words in a row that came before: of fewer much that is no loop comes again (heuristic)."""


def special(text: str) -> list[MarkedSpan]:
    """Return the tokens of chat templates, and the tags of thinking, answers and tools."""
    return [
        (sign.start, sign.end, TAG if sign.does in ("open", "close") else TOKEN_ROLE)
        for sign in template_signs(text)
        if sign.does != "fence"
    ]


def repeated(text: str) -> list[MarkedSpan]:
    """Return repetitions: words that came before in the same order, many in a row, and runs of one
    character. Signs between the words may differ.
    """
    words = list(TOKEN.finditer(text))
    texts = [word[0].lower() for word in words]
    found, seen = runs(text), set[tuple[str, ...]]()
    for at, gram in enumerate(zip(*(texts[i:] for i in range(_N)), strict=False)):
        if gram in seen:
            found.append((words[at].start(), words[at + _N - 1].end()))
        seen.add(gram)
    return [(start, end, REPEATED) for start, end in disjoint(found)]


def over(lower: Sequence[MarkedSpan], upper: Sequence[MarkedSpan]) -> list[MarkedSpan]:
    """Merge marks; where they overlap the upper ones win."""
    result: list[MarkedSpan] = []
    at = 0
    taken = 0
    for start, end, role in lower:
        begin = max(start, taken)
        while at < len(upper) and upper[at][0] < end:
            first, taken, _ = upper[at]
            if begin < first:
                result.append((begin, first, role))
            result.append(upper[at])
            begin = max(start, taken)
            at += 1
        if begin < end:
            result.append((begin, end, role))
    return result + list(upper[at:])


_DEEPEST = 16
"""Blocks within one another that are followed."""


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
    token: bool
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
    # those in which the model says something
    turns = dict.fromkeys(
        one.turn for one in chunks if one.speaker == "assistant" and not one.token
    )
    if len(turns) < 2:
        return {}
    words = {turn: f"turn {at} of {len(turns)}" for at, turn in enumerate(turns, 1)}
    for name in _TABLE["scores"].split():
        scores = _numbers(extras.get(name))
        if len(scores) == len(turns):
            kind = "reward" if name.endswith("rewards") else "score"
            named = zip(words, scores, strict=True)
            return {
                turn: f"{words[turn]}, {kind} {compact(one)}" for turn, one in named
            }
    return words


def _numbers(value: object) -> Sequence[float]:
    """Return the numbers of a list, which extras hold as JSON text."""
    found: Any = None
    with suppress(ValueError):
        found = orjson.loads(str(value))
    fits = isinstance(found, list) and all(
        isinstance(one, int | float) for one in found
    )
    return found if fits else ()

"""Tokens of chat templates, tags of thinking, tools and answers, code fences and labels of ReAct in
a text.

Covers ChatML (Qwen, Phi-4), Llama 2 to 4, Mistral, Gemma, DeepSeek, GLM, Phi-3, gpt-oss, and the
plain forms that remain after a tokenizer has skipped special tokens: `user` on a line of its own
(Qwen), `…assistant` before an empty line (Llama 3), `user:` at the beginning of a line.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.patterns import pattern

if TYPE_CHECKING:
    from collections.abc import Iterator

SYSTEM = "system"
USER = "user"
ASSISTANT = "assistant"
TOOL = "tool"
TEXT = "text"
THOUGHT = "thought"
CALL = "call"
RESULT = "result"
CODE = "code"
ANSWER = "answer"

TURN = "turn"
OPEN = "open"
CLOSE = "close"
END = "end"
FENCE = "fence"
OTHER = "other"
PART = "part"

_SPEAKERS = {
    "developer": SYSTEM,
    "human": USER,
    "model": ASSISTANT,
    "gpt": ASSISTANT,
    "bot": ASSISTANT,
    "ai": ASSISTANT,
    "ipython": TOOL,
    "observation": TOOL,
    "function": TOOL,
    "environment": TOOL,
}
"""Names of speakers other than the four."""
_CHANNELS = {"analysis": THOUGHT, "commentary": CALL}
"""Channels of gpt-oss; the third, `final`, is text."""
_NAMES = {
    THOUGHT: "think thinking thought thoughts reason reasoning scratchpad seed:think",
    CALL: "tool tool_call tool_calls function_call function_calls search query code python action "
    "search_query tool_calls_section invoke",
    RESULT: "tool_response tool_responses tool_result tool_results tool_outputs information result "
    "results search_result interpreter observation documents document output execution_results",
    ANSWER: "answer solution final_answer",
}
_KINDS = {name: kind for kind, names in _NAMES.items() for name in names.split()}
_MARKERS = (
    "function",
    "tools",
    "s",
    "pad",
    "unk",
    "bos",
    "eos",
    "mask",
    "image",
    "img",
    "video",
)
"""Tags that open no block."""
_BY_LENGTH = "|".join(sorted((*_KINDS, *_MARKERS), key=len, reverse=True))

_SIGNS = pattern(
    r"<\|im_start\|>(?P<chatml>\w{1,20})?(?:<\|im_sep\|>)?"
    r"|<\|(?:start_header_id|header_start)\|>"
    r"(?P<header>[^<>|\n]{0,40})<\|(?:end_header_id|header_end)\|>"
    r"|<start_of_turn>(?P<gemma>\w{1,20})?"
    r"|<[|｜](?P<bar>system|user|assistant|observation|tool|User|Assistant)[|｜]>"
    r"|<\|start\|>(?P<harmony>\w{1,20})[^<>|\n]{0,80}"
    r"(?:<\|channel\|>(?P<named>\w{1,20})[^<>|\n]{0,80})?"
    r"(?:<\|constrain\|>\w{0,20})?(?:<\|message\|>)?"
    r"|<\|channel\|>(?P<channel>\w{1,20})[^<>|\n]{0,80}(?:<\|constrain\|>\w{0,20})?<\|message\|>"
    r"|(?P<user>\[INST\]|<</SYS>>|\[/SYSTEM_PROMPT\])|(?P<assistant>\[/INST\])"
    r"|(?P<system><<SYS>>|\[SYSTEM_PROMPT\])"
    r"|\[(?P<bracket>/?(?:THINK|TOOL_CALLS|TOOL_RESULTS|AVAILABLE_TOOLS))\]"
    r"|(?P<end><\|(?:im_end|eot_id|eot|end|endoftext|end_of_text|return|call)\|>|</s>|<end_of_turn>"
    r"|<[|｜]end▁of▁sentence[|｜]>)"
    r"|<[|｜](?P<edge>begin|end)_(?:of_)?(?P<span>\w{1,40})[|｜]>"
    r"|<[|｜](?P<calls>\w{1,40}?)[▁_](?P<bound>begin|end)[|｜]>"
    rf"|<(?P<slash>/?)(?P<tag>{_BY_LENGTH})(?P<more>\s[^<>\n]{{0,100}})?>"
    r"|(?P<kimi>◁/?think▷)"
    r"|^[^\S\n]{0,3}(?P<fence>```|~~~)[^\n`]{0,80}$"
    r"|<[|｜][^<>|｜\s]{1,48}[|｜]>|\[/?(?:PAD|CLS|SEP|MASK)\]",
    re.MULTILINE,
)
_TURNS = ("chatml", "header", "gemma", "bar", "harmony")
"""Groups that hold the name of the speaker."""
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
_REACT = pattern(
    r"^[*_# ]{0,4}(?P<label>Thought|Action [Ii]nput|Action|Observation|Final [Aa]nswer)"
    r"(?: \d{1,3})?[*_]{0,2}:[*_]{0,2}",
    re.MULTILINE,
)
"""Labels of ReAct (Yao et al. 2022, numbered there) and of LangChain's agents."""
_PARTS = {
    "thought": (ASSISTANT, THOUGHT),
    "action": (ASSISTANT, CALL),
    "action input": (ASSISTANT, CALL),
    "observation": (TOOL, RESULT),
    "final answer": (ASSISTANT, ANSWER),
}
"""Label -> speaker and kind of what follows."""


class Sign(NamedTuple):
    """A token, tag or fence."""

    start: int
    end: int
    does: str
    """`turn`, `part` (of a turn), `open`, `close`, `end` (of a turn), `fence` or `other`."""
    name: str = ""
    """The speaker of a turn or a part; the name of a block, by which it is closed."""
    kind: str = TEXT
    """Kind of the block that it opens or closes, of the part, or that the turn begins with."""


def signs(text: str, speaker: str) -> Iterator[Sign]:
    """Yield the signs of a text, ascending and disjoint, in linear time.

    Args:
        text: A prompt or a response.
        speaker: Who speaks at its beginning.
    """
    found = template_signs(text)
    speakers = {sign.name for sign in found if sign.does == TURN}
    words: list[Sign] = []
    if ASSISTANT in (speakers | {speaker}):
        words += _react_parts(text)
    if not speakers:
        words += _plain_turns(text, speaker)
    end = 0
    for sign in sorted((*found, *words)):
        if sign.start >= end:  # two kinds of words may name the same turn
            yield sign
            end = sign.end


def template_signs(text: str) -> list[Sign]:
    """Return the tokens, tags and fences of a text, without turns that only words mark."""
    return [_sign(match) for match in _SIGNS.finditer(text)]


def _sign(match: re.Match[str]) -> Sign:
    start, end = match.span()
    for group in _TURNS:
        name = match[group]
        if name is not None:
            kind = _CHANNELS.get(match["named"] or "", TEXT)
            return Sign(start, end, TURN, _speaker(name), kind)
    for name in (USER, ASSISTANT, SYSTEM):
        if match[name] is not None:
            return Sign(start, end, TURN, name)
    channel = match["channel"]
    if channel is not None:
        return Sign(start, end, TURN, ASSISTANT, _CHANNELS.get(channel, TEXT))
    if match["end"] is not None:
        return Sign(start, end, END)
    return Sign(start, end, *_block(match))


def _block(match: re.Match[str]) -> tuple[str, str, str]:
    """Return whether a sign opens or closes a block, the block's name and its kind."""
    if match["fence"] is not None:
        return FENCE, match["fence"], CODE
    opens, name = _edge(match)
    kind = _KINDS.get(name)
    if kind is None:
        return OTHER, "", TEXT
    return OPEN if opens else CLOSE, name, kind


def _edge(match: re.Match[str]) -> tuple[bool, str]:
    """Return whether a sign opens a block, and the block's name."""
    name = match["tag"]
    if name is not None:
        return not match["slash"], name
    name = match["bracket"] or match["kimi"]
    if name is not None:
        return "/" not in name, name.strip("◁▷/").lower()
    name = match["span"]
    if name is not None:
        return match["edge"] == "begin", name
    name = match["calls"]
    if name is not None:
        return match["bound"] == "begin", name.replace("▁", "_")
    return True, ""


def _speaker(name: str) -> str:
    name = name.strip().lower()
    return _SPEAKERS.get(name, name if name in (SYSTEM, USER, TOOL) else ASSISTANT)


def _react_parts(text: str) -> list[Sign]:
    """Return the labels of a text that calls tools by them, or thinks and answers by them.

    Heuristic: a text without actions is taken for one only if it begins with a thought and has a
    final answer, since "Observation:" alone also stands in proofs.
    """
    found = [(match, match["label"].lower()) for match in _REACT.finditer(text)]
    labels = {label for _, label in found}
    if "action" in labels and len(labels) > 1:
        wanted = labels
    elif "final answer" in labels and not text[: found[0][0].start()].strip():
        wanted = (
            labels & {"thought", "final answer"} if found[0][1] == "thought" else set()
        )
    else:
        return []
    return [
        Sign(*match.span(), PART, *_PARTS[label])
        for match, label in found
        if label in wanted
    ]


def _plain_turns(text: str, speaker: str) -> Iterator[Sign]:
    """Yield turns that only words mark; since that is a heuristic, a single word does not count."""
    turns = _on_own_lines(text, speaker) or _before_colons(text, speaker)
    for start, found in {found.start(): found for found in turns}.items():
        name = found.groupdict().get("model") or found["role"]
        yield Sign(start, found.end(), TURN, _speaker(name))


def _on_own_lines(text: str, speaker: str) -> list[re.Match[str]]:
    """Return speakers on lines of their own, in Llama 3's form also those glued to a text."""
    own = list(_OWN_LINE.finditer(text))
    if not _converse(text, own, speaker):
        return []
    if own[0].start() == 0 and text.startswith(f"{own[0]['role']}\n\n"):
        own += (found for found in _GLUED.finditer(text) if found.start())
    return own


def _before_colons(text: str, speaker: str) -> list[re.Match[str]]:
    turns = list(_BEFORE_COLON.finditer(text))
    if not _converse(text, turns, speaker):
        return []
    return turns


def _converse(text: str, turns: list[re.Match[str]], speaker: str) -> bool:
    """Return whether words that name speakers are the turns of a conversation."""
    if not turns:
        return False
    speakers = {_speaker(found["role"]) for found in turns}
    begins = not text[: turns[0].start()].strip()
    if begins:
        return True
    return ASSISTANT in speakers and (len(speakers) > 1 or speaker != ASSISTANT)

"""Recognises a sample in a JSON record, whoever wrote it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import orjson

from verl_tui.records import Sample
from verl_tui.sources.jsonl import number
from verl_tui.text import safe

LONGEST_TEXT = 40_000
"""Characters kept of one text: more than any response limit in use, less than what makes a terminal stutter."""
_LONGEST_EXTRA = 2_000

_PROMPT = ("input", "prompt", "question", "query", "instruction")
_RESPONSE = ("output", "response", "completion", "generation", "prediction", "answer")
_TRUTH = ("gts", "ground_truth", "gt", "reference", "label", "target", "solution", "answer")
_SCORE = ("score", "reward", "acc", "accuracy")
_STEP = ("global_step", "step", "global_steps")
_KNOWN = frozenset({"timestamp", "level", "scope", "uid", "request_id", "conversations", "messages", *_STEP})
_UID = re.compile(r"^(.+)_\d+_\d+$")


def read_sample(record: Mapping[str, Any], step: int | None = None, *, validation: bool = False) -> Sample | None:
    """Return the sample a record holds, None where it holds none.

    Args:
        record: A JSON object: verl's dumps (`input, output, gts, score, step`), the tutorials' `sample` scope,
            conversations as evaluations write them.
        step: The step to use where the record states none.
        validation: Whether it comes from a validation.
    """
    response_key = _first(record, _RESPONSE, str)
    conversation = record.get("conversations", record.get("messages"))
    if response_key is None and not _is_conversation(conversation):
        return None
    if response_key is not None:
        prompt_key = _first(record, _PROMPT, (str, list))
        prompt, response = record.get(prompt_key or "", ""), record[response_key]
        prompt = _conversation(prompt) if _is_conversation(prompt) else prompt
    else:
        prompt_key = None
        prompt, response = _split_conversation(conversation)
    score_key = _first(record, _SCORE, (int, float))
    truth_key = _first(record, _TRUTH, object, but=response_key)
    used = (prompt_key, response_key, score_key, truth_key)
    stated = _step_of(record)
    return Sample(
        step=stated if stated is not None else step,
        prompt=safe(_text(prompt), LONGEST_TEXT),
        response=safe(response, LONGEST_TEXT),
        score=number(record[score_key]) if score_key is not None else None,
        ground_truth=safe(_text(record[truth_key]), _LONGEST_EXTRA) if truth_key is not None else None,
        group=_group(record.get("uid")),
        extras={
            _safe_name(key): _extra(value)
            for key, value in record.items()
            if value is not None and key not in used and key not in _KNOWN
        },
        validation=validation,
    )


def is_padding(record: Mapping[str, Any]) -> bool:
    """Tell whether a dump's row only pads the batch (verl v0.9: its uid starts with `pad`)."""
    uid = record.get("uid")
    return isinstance(uid, str) and uid.startswith("pad")


@lru_cache(maxsize=4096)
def _safe_name(name: str) -> str:
    """Make a field's name, or that of a group, safe: the same ones come again and again."""
    return safe(str(name), 100)


def _first(
    record: Mapping[str, Any], names: Sequence[str], kind: type | tuple[type, ...], but: str | None = None
) -> str | None:
    for name in names:
        value = record.get(name)
        if value is not None and isinstance(value, kind) and name != but:
            return name
    return None


def _step_of(record: Mapping[str, Any]) -> int | None:
    name = _first(record, _STEP, int)
    return int(record[name]) if name is not None else None


def _group(uid: object) -> str | None:
    """Return the prompt a sample belongs to: verl v0.9 writes `{prompt}_{session}_{index}`."""
    if not isinstance(uid, str):
        return None
    found = _UID.match(uid)
    return _safe_name(found.group(1) if found else uid)


def _is_conversation(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(turn, Mapping) for turn in value)


def _conversation(turns: Sequence[Mapping[str, Any]]) -> str:
    return "\n\n".join(f"{turn.get('role', turn.get('from', '?'))}: {_text(_content(turn))}" for turn in turns)


def _content(turn: Mapping[str, Any]) -> object:
    return turn.get("content", turn.get("value", ""))


def _split_conversation(turns: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    """Return what came before the model's first turn, and everything from there on."""
    answers = [i for i, turn in enumerate(turns) if turn.get("role", turn.get("from")) in ("assistant", "gpt")]
    start = answers[0] if answers else len(turns)
    if len(turns) == start + 1:
        return _conversation(turns[:start]), _text(_content(turns[start]))
    return _conversation(turns[:start]), _conversation(turns[start:])


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    try:
        return orjson.dumps(value).decode()
    except (TypeError, orjson.JSONEncodeError):
        return str(value)


def _extra(value: object) -> Any:
    return value if isinstance(value, int | float | None) else safe(_text(value), _LONGEST_EXTRA)

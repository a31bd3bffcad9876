"""Files of JSON that are no training's log, and what they are: chats, data sets, results of
evaluations, settings, and what verl-tui itself wrote.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from verl_tui.patterns import pattern
from verl_tui.sources.fields.device_fields import unquoted
from verl_tui.sources.fields.jsonl import first_value, flatten
from verl_tui.sources.fields.listed_things import listed_thing
from verl_tui.sources.fields.lists import split
from verl_tui.sources.fields.sample import read_sample
from verl_tui.sources.fields.spellings import names
from verl_tui.sources.fields.steps import is_sure_name
from verl_tui.sources.formats import metrics_json, tutorial
from verl_tui.sources.formats.console.kept import as_printed
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

BEGIN = "no log: "
"""Begins every reason."""
OWN = f"{BEGIN}written by verl-tui itself"
_OWN = pattern(
    rb'\s*\{\s*"(?:version":\s*\d{1,3},\s*"(?:runs":\s*\[|baseline":|program":\s*"verl-tui'
    rb'|versions":\s*\{\s*"verl-tui|run":[^\n]{0,2000}"(?:read|path)":'
    rb'|title":[^\n]{0,400}\s+"made":\s*\{\s*"verl_tui")|kind":\s*"verl-tui)'
)
"""How all answers in JSON, reports, messages and states begin."""
_CHAT = f"{BEGIN}a chat: messages, and no record of a step"
_SAMPLES = f"{BEGIN}a data set or a chat: texts without a step and without a score"
_TOKENS = f"{BEGIN}samples as ids of tokens, without their texts"
_THINGS = f'{BEGIN}results or data: one record for each "{{}}", and none of a step'
_TEXTS = f"{BEGIN}a list of texts: no record has a number"
_DOCUMENT = f"{BEGIN}a JSON document without a list of step records"
SINGLE = "a single record without a step so far"
_ROLES = frozenset(names("chat_role"))
_SAID = frozenset(names("chat_content"))
_MOST = 200
"""Records that are looked at."""
_FIRST = 8


def is_one(head: bytes) -> bool:
    """Return whether a file is certainly none, whatever it looks like besides."""
    return _certainly(head, metrics_json.first_records(head, _FIRST)) is not None


def reason(head: bytes) -> str | None:
    """Return what a file of JSON is that no format recognises, None where it may become a log."""
    records = metrics_json.first_records(head, _MOST)
    certain = _certainly(head, records)
    if certain == OWN or as_printed(head):
        return OWN if certain == OWN else None
    if certain is None and _is_document(head):
        return _DOCUMENT
    thing = listed_thing(records[:_FIRST])
    trained = thing is None and any(map(tutorial.measures, records))
    if certain or trained or not records:
        return certain
    sample = read_sample(records[0])
    if sample is not None and sample.step is None and sample.score is None:
        return _SAMPLES
    if thing is not None:
        return _THINGS.format(one_line(thing, 60))
    numbers = any(split(unquoted(flatten(one))).numbers() for one in records)
    return None if numbers or len(records) == 1 else _TEXTS


def _certainly(head: bytes, records: Sequence[dict[str, Any]]) -> str | None:
    """Return what a file is whose first records are those of no training, whatever follows."""
    if _OWN.match(head):
        return OWN
    chat = all(
        str(record.get("role", record.get("from"))).lower() in _ROLES
        and not _SAID.isdisjoint(record)
        for record in records[:_FIRST]
    )
    if records and chat:
        return _CHAT
    # open-instruct's traces (open_instruct/rl_utils.py:31-128)
    tokens = records and {"prompt_tokens", "response_tokens"} <= records[0].keys()
    return _TOKENS if tokens else None


def is_single(head: bytes) -> bool:
    """Return whether a file holds a single record so far, and of no step."""
    records = metrics_json.first_records(head, 2)
    if len(records) != 1 or any(map(is_sure_name, records[0])) or as_printed(head):
        return False
    return not tutorial.measures(records[0])


def _is_document(head: bytes) -> bool:
    """Return whether a text is one JSON value over several lines, or a list."""
    try:
        value, rest = first_value(head)
    except ValueError:
        return False
    return not rest.strip() and (isinstance(value, list) or b"\n" in head.strip())

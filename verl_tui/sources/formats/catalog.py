"""All log formats, in the order of trying; and what files of JSON are that are no training's log:
chats, data sets, results of evaluations, settings, and what verl-tui itself wrote.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.patterns import pattern
from verl_tui.sources.fields.jsonl import (
    Fields,
    first_value,
    flatten,
    names,
    numbers_in,
    unquoted,
)
from verl_tui.sources.fields.sample import read_sample
from verl_tui.sources.fields.steps import is_sure_name, listed_thing
from verl_tui.sources.formats import (
    filelogger,
    metrics_csv,
    metrics_json,
    mlflow_files,
    rollouts,
    swanlab,
    tensorboard,
    trackio,
    tutorial,
    wandb,
)
from verl_tui.sources.formats.console import reader as console
from verl_tui.sources.formats.console.kept import as_printed
from verl_tui.sources.formats.metrics_json import trainer_state
from verl_tui.sources.formats.prometheus_text import reader as exposition
from verl_tui.sources.formats.tables import (
    completions,
    generations,
    parquet,
    sample_documents,
    sample_records,
    wandb_tables,
)
from verl_tui.sources.formats.tutorial import llama_factory, swift
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from verl_tui.sources.formats.format import Format


NO_LOG = "no log: "
"""Begins every reason."""
OWN = f"{NO_LOG}written by verl-tui itself"
_OWN = pattern(
    rb'\s*\{\s*"(?:version":\s*\d{1,3},\s*"(?:runs":\s*\[|baseline":|program":\s*"verl-tui'
    rb'|versions":\s*\{\s*"verl-tui|run":[^\n]{0,2000}"(?:read|path)":'
    rb'|title":[^\n]{0,400}\s+"made":\s*\{\s*"verl_tui")|kind":\s*"verl-tui)'
)
"""How all answers in JSON, reports, messages and states begin."""
_CHAT = f"{NO_LOG}a chat: messages, and no record of a step"
_SAMPLES = f"{NO_LOG}a data set or a chat: texts without a step and without a score"
_TOKENS = f"{NO_LOG}samples as ids of tokens, without their texts"
_THINGS = f'{NO_LOG}results or data: one record for each "{{}}", and none of a step'
_TEXTS = f"{NO_LOG}a list of texts: no record has a number"
_DOCUMENT = f"{NO_LOG}a JSON document without a list of step records"
SINGLE = "a single record without a step so far"
_ROLES = frozenset(names("chat_role"))
_SAID = frozenset(names("chat_content"))
_MOST = 200
"""Records that are looked at."""
_FIRST = 8


def why_none(head: bytes) -> str | None:
    """Return what a file of JSON is that no format recognises, None where it may become a log."""
    records = metrics_json.first_records(head, _MOST)
    certain = _certainly(head, records)
    if certain == OWN:
        return OWN
    if as_printed(head):
        return None
    if certain is None and _is_document(head):
        return _DOCUMENT
    return certain or (_reason_of(records) if records else None)


def _reason_of(records: Sequence[Fields]) -> str | None:
    """Return what records on lines are, None where they may be a training's."""
    thing = listed_thing(records[:_FIRST])
    if thing is None and any(map(tutorial.measures, records)):
        return None
    sample = read_sample(records[0])
    if sample and sample.step is None and sample.score is None:
        return _SAMPLES
    if thing is not None:
        return _THINGS.format(one_line(thing, 60))
    numbers = any(numbers_in(unquoted(flatten(one))) for one in records)
    return None if numbers or len(records) == 1 else _TEXTS


def _certainly(head: bytes, records: Sequence[Fields]) -> str | None:
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


FORMATS: tuple[Format, ...] = (
    tensorboard,
    trackio,
    mlflow_files,
    wandb,
    wandb_tables,
    swanlab,
    exposition,
    rollouts,
    filelogger,
    metrics_csv,
    trainer_state,
    swift,
    llama_factory,
    completions,
    parquet,
    sample_documents,
    sample_records,
    generations,
    metrics_json,
    tutorial,
    console,
)
"""The first format that recognises a file reads it: the narrow ones come before the broad ones."""


def format_of(path: Path, begin: bytes) -> Format | None:
    """Return the format of a file by its name and first bytes, None where it is no log (yet)."""
    records = metrics_json.first_records(begin, _FIRST)
    if _certainly(begin, records) is not None:
        return None
    return next((one for one in FORMATS if one.matches(path, begin)), None)

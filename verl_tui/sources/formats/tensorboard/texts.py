"""Reads the texts in event files: samples in the usual ways of writing them, or settings.

Hugging Face's trainers write their arguments and the model's as texts (`args`, `model_config`),
others a table of hyperparameters; verl's `ValidationGenerationsLogger` (verl/utils/tracking.py,
v0.9) many samples in one text. Scripts write `Prompt: … Response: …`, the same in Markdown, JSON,
or a Markdown table with a sample a row.
"""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Any

from verl_tui.patterns import pattern
from verl_tui.records import Sample, Settings
from verl_tui.sources.fields.jsonl import loads
from verl_tui.sources.fields.rewards import RewardSum
from verl_tui.sources.fields.sample import LONGEST_TEXT, plain_field, read_sample
from verl_tui.sources.fields.setting_values import flatten_settings
from verl_tui.text import one_line, safe

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

_SUFFIX = "/text_summary"
"""Suffix that torch and tensorboardX append to the tag of a text."""
_GENERATIONS = "val/generations"
"""Tag under which verl writes samples of a validation."""
_SAMPLE = pattern(r"sample_?\d*$")
"""Tags of samples that add nothing; any other is kept with the sample."""
_VALIDATION = pattern(r"val(?:idation)?(?![a-z])")
_SETTINGS = pattern(
    r"(?:.*/)?(?:args|arguments|training_args|model_config|config(?:uration)?|hparams?"
    r"|hyper_?parameters|hyperparams|settings"
    r"|command(?:_line)?|cmd|cli|git(?:_.*)?|description)",
    re.IGNORECASE,
)
"""Tags of texts that hold settings."""
_ARGUMENTS = {"args", "training_args", "arguments"}
"""Tags whose settings are the run's own, not those of a part of it."""
_FENCE = pattern(r"\A```\w*\n(.*)\n```\Z", re.DOTALL)
_RULE = pattern(r"\|?(?:\s*:?-+:?\s*\|)+\s*(?:(?::?-+:?|::?)\s*)?")
"""The line below the header of a Markdown table."""
_CELL = pattern(r"(?<!\\)\|")
_LABELS = (
    ("prompt", "prompt|input|question|query|instruction"),
    ("response", "response|output|completion|answer|generation"),
    ("ground_truth", r"ground[ _]truth|reference|target|label|expected|solution"),
    ("score", "score|reward|total reward"),
    ("step", "(?:global[ _])?step"),
)
_LABEL = "|".join(f"(?P<{field}>{words})" for field, words in _LABELS)
_LINE = pattern(
    rf"^[ \t]*(?:#{{1,6}}[ \t]*)?(?:[*_]{{1,3}})?(?:{_LABEL})"
    r"[ \t]*(?::[*_]{1,3}|[*_]{1,3}:?|:)",
    re.I | re.M,
)
_HEADING = pattern(rf"^#{{1,6}}[ \t]*(?:{_LABEL})[ \t]*$", re.I | re.M)
_INLINE = pattern(
    rf"(?<!\w)(?:[*_]{{1,3}})?(?:{_LABEL})(?:[*_]{{1,3}})?:(?:[*_]{{1,3}})?(?=\s)", re.I
)
_NUMBER = pattern(
    r"[-+]?(?:\d+(?:\.\d*)?(?:e[-+]?\d+)?|\.\d+|nan|inf|none|null|n/a|-)", re.IGNORECASE
)


_TRAILING = ("score", "ground_truth", "step")
"""Fields that may follow the response."""
_SCORED = pattern(
    rf"\b(?:score|reward)\b[ \t:=*_]{{1,8}}({_NUMBER.pattern})", re.IGNORECASE
)
"""A score in a line before the prompt."""


def read_texts(
    tag: str, step: int, texts: Iterable[str], origin: str
) -> Iterator[Sample | Settings]:
    """Yield the samples or settings in texts.

    Args:
        tag: Tag of the texts.
        step: Step of the texts.
        texts: The texts as written.
        origin: The file, for settings.
    """
    tag = tag.removesuffix(_SUFFIX)
    for text in texts:
        if tag != _GENERATIONS and _SETTINGS.fullmatch(tag):
            yield _settings(tag, text, origin)
            continue
        for part in _parts(text) if tag == _GENERATIONS else (text,):
            yield from _samples(tag, step, part)


def _samples(tag: str, step: int, text: str) -> Iterator[Sample]:
    validation = _VALIDATION.match(tag) is not None
    named = {} if tag == _GENERATIONS or _SAMPLE.search(tag) else {"tag": one_line(tag)}
    rewards = RewardSum()
    found = [
        read_sample(rewards.complete({**record, **named}), step, validation=validation)
        for record in records(text)
    ]
    samples = [sample for sample in found if sample is not None]
    yield from samples or [
        Sample(step, "", safe(text, LONGEST_TEXT), extras=named, validation=validation)
    ]


def _parts(text: str) -> Iterator[str]:
    """Yield the samples in a text of verl; a model's own headings break the numbering."""
    _, heading, rest = text.partition("### Sample 1\n")
    if not heading:
        yield text
    for number in itertools.count(2):
        if not heading:
            return
        part, heading, rest = rest.partition(f"---\n\n### Sample {number}\n")
        yield part.removesuffix("---\n\n")


def _settings(tag: str, text: str, origin: str) -> Settings:
    """Return the settings in a text: JSON, a table of names and values, or the text itself."""
    values: Mapping[str, Any] = {}
    text = _unfenced(text)
    try:
        loaded = loads(text.encode("utf-8", "surrogatepass"))
    except ValueError:
        values = _pairs(text)
    else:
        values = loaded if isinstance(loaded, dict) else {}
    last = tag.rpartition("/")[2]
    if not values:
        return Settings({one_line(last, 100): one_line(text, 1000)}, origin)
    prefix = "" if last in _ARGUMENTS or len(tag) > 100 else one_line(last, 100)
    return Settings(flatten_settings(values, prefix), origin)


def _pairs(text: str) -> dict[str, str]:
    """Return the rows of a table of names and values, {} for another text."""
    rows = [tuple(row.values()) for row in _table(text) or ()]
    if not rows or len(rows[0]) != 2:
        return {}
    return dict(row for row in rows if len(row) == 2)


# -- samples ---------------------------------------------------------------------------------------


def records(text: str) -> list[dict[str, Any]]:
    """Return the samples in a text as records with the usual fields, [] for an unknown form."""
    text = _unfenced(text)
    if text.startswith(("{", "[")):
        found = _of_json(text)
    elif text.startswith("|"):
        found = [
            {plain_field(name): value for name, value in row.items()}
            for row in _table(text) or ()
        ]
        found = list(map(_numbered, found))
    else:
        labelled = _labelled(text)
        found = [labelled] if labelled else []
    return [record for record in found if read_sample(record) is not None]


def _unfenced(text: str) -> str:
    """Return a text without the blanks and the code fence around it."""
    text = text.strip()
    fenced = _FENCE.match(text)
    return fenced[1].strip() if fenced else text


def _of_json(text: str) -> list[dict[str, Any]]:
    try:
        loaded = loads(text.encode("utf-8", "surrogatepass"))
    except ValueError:
        return []
    found = loaded if isinstance(loaded, list) else [loaded]
    return [
        {plain_field(str(key)): value for key, value in one.items()}
        for one in found
        if isinstance(one, dict)
    ]


def _table(text: str) -> list[dict[str, str]] | None:
    """Return the rows of a Markdown table by its header, None if a text is none."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) < 2 or not _RULE.fullmatch(lines[1]) or "|" not in lines[0]:
        return None
    header = _cells(lines[0])
    return [dict(zip(header, _cells(line), strict=False)) for line in lines[2:]]


def _cells(line: str) -> list[str]:
    line = line.removeprefix("|")
    line = line[:-1] if line.endswith("|") and not line.endswith("\\|") else line
    return [
        cell.strip().replace("\\|", "|").replace("<br>", "\n")
        for cell in _CELL.split(line)
    ]


def _labelled(text: str) -> dict[str, Any] | None:
    """Return the record in a text with labels, None if it lacks a prompt or a response.

    A model may write labels as well. So the first prompt and the first response behind it are the
    sample's, and only the last labels behind the response begin fields: numbers, a ground truth.
    """
    for form in (_LINE, _HEADING, _INLINE):
        marks = [
            (found.lastgroup or "", found.start(), found.end())
            for found in form.finditer(text)
        ]
        record = _divided(text, marks)
        if record is not None:
            return record
    return None


def _divided(text: str, marks: Sequence[tuple[str, int, int]]) -> dict[str, Any] | None:
    """Return the record between labels: each the name of its field, its start and its end."""
    fields = [field for field, _, _ in marks]
    if "prompt" not in fields or "response" not in fields[fields.index("prompt") :]:
        return None
    first = fields.index("prompt")
    second = fields.index("response", first)
    ends = [*(start for _, start, _ in marks[1:]), len(text)]
    record: dict[str, Any] = {}
    if before := _SCORED.search(text[: marks[first][1]]):
        record["score"] = before[1]
    between = _first_of(("ground_truth", "score"), fields, first + 1, second)
    record["prompt"] = text[marks[first][2] : marks[between][1]].strip()
    for at in range(between, second):
        record.setdefault(fields[at], text[marks[at][2] : ends[at]].strip())
    end = len(text)
    for field, start, stop in reversed(marks[second + 1 :]):
        value = text[stop:end].strip(" \t\n*_|,;")
        if not _is_trailing(field, value):
            break
        record.setdefault(field, value)
        end = start
    record["response"] = text[marks[second][2] : end].strip()
    record.pop("step", None)  # the event states it
    return _numbered(record)


def _first_of(names: tuple[str, ...], fields: list[str], start: int, stop: int) -> int:
    """Return the first index between two at which one of the names is, `stop` if there is none."""
    return next((at for at in range(start, stop) if fields[at] in names), stop)


def _is_trailing(field: str, value: str) -> bool:
    """Return True if a label behind the response begins a field: a number, or a ground truth."""
    if field == "ground_truth":
        return True
    return field in _TRAILING and _NUMBER.fullmatch(value) is not None


def _numbered(record: dict[str, Any]) -> dict[str, Any]:
    """Turn scores written as text into numbers."""
    for field in ("score", "reward"):
        value = record.get(field)
        if isinstance(value, str):
            try:
                record[field] = float(value)
            except ValueError:
                record[field] = None
    return record

"""Reads the texts in event files: samples in the usual ways of writing them, or settings.

Hugging Face's trainers write their arguments and the model's as texts (`args`, `model_config`),
others a table of hyperparameters; verl's `ValidationGenerationsLogger` (verl/utils/tracking.py,
v0.9) many samples in one text. Scripts write `Prompt: … Response: …`, the same in Markdown, JSON,
or a Markdown table with a sample a row.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Any

from verl_tui.patterns import pattern
from verl_tui.records import Sample, Settings
from verl_tui.sources.fields.jsonl import loads, written_number
from verl_tui.sources.fields.rewards import RewardSum
from verl_tui.sources.fields.sample import LONGEST_TEXT, plain_record, read_sample
from verl_tui.sources.fields.setting_values import flatten_settings
from verl_tui.text import one_line, safe

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

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


_MIDDLE = ("ground_truth", "score")
"""Fields that may stand between prompt and response."""
_TRAILING = ("score", "step")
"""Numbers that may follow the response."""
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
        if tag == _GENERATIONS:
            for part in _parts(text):
                yield from _samples(tag, step, part)
        elif _SETTINGS.fullmatch(tag):
            yield _settings(tag, text, origin)
        else:
            yield from _samples(tag, step, text)


def _samples(tag: str, step: int, text: str) -> Iterator[Sample]:
    validation = _VALIDATION.match(tag) is not None
    named = {}
    if tag != _GENERATIONS and not _SAMPLE.search(tag):
        named["tag"] = one_line(tag)
    rewards = RewardSum()
    wholes = ({**record, **named} for record in records(text))
    samples = [rewards.sample(one, step, validation=validation) for one in wholes]
    yield from filter(None, samples)
    if not any(samples):
        response = safe(text, LONGEST_TEXT)
        yield Sample(step, "", response, extras=named, validation=validation)


def _parts(text: str) -> Iterator[str]:
    """Yield the samples in a text of verl; a model's own headings break the numbering."""
    _, heading, rest = text.partition("### Sample 1\n")
    if not heading:
        yield text
    number = 2
    while heading:
        part, heading, rest = rest.partition(f"---\n\n### Sample {number}\n")
        yield part.removesuffix("---\n\n")
        number += 1


def _settings(tag: str, text: str, origin: str) -> Settings:
    """Return the settings in a text: JSON, a table of names and values, or the text itself."""
    text = _unfenced(text)
    loaded = _json(text)
    values = loaded if isinstance(loaded, dict) else _pairs(text)
    last = tag.rpartition("/")[2]
    if not values:
        return Settings({one_line(last, 100): one_line(text, 1000)}, origin)
    prefix = "" if last in _ARGUMENTS or len(tag) > 100 else one_line(last, 100)
    return Settings(flatten_settings(values, prefix), origin)


def _json(text: str) -> Any:
    """Return what JSON says, None for another text."""
    try:
        return loads(text.encode("utf-8", "surrogatepass"))
    except ValueError:
        return None


def _pairs(text: str) -> dict[str, str]:
    """Return the rows of a table of names and values, {} for another text."""
    rows = [tuple(row.values()) for row in _table(text)]
    if not rows or len(rows[0]) != 2:
        return {}
    return dict(row for row in rows if len(row) == 2)


# -- samples ---------------------------------------------------------------------------------------


def records(text: str) -> list[dict[str, Any]]:
    """Return the samples in a text as records with the usual fields, [] for an unknown form."""
    text = _unfenced(text)
    found: list[dict[str, Any]]
    if text.startswith(("{", "[")):
        loaded = _json(text)
        rows = loaded if isinstance(loaded, list) else [loaded]
        found = [plain_record(record) for record in rows if isinstance(record, dict)]
    elif text.startswith("|"):
        found = [_numbered(plain_record(row)) for row in _table(text)]
    else:
        divided = (_divided(text, form) for form in (_LINE, _HEADING, _INLINE))
        found = [*islice(filter(None, divided), 1)]
    return [record for record in found if read_sample(record) is not None]


def _unfenced(text: str) -> str:
    """Return a text without the blanks and the code fence around it."""
    text = text.strip()
    fenced = _FENCE.match(text)
    return fenced[1].strip() if fenced else text


def _table(text: str) -> list[dict[str, str]]:
    """Return the rows of a Markdown table by its header, none of another text."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) < 2 or not _RULE.fullmatch(lines[1]) or "|" not in lines[0]:
        return []
    header = _cells(lines[0])
    return [dict(zip(header, _cells(line), strict=False)) for line in lines[2:]]


def _cells(line: str) -> list[str]:
    line = line.removeprefix("|")
    if not line.endswith("\\|"):
        line = line.removesuffix("|")
    cells = map(str.strip, _CELL.split(line))
    return [cell.replace("\\|", "|").replace("<br>", "\n") for cell in cells]


def _divided(text: str, form: re.Pattern[str]) -> dict[str, Any] | None:
    """Return the record in a text with labels of one form, None if it lacks a prompt or a response.

    A model may write labels as well. So the first prompt and the first response behind it are the
    sample's, and only the last labels behind the response begin fields: numbers, a ground truth.
    """
    labels = list(form.finditer(text))
    fields = [label.lastgroup or "" for label in labels]
    try:
        first = fields.index("prompt")
        second = fields.index("response", first)
    except ValueError:
        return None
    record: dict[str, Any] = {}
    before = _SCORED.search(text[: labels[first].start()])
    if before:
        record["score"] = before[1]
    middle = range(first + 1, second)
    between = next((at for at in middle if fields[at] in _MIDDLE), second)
    record["prompt"] = text[labels[first].end() : labels[between].start()].strip()
    for at in range(between, second):
        value = text[labels[at].end() : labels[at + 1].start()].strip()
        record.setdefault(fields[at], value)
    trailing, end = _trailing(text, labels[second + 1 :])
    record = trailing | record
    record["response"] = text[labels[second].end() : end].strip()
    record.pop("step", None)  # the event states it
    return _numbered(record)


def _trailing(text: str, labels: Sequence[re.Match[str]]) -> tuple[dict[str, Any], int]:
    """Return the fields that follow a response, and where it ends."""
    record: dict[str, Any] = {}
    end = len(text)
    for label in reversed(labels):
        field = label.lastgroup or ""
        value = text[label.end() : end].strip(" \t\n*_|,;")
        is_number = field in _TRAILING and _NUMBER.fullmatch(value)
        if field != "ground_truth" and not is_number:
            break
        record.setdefault(field, value)
        end = label.start()
    return record, end


def _numbered(record: dict[str, Any]) -> dict[str, Any]:
    """Turn scores written as text into numbers."""
    for field in ("score", "reward"):
        value = record.get(field)
        if isinstance(value, str):
            record[field] = written_number(value)
    return record

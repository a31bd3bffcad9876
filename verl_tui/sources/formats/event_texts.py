"""Reads the texts in event files: samples with labels before prompt and response, or settings.

Hugging Face's trainers write their arguments and the model's as texts (`args`, `model_config`),
others a table of hyperparameters; verl's `ValidationGenerationsLogger` (verl/utils/tracking.py,
v0.9) many samples in one text. Scripts write `Prompt: …` and `Response: …`, or the same in
Markdown. A text of another form is a response.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from verl_tui.patterns import pattern
from verl_tui.records import Sample, Settings
from verl_tui.sources.fields.jsonl import loads, written_number
from verl_tui.sources.fields.sample import read_sample
from verl_tui.sources.fields.setting_values import flatten_settings
from verl_tui.text import one_line

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
_RULE = pattern(r"\s*:?-+:?\s*\|\s*:?-+:?\s*")
"""The line below the header of a Markdown table of two columns."""
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
    r"[ \t]*(?::[*_]{1,3}|[*_]{1,3}:?|:|$)",
    re.I | re.M,
)
"""A label at the beginning of a line."""
_NUMBER = pattern(
    r"[-+]?(?:\d+(?:\.\d*)?(?:e[-+]?\d+)?|\.\d+|nan|inf|none|null|n/a|-)", re.IGNORECASE
)


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
    record = _divided(text) or {"response": text}
    if tag != _GENERATIONS and not _SAMPLE.search(tag):
        record["tag"] = one_line(tag)
    validation = _VALIDATION.match(tag) is not None
    yield from filter(None, [read_sample(record, step, validation=validation)])


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
    """Return the settings in a text: JSON, a table of names and values, or the text itself; without
    the code fence around it.
    """
    text = text.strip()
    fenced = _FENCE.match(text)
    text = fenced[1].strip() if fenced else text
    try:
        values = loads(text.encode("utf-8", "surrogatepass"))
    except ValueError:
        values = None
    if not isinstance(values, dict):
        values = _table(text)
    last = tag.rpartition("/")[2]
    if not values:
        return Settings({one_line(last, 100): one_line(text, 1000)}, origin)
    prefix = "" if last in _ARGUMENTS or len(tag) > 100 else one_line(last, 100)
    return Settings(flatten_settings(values, prefix), origin)


def _table(text: str) -> dict[str, str]:
    """Return the rows of a Markdown table of names and values, {} for another text."""
    lines = [line.strip().strip("|") for line in text.splitlines() if line.strip()]
    if len(lines) < 2 or not _RULE.fullmatch(lines[1]):
        return {}
    rows = (line.partition("|") for line in lines[2:])
    return {name.strip(): value.strip() for name, bar, value in rows if bar}


def _divided(text: str) -> dict[str, Any] | None:
    """Return the record in a text with labels, None if it lacks a prompt or a response.

    A model may write labels as well. So the first prompt and the first response behind it are the
    sample's, with a ground truth between them, and only the last labels behind the response begin
    fields: numbers, a ground truth.
    """
    labels = list(_LINE.finditer(text))
    fields = [label.lastgroup or "" for label in labels]
    first = fields.index("prompt") if "prompt" in fields else len(fields)
    if "response" not in fields[first:]:
        return None
    second = fields.index("response", first)
    record, end = _trailing(text, labels[second + 1 :])
    for at in range(second, first - 1, -1):
        if at in (first, second) or fields[at] == "ground_truth":
            record[fields[at]] = text[labels[at].end() : end].strip()
            end = labels[at].start()
    record.pop("step", None)  # the event states it
    score = written_number(record.pop("score", ""))
    return record if score is None else {**record, "score": score}


def _trailing(text: str, labels: Sequence[re.Match[str]]) -> tuple[dict[str, Any], int]:
    """Return the fields that follow a response, and where it ends."""
    record: dict[str, Any] = {}
    end = len(text)
    for label in reversed(labels):
        value = text[label.end() : end].strip(" \t\n*_|,;")
        if label.lastgroup != "ground_truth" and not _NUMBER.fullmatch(value):
            break
        record.setdefault(label.lastgroup or "", value)
        end = label.start()
    return record, end

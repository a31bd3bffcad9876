"""Reads the texts in event files: samples with labels before prompt and response, or settings.

Hugging Face's trainers write their arguments and the model's as texts (`args`, `model_config`),
others a table of hyperparameters; verl's `ValidationGenerationsLogger` (verl/utils/tracking.py,
v0.9) many samples in one text, as `**Input:** …` and `**Output:** …`. A text of another form is a
response.
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
    from collections.abc import Iterable, Iterator

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
_HEADING = pattern(r"### Sample \d{1,9}\n")
_WRITTEN = pattern(
    r"\**(?:prompt|input)\**:\**\s(?P<prompt>.*?)"
    r"\n\**(?:response|output)\**:\**\s(?P<response>.*?)"
    r"(?:\n\**(?:score|reward)\**:\**\s(?P<score>[^\n]*)\s*)?(?:\n---\s*)?\Z",
    re.DOTALL | re.IGNORECASE,
)
"""A sample with its parts, plain or bold."""


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
            for part in _HEADING.split(text)[1:]:
                yield from _samples(tag, step, part)
        elif _SETTINGS.fullmatch(tag):
            yield _settings(tag, text, origin)
        else:
            yield from _samples(tag, step, text)


def _samples(tag: str, step: int, text: str) -> Iterator[Sample]:
    found = _WRITTEN.match(text)
    record: dict[str, Any] = {"response": text}
    if found is not None:
        record = {
            name: (part or "").strip() for name, part in found.groupdict().items()
        }
        record["score"] = written_number(record["score"])
    if tag != _GENERATIONS and not _SAMPLE.search(tag):
        record["tag"] = one_line(tag)
    validation = _VALIDATION.match(tag) is not None
    yield from filter(None, [read_sample(record, step, validation=validation)])


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

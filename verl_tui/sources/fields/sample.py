"""Recognises a sample in a JSON record of any program, also where prompt, response and reward lie
deep within, as `verl_tui.trainers` tells where; sums the rewards of samples without a total.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from verl_tui.patterns import pattern
from verl_tui.records import Sample, SampleFacts
from verl_tui.sources.fields.jsonl import Fields, ending, integer, names, number
from verl_tui.sources.files import opened
from verl_tui.text import one_line, safe
from verl_tui.trainers import trainers

_FORMS = tuple(
    (files.has, files.fields)
    for one in trainers()
    for files in one.samples
    if files.fields
)


def flat_sample(record: Fields) -> Fields:
    """Return a record with the fields that verl writes; as it is where no trainer is known to
    write it.
    """
    for has, fields in _FORMS:
        if has <= record.keys():
            found = {name: _at(record, path) for name, path in fields.items()}
            return {name: value for name, value in found.items() if value is not None}
    return record


def _at(value: Any, path: str) -> Any:
    """Return what stands at a path within a value, None where it leads nowhere."""
    here, _, rest = path.partition(".")
    if not here:
        return _weighted(value)
    if here in ("*", "1:"):
        all = list(value.values() if isinstance(value, dict) else value or ())
        return _joined([_at(one, rest) for one in all[here == "1:" :]])
    try:
        found = value[here] if isinstance(value, dict) else value[int(here)]
    except (KeyError, IndexError, ValueError, TypeError):
        return None
    return _at(found, rest)


def _joined(found: list[Any]) -> Any:
    """Return texts as one, other things as a list; None for nothing."""
    known = [one for one in found if one is not None]
    if known and all(isinstance(one, str) for one in known):
        return "\n\n".join(known)
    return known or None


def _weighted(value: Any) -> Any:
    """Return a part of a reward times its weight, anything else as it is."""
    if isinstance(value, dict) and value.keys() >= {"score", "weight"}:
        return (value["score"] or 0.0) * value["weight"]
    return value


LONGEST_TEXT = 40_000
"""Characters kept of one text of many: more than most responses have, less than what makes a
terminal stutter.
"""
_LONGEST_EXTRA = 2_000

_PROMPT = names("prompt")
_RESPONSE = names("response")
_TRUTH = names("truth")
SCORE_NAMES = names("score")
_STEP = names("sample_step")
_CONVERSATION = names("conversation")
_VALIDATION = pattern(r"(?<![a-z])(?:val(?!ue)|eval|test)", re.IGNORECASE)
"""At the beginning of a word: `latest` is no test, `interval` no validation, nor is `values`."""
_KNOWN = frozenset(names("no_extra"))
_FIELDS = {*_PROMPT, *_RESPONSE, *_TRUTH, *SCORE_NAMES, *_STEP, *_CONVERSATION, "uid"}
_NUMBERED = pattern(r"(?P<field>.+?)(?P<number>_\d+)?")
_UID = pattern(r"^(.+)_\d+_\d+$")
_NOTHING: Mapping[str, float] = {}


class _Parts(NamedTuple):
    """The parts of the sample in a record."""

    prompt: str
    response: str
    score: float | None
    truth: Any
    extras: list[tuple[str, Any]]


def read_sample(
    record: Fields,
    step: int | None = None,
    *,
    validation: bool = False,
    longest: int = LONGEST_TEXT,
) -> Sample | None:
    """Return the sample a record holds, None where it holds none.

    Args:
        record: A JSON object: verl's dumps (`input, output, gts, score, step`), the tutorials'
            `sample` scope, conversations as evaluations write them.
        step: The step to use where the record states none.
        validation: Whether it comes from a validation.
        longest: Characters kept of the prompt and of the response.
    """
    record = flat_sample(record)
    parts = _parts(record)
    if not parts:
        return None
    name = _first(record, _STEP, (int, float, str))
    stated = integer(record[name]) if name is not None else None
    truth = parts.truth
    return Sample(
        step=stated if stated is not None else step,
        prompt=safe(parts.prompt, longest),
        response=safe(parts.response, longest),
        score=parts.score,
        ground_truth=safe(_text(truth), _LONGEST_EXTRA) if truth is not None else None,
        group=_group(record.get("uid")),
        extras={_safe_name(key): _extra(value) for key, value in parts.extras},
        validation=validation,
    )


def read_fact(
    record: Fields, index: int, *, validation: bool = False
) -> SampleFacts | None:
    """Return what can be said of a record's sample without its text, None where it holds none.

    Args:
        record: A JSON object, as for `read_sample`.
        index: Its place among the samples.
        validation: Whether it comes from a validation.
    """
    record = flat_sample(record)
    parts = _parts(record)
    if not parts:
        return None
    numbers = {
        _safe_name(key): float(value)
        for key, value in parts.extras
        if isinstance(value, (int, float)) and -1e300 < value < 1e300
    }
    prompt = group_of(parts.prompt)
    group = _group(record.get("uid")) or prompt
    known = parts.score, group, len(parts.response), numbers or _NOTHING
    return SampleFacts(index, *known, validation, prompt)


def _parts(record: Fields) -> _Parts | None:
    """Return the parts of the sample in a record, None where it holds none."""
    response = next((one for one in _RESPONSE if _is_spoken(record.get(one))), None)
    if response is not None:
        prompt = _first(record, _PROMPT, (str, list))
        asked, said = _spoken(record.get(prompt or "", "")), _spoken(record[response])
    else:
        talks = (one for one in _CONVERSATION if _is_conversation(record.get(one)))
        prompt = next(talks, None)
        if prompt is None:
            return None
        asked, said = _split_conversation(record[prompt])
    score = _score_name(record)
    truth = _first(record, _TRUTH, object, but=response)
    scored = score_of(record.get(score or "", ""))
    known = {prompt, response, score, truth, *_KNOWN}
    return _Parts(asked, said, scored, record.get(truth or ""), _others(record, known))


def _score_name(record: Fields) -> str | None:
    return _first(record, SCORE_NAMES, (int, float)) or summed_score(record)


def _others(record: Fields, known: set[str | None]) -> list[tuple[str, Any]]:
    """Return the fields that say something and are not known."""
    return [one for one in record.items() if one[1] is not None and one[0] not in known]


def plain_field(name: str) -> str:
    """Return the name of a table's column as fields of samples are written: `Ground Truth` is
    `ground_truth`.
    """
    found = _NUMBERED.fullmatch(plain := name.strip().lower().replace(" ", "_"))
    if found and found["field"] in _FIELDS:
        return plain
    return name


def plain_record(record: Mapping[Any, Any]) -> Fields:
    """Return a record with the plain names of its fields."""
    return {plain_field(str(name)): value for name, value in record.items()}


def further_rows(rows: list[Any], known: list[Any]) -> list[Any]:
    """Return the rows of a table that the last one of its name did not have: a growing one is
    written whole each time.
    """
    return rows[len(known) if rows[: len(known)] == known else 0 :]


def is_validation(name: str) -> bool:
    """Return whether a table or a directory of samples is called after a validation."""
    return _VALIDATION.search(name) is not None


def group_of(prompt: str) -> str | None:
    """Return a name for the samples of a prompt where nothing else names them; None for no
    prompt.
    """
    if not prompt:
        return None
    from hashlib import blake2b  # with all of OpenSSL, which few logs need

    return blake2b(prompt.encode("utf-8", "surrogatepass"), digest_size=5).hexdigest()


def summed_score(record: Fields) -> str | None:
    """Return the field that holds a sample's score in parts, one for each token or turn."""
    lists = (name for name in SCORE_NAMES if isinstance(record.get(name), list))
    return next((name for name in lists if score_of(record[name]) is not None), None)


def score_of(value: object) -> float | None:
    """Return a score, the sum of one that is given in parts; None for anything else."""
    if not isinstance(value, list):
        return number(value)
    parts = [None if isinstance(one, bool) else score_of(one) for one in value]
    if not parts or None in parts:
        return None
    return math.fsum(part for part in parts if part and not math.isnan(part))


def all_text(sample: Sample) -> Iterator[str]:
    """Yield the texts of a sample that are searched."""
    texts = sample.prompt, sample.response, sample.ground_truth, sample.group
    yield from (one for one in (*texts, *sample.extras.values()) if type(one) is str)


def is_padding(record: Fields) -> bool:
    """Return whether a dump's row only pads the batch (verl v0.9: its uid starts with `pad`)."""
    uid = record.get("uid")
    return isinstance(uid, str) and uid.startswith("pad")


@lru_cache(maxsize=4096)
def _safe_name(name: str) -> str:
    """Make a field's name, or that of a group, safe: the same ones come again and again."""
    return safe(str(name), 100)


def _first(
    record: Fields,
    names: Sequence[str],
    kind: type | tuple[type, ...],
    but: str | None = None,
) -> str | None:
    for name in names:
        value = record.get(name)
        if value is not None and isinstance(value, kind) and name != but:
            return name
    return None


def _group(uid: object) -> str | None:
    """Return the prompt a sample belongs to: verl v0.9 writes `{prompt}_{session}_{index}`."""
    if not isinstance(uid, str):
        return None
    found = _UID.match(uid)
    return _safe_name(found.group(1) if found else uid)


# -- conversations ---------------------------------------------------------------------------------


def _is_spoken(value: object) -> bool:
    return isinstance(value, str) or _is_conversation(value)


def _is_conversation(value: object) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(turn, dict) and _role(turn) for turn in value)
    )


def _role(turn: Fields) -> str:
    """Return who speaks; empty where the turn does not say."""
    return str(turn.get("role") or turn.get("from") or "")


def _spoken(value: Any) -> str:
    """Return a prompt or a response as text: a single turn of the model is what it says."""
    if not _is_conversation(value):
        return _text(value)
    if len(value) == 1 and _is_answer(value[0]):
        return _turn_text(value[0])
    return _conversation(value)


def _conversation(turns: Sequence[Fields]) -> str:
    return "\n\n".join(f"{_role(turn)}: {_turn_text(turn)}" for turn in turns)


def _turn_text(turn: Fields) -> str:
    """Return all that a turn says: thoughts, content, and calls of tools in the tags that models
    write them in.
    """
    content, calls = turn.get("content", turn.get("value")), turn.get("tool_calls")
    thought = turn.get("reasoning_content")
    parts = [f"<think>\n{thought}\n</think>"] if thought else []
    if content not in (None, ""):
        parts += map(_part, content if isinstance(content, list) else [content])
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function", call) if isinstance(call, dict) else call
        parts.append(f"<tool_call>\n{_text(function)}\n</tool_call>")
    return "\n".join(parts)


def _part(part: object) -> str:
    """Return one part of a content: its text, or what kind of thing stands there
    (`[image_url]`).
    """
    if not isinstance(part, dict):
        return _text(part)
    text = part.get("text")
    return text if isinstance(text, str) else f"[{part.get('type', '?')}]"


def _is_answer(turn: Fields) -> bool:
    return _role(turn) in ("assistant", "gpt")


def _split_conversation(turns: Sequence[Fields]) -> tuple[str, str]:
    """Return what came before the model's first turn, and everything from there on."""
    answers = (at for at, turn in enumerate(turns) if _is_answer(turn))
    start = next(answers, len(turns))
    said = list(turns[start:])
    return _conversation(turns[:start]), _spoken(said) if said else ""


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    try:
        return orjson.dumps(value).decode()
    except (TypeError, orjson.JSONEncodeError):
        return str(value)


def _extra(value: object) -> Any:
    if isinstance(value, int | float | None):
        return value
    return safe(_text(value), _LONGEST_EXTRA)


# -- rewards ---------------------------------------------------------------------------------------
# TRL and ms-swift write a column a function, and no total.

_COMPLETION = "completion"
_ADVANTAGE = pattern(r"advantages?", re.IGNORECASE)
_PART = pattern(r"(?:.*[/_. ])?rewards?(?:[/_. ].*)?", re.IGNORECASE)
_NO_PART = ending("no_reward")
_SETTING_FILES = ("args.json", "config.yaml")
"""Settings beside a file: ms-swift's, and W&B's of its run."""
_LARGEST_FILE = 2**20
"""Bytes of such a file that are looked through."""
_WEIGHTS = pattern(
    rb'\breward_weights"?\s*:\s*(?:desc:\s*\S*\s*)?(?:value:\s*)?([][\s,.\deE+-]{1,1000})'
)
"""As both write them: a list of JSON, or of YAML, with W&B's own words around it."""
_WEIGHT = pattern(rb"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_HIGHEST = 4
"""Folders searched for settings, from the file's own up: W&B's tables are three below them."""


class RewardSum:
    """Gives samples without a total reward the sum of their rewards, weighted if possible."""

    def __init__(
        self, weights: Sequence[float] | None = None, path: Path | None = None
    ) -> None:
        """Begin.

        Args:
            weights: The run's `reward_weights`, in the order of its reward functions.
            path: The file of the samples; weights are looked for in the settings beside it.
        """
        self._weights = weights
        self._path = path
        self._added: tuple[str, ...] = ()
        self._tokens = ""
        """A field that holds a list, whose numbers are a sample's score together."""

    @property
    def note(self) -> str | None:
        """Say how the rewards were summed, None if they were not."""
        if self._tokens:
            return f"the score of a sample is the sum of its list {self._tokens}"
        if not self._added:
            return None
        weights, many = self._fitting(self._added), len(self._added) > 1
        unknown = ", no weights are known" if many and not weights else ""
        pairs = zip(weights or self._added, self._added, strict=True)
        terms = [f"{weight:g} × {name}" if weights else name for weight, name in pairs]
        total = " + ".join(terms) if many else f"its {self._added[0]}"
        return f"the reward of a sample is {total}: no total is stated{unknown}"

    def complete(self, record: Fields) -> Fields:
        """Return a sample's record with its total reward."""
        if any(number(record.get(name, "")) is not None for name in SCORE_NAMES):
            return record
        if (name := summed_score(record)) is not None:
            self._tokens = one_line(name, 60)
            return record
        parts = _rewards(record)
        total = self._sum(parts)
        if total is None:
            return record
        self._added = tuple(one_line(name, 60) for name in parts)
        return {**record, "reward": total}

    def sample(
        self, record: Fields, step: int | None, *, validation: bool = False
    ) -> Sample | None:
        """Return the sample of a record with its total reward, None where it holds none.

        Args:
            record: Its fields by their plain names.
            step: The step to use where the record states none.
            validation: Whether it comes from a validation.
        """
        return read_sample(self.complete(record), step, validation=validation)

    def _sum(self, parts: Mapping[str, float | None]) -> float | None:
        """Return the weighted sum of rewards, None if all are missing."""
        if parts and self._path:
            self._weights = weights_beside(self._path)
            self._path = None
        weights = self._fitting(tuple(parts)) or [1.0] * len(parts)
        known = [
            weight * one
            for weight, one in zip(weights, parts.values(), strict=True)
            if one is not None and not math.isnan(one)
        ]
        return sum(known) if known else None

    def _fitting(self, names: Sequence[str]) -> Sequence[float] | None:
        """Return the weights if there is one for each name."""
        fits = self._weights is not None and len(self._weights) == len(names)
        return self._weights if fits else None


def _rewards(record: Fields) -> dict[str, float | None]:
    """Return the rewards of a record in its order, None for a function that does not apply.

    In records with an advantage, such as TRL's and ms-swift's, all numbers between completion and
    advantage are rewards; in others the fields with such a name.
    """
    parts = record.get("rewards")
    if not isinstance(parts, dict):
        parts = {name: record[name] for name in _part_names(list(record))}
    return {
        str(name): number(one)
        for name, one in parts.items()
        if isinstance(one, int | float | None)
    }


def _part_names(names: list[str]) -> list[str]:
    """Return the fields that may be rewards."""
    end = next(filter(_ADVANTAGE.fullmatch, names), None)
    if _COMPLETION in names and end is not None:
        parts = names[names.index(_COMPLETION) + 1 : names.index(end)]
    else:
        parts = [name for name in names if _PART.fullmatch(name)]
    return [name for name in parts if not _NO_PART.fullmatch(name)]


def weights_beside(path: Path) -> list[float] | None:
    """Return the `reward_weights` in the settings beside a file, None if there are none."""
    for folder in list(path.parents)[:_HIGHEST]:
        for name in _SETTING_FILES:
            with suppress(OSError), opened(folder / name) as file:
                found = _WEIGHTS.search(file.read(_LARGEST_FILE))
                if found and (weights := _WEIGHT.findall(found[1])):
                    return list(map(float, weights))
    return None


def weights_of(settings: Fields) -> list[float] | None:
    """Return the `reward_weights` that settings state."""
    stated = settings.get("reward_weights")
    weights = list(map(number, stated)) if isinstance(stated, list) else []
    known = [one for one in weights if one is not None]
    return known if known and known == weights else None

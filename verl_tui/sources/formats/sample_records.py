"""Sample records in a file of their own: prompts with responses, conversations, and above all
evaluations.

JSON lines, or one JSON document with a list of such records. A record without a step is of no
training: the file is an evaluation, shown as a validation at step 0.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from verl_tui.patterns import pattern
from verl_tui.records import SAMPLES
from verl_tui.sources.fields.jsonl import first_object, loads
from verl_tui.sources.fields.rewards import RewardSum
from verl_tui.sources.fields.row_batcher import joined_notes
from verl_tui.sources.fields.sample import plain_record
from verl_tui.sources.formats.console.decoder import ConsoleDecoder
from verl_tui.sources.formats.format import FileFormat, WholeReader
from verl_tui.sources.formats.lines import JsonDecoder, LineReader
from verl_tui.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from verl_tui.records import Record, Sample
    from verl_tui.sources.fields.row_batcher import MetricRow

name = SAMPLES
rank = 7  # the figures of all samples go before those of the few that trainers show
anchor = False

_LIST = pattern(
    r"\s*(?:\{.{0,4000}?"
    r'"(?:results|samples|data|predictions|responses|outputs|records|examples|logs)"'
    r"\s*:\s*)?\[\s*(?=\{)",
    re.DOTALL,
)
"""The beginning of a document with a list of records, at its top or below the facts on the
evaluation.
"""
_LARGEST = 256 * 2**20
"""Bytes; a larger document is given up."""


def matches(path: Path, head: bytes) -> bool:
    """Return whether the first object is a sample with a score, or with an answer at a step; in a
    document with a score.

    Texts without either are what a training is fed with.
    """
    first = first_object(head)
    if first is not None and "scope" not in first:
        sample = RewardSum().sample(first, None)
        if sample is not None and (
            sample.score is not None or (sample.response and sample.step is not None)
        ):
            return True
    return path.suffix.lower() == ".json" and _begins_document(head)


class SamplesReader(WholeReader):
    """Reads lines, or a document as a whole, depending on the first bytes."""

    once = False

    def __init__(self, path: Path) -> None:
        super().__init__(_LARGEST)
        self._decoder = SampleDecoder(path)
        self._lines = LineReader(self._decoder)
        self._may_be_document = path.suffix.lower() == ".json"

    @property
    def note(self) -> str | None:
        """Return that it is an evaluation, and how rewards were added."""
        return self._decoder.note

    def feed(self, data: bytes) -> tuple[Record, ...]:
        """Return the samples that these bytes complete."""
        return super().feed(data) if self._may_be_document else self._lines.feed(data)

    def parse(self, data: bytes) -> Iterator[Sample]:
        """Yield the samples of a document: of its list, or of the first list in it."""
        document = loads(data)
        if isinstance(document, dict):
            lists = (one for one in document.values() if isinstance(one, list) and one)
            of_records = (one for one in lists if isinstance(one[0], dict))
            document = next(of_records, [document])
        found = document if isinstance(document, list) else []
        records = (plain_record(one) for one in found if isinstance(one, dict))
        yield from filter(None, map(self._decoder.sample, records))

    def finish(self) -> tuple[Record, ...]:
        """Return what only waits for its end, where that was no document also its lines."""
        data = bytes(self._held)
        if _begins_document(data):
            return super().finish()
        self._may_be_document = self._may_be_document and not data.strip()
        self._held.clear()
        return (*self._lines.feed(data), *self._lines.finish())

    def restart(self, reason: str) -> tuple[Record, ...]:
        """Forget everything, the file starts anew."""
        super().restart(reason)
        return self._lines.restart(reason)


reader = SamplesReader


class SampleDecoder(JsonDecoder):
    """Decodes one sample a line."""

    def __init__(self, path: Path | None = None) -> None:
        self._rewards = RewardSum(path=path)
        self.restart()

    def restart(self) -> Iterable[MetricRow | Record]:
        """Forget what was counted."""
        self._count = 0
        """Samples without a step."""
        self._scores: list[float] = []
        """Those of them that have one."""
        return ()

    @property
    def note(self) -> str | None:
        """Return that it is an evaluation with its mean, and how rewards were added."""
        if not self._count:
            return self._rewards.note
        said = f"an evaluation of {counted(self._count, 'sample')}"
        if self._scores:
            said += f", mean score {sum(self._scores) / len(self._scores):.4g}"
        return joined_notes(f"{said}: they state no step", self._rewards.note)

    def read(self, record: dict[str, Any]) -> Iterable[MetricRow | Record]:
        """Return the sample of one object."""
        sample = self.sample(record)
        if sample is None:
            raise ValueError("no prompt and response")
        return (sample,)

    def sample(self, record: Mapping[str, Any]) -> Sample | None:
        """Return the sample of a record; one without a step is an evaluation's."""
        found = self._rewards.sample(record, None)
        if found is None or found.step is not None:
            return found
        self._count += 1
        if found.score is not None and found.score == found.score:
            self._scores.append(found.score)
        return found._replace(step=0, validation=True)


def _begins_document(data: bytes) -> bool:
    """Return whether a document begins with a list of samples that have scores."""
    text = data.decode("utf-8", "replace").lstrip("\ufeff")
    found = _LIST.match(text)
    if found is None:
        return False
    try:
        first, _ = json.JSONDecoder().raw_decode(text, found.end())
    except (ValueError, RecursionError):
        return False
    sample = RewardSum().sample(plain_record(first), None)
    return sample is not None and sample.score is not None


class Generations(ConsoleDecoder):
    """Reads EasyR1's `generations.log`, the samples of its validations as it prints them
    (verl/utils/logger/gen_logger.py:52-57).
    """

    @property
    def note(self) -> str | None:
        """Return what is not known of them."""
        return "samples of validations: they state no step"


generations = FileFormat(
    "EasyR1 generations",
    rank,
    lambda _, head: head.startswith(b"[prompt] ") and b"\n[output] " in head,
    lambda _: LineReader(Generations()),
)

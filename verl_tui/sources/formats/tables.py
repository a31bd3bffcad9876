"""Files of samples. As tables: ms-swift's completions and ROLL's dumps as columns in lines of JSON,
TRL's in Parquet files, and those that a run at W&B keeps on disk.

- `{"step": ["1", …], "prompt": […], "completion": […], <a column a reward function>, "advantages":
  […]}` is a line of ms-swift's (swift/trainers/rlhf_trainer/grpo_trainer.py, `log_completions`);
  ROLL's dumps are such a line with names of its own (roll/pipeline/rlvr/utils.py:19-44).
- `completions/completions_00010.parquet` has the same columns, for the samples of one step
  (trl/trainer/grpo_trainer.py, `log_completions`). pyarrow is needed. A Parquet file is complete
  when its last four bytes are `PAR1`. Directories of them are read by
  `verl_tui.sources.folders.step_files`.
- `files/media/table/<name>_<W&B's step>_<hash>.table.json` is `{"columns", "data"}`. verl's
  `val/generations` has one row a validation, `step, input_1, output_1, score_1, input_2, …`, and is
  rewritten with all rows at each (verl/utils/tracking.py, `ValidationGenerationsLogger`). Other
  trainers write one sample a row (TRL: `step, prompt, completion` and rewards), of one step or all
  so far. So if a table begins with the rows of an earlier one of its name beside it, only the
  further rows are read, and a table logged twice is read once. Columns are recognised in any
  capitalisation. A row without a step has W&B's step.

And as records: prompts with responses, conversations, and above all evaluations, in JSON lines or
in one JSON document with a list of such records. A record without a step is of no training: the
file is an evaluation, shown as a validation at step 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from verl_tui.patterns import pattern
from verl_tui.records import SAMPLES, Record, Restart, Sample, Unreadable
from verl_tui.sources.fields.jsonl import Fields, first_object, integer, loads
from verl_tui.sources.fields.row_batcher import Item, joined_notes
from verl_tui.sources.fields.sample import (
    RewardSum,
    further_rows,
    is_validation,
    plain_field,
    plain_record,
    read_sample,
)
from verl_tui.sources.files import opened
from verl_tui.sources.formats.console.decoder import ConsoleDecoder
from verl_tui.sources.formats.format import FileFormat, WholeReader
from verl_tui.sources.formats.lines import JsonDecoder, LineReader
from verl_tui.sources.formats.metrics_json import (
    first_records,
    is_a_line,
    record_lists,
)
from verl_tui.text import one_line
from verl_tui.words import counted

LARGEST = 256 * 2**20
"""Bytes; a larger file holds no samples of one step."""
_TEXTS = ("prompt", "completion")
_ROLLS = {"responses": "completion", "scores": "score"}
"""Columns that ROLL calls otherwise."""
_BEGIN = pattern(rb'\s*\{"(?:step|prompt|gen_step|global_step)":\s*\[(?:"|\d)')
"""The beginning of a first line that is longer than the head of the file."""
MISSING = "needs pyarrow to be read: pip install 'verl-tui[parquet]'"
_PARQUET = pattern(r"completions_(\d{1,15})\.parquet")
_MAGIC = b"PAR1"
_SAMPLES_A_TABLE = 4096
"""Samples kept of one table of W&B's."""
_NAME = pattern(r"(?P<key>.+)_(?P<step>\d+)_[0-9a-f]+\.table\.json")
_COLUMNS = pattern(rb'"columns"\s*:\s*(\[[^\[\]]*\])')
_NUMBERED = pattern(r"^(?P<field>\w+?)_(?P<number>\d+)$")


def _has_columns(_path: Path, head: bytes) -> bool:
    """Return True if the first object has prompts and completions in columns."""
    first = first_object(head)
    if first is not None:
        return _length(_named(first)) > 0
    begun = b"\n" not in head and b'"prompt"' in head
    return begun and _BEGIN.match(head) is not None


class CompletionsDecoder(JsonDecoder):
    """Decodes the samples of a line; a step that returns after others was trained again.

    ms-swift writes its last line once more as it ends: a line that only repeats the one before is
    read once.
    """

    def __init__(self, path: Path) -> None:
        self._rewards = RewardSum(path=path)
        self._seen: dict[int, None] = {}
        """Steps, the one that is read as the last."""
        self._before: Fields = {}
        """The line before."""

    @property
    def note(self) -> str | None:
        """Say how rewards were summed."""
        return self._rewards.note

    def read(self, record: Fields) -> Iterable[Item]:
        """Return the samples of one object."""
        record = _named(record)
        if not _length(record):
            raise ValueError("no columns of prompts and completions")
        if record == self._before:
            return
        self._before = record
        for sample in samples_of(record, self._rewards):
            step = sample.step
            if step is not None and step not in [*self._seen][-1:]:
                if step in self._seen:
                    del self._seen[step]
                    yield Restart("step trained again", step)
                self._seen[step] = None
            yield sample


def samples_of(
    columns: Fields, rewards: RewardSum, step: int | None = None
) -> Iterator[Sample]:
    """Yield the samples of a table.

    Args:
        columns: Its columns by name.
        rewards: Sums the rewards of each.
        step: Their step if the table states none.
    """
    length = _length(columns)
    kept = {
        name: column
        for name, column in columns.items()
        if isinstance(column, list) and len(column) == length
    }
    for at in range(length):
        record = {name: column[at] for name, column in kept.items()}
        yield from filter(None, [rewards.sample(record, step)])


def _named(columns: Fields) -> Fields:
    """Return columns under the names that most write."""
    if _ROLLS.keys() <= columns.keys():
        return {_ROLLS.get(name, name): column for name, column in columns.items()}
    return columns


def _length(columns: Fields) -> int:
    """Return the number of samples in a table, 0 if it is none: prompt and completion of one
    sample may be lists as well, of messages.
    """
    texts = [columns.get(name) or () for name in _TEXTS]
    if any(not isinstance(one, list) or isinstance(one[0], dict) for one in texts):
        return 0
    least, most = sorted(map(len, texts))
    return least if least == most else 0


def table_step(name: str) -> int | None:
    """Return the step in the name of a table of completions, None if it is none."""
    found = _PARQUET.fullmatch(name)
    return int(found[1]) if found else None


class _SamplesReader(WholeReader):
    """Waits for all samples of a file, and sums their rewards."""

    largest = LARGEST

    def __init__(self, path: Path, rewards: RewardSum | None = None) -> None:
        """Begin with nothing; the sums may be shared by the files of several steps."""
        super().__init__(path)
        self._rewards = rewards or RewardSum(path=path)

    @property
    def note(self) -> str | None:
        """Say how rewards were summed."""
        return self._rewards.note


class ParquetReader(_SamplesReader):
    """Waits for the whole file, since what is in it stands at its end."""

    ends = (_MAGIC,)
    incomplete = "not complete: still being written, or cut off"
    _missing = False

    @property
    def note(self) -> str | None:
        """Return how rewards were added, or what is missing to read the file."""
        return MISSING if self._missing else super().note

    def parse(self, data: bytes) -> Iterator[Record]:
        """Yield the samples of a whole file; none where there is nothing to read it with."""
        if len(data) <= 2 * len(_MAGIC):
            raise ValueError(self.incomplete)
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError:
            self._missing = True
            return
        try:
            columns = pq.read_table(pa.BufferReader(data)).to_pydict()
        except (pa.ArrowException, OSError, ValueError) as error:
            yield from self._complain(f"damaged: {one_line(str(error), 120)}")
            return
        yield from samples_of(columns, self._rewards, table_step(self._path.name))


def _is_of_samples(path: Path, head: bytes) -> bool:
    """Return True if a table's columns are those of samples, or come only after the data."""
    if not path.name.endswith(".table.json") or not head.lstrip().startswith(b"{"):
        return False
    found = _COLUMNS.search(head)
    try:
        columns = loads(found[1]) if found else ["prompt", "response"]
    except ValueError:
        return False
    records = _records(columns, [""] * len(columns))
    return any(map(read_sample, records))


class TableReader(_SamplesReader):
    """Waits for the whole table: JSON is complete when it can be read."""

    ends = (b"}",)

    def parse(self, data: bytes) -> Iterator[Record]:
        """Yield the samples of a whole table that no earlier one holds."""
        columns, rows = _parts(data)
        if columns is None:
            yield Unreadable(1, 'no table: "columns" or "data" is missing', "")
            return
        key, step = _table_at(self._path)
        known = _rows_before(self._path, key, step)
        validation = is_validation(key)
        found = (
            self._rewards.sample(record, step, validation=validation)
            for row in further_rows(rows, known)
            for record in (_records(columns, row) if isinstance(row, list) else ())
        )
        yield from islice(filter(None, found), _SAMPLES_A_TABLE)


def _parts(data: bytes) -> tuple[list[Any] | None, list[Any]]:
    """Return the columns of a table, None where it is none, and its rows.

    Raises:
        ValueError: It is no JSON.
    """
    table = loads(data)
    table = table if isinstance(table, dict) else {}
    columns, rows = table.get("columns"), table.get("data")
    if isinstance(columns, list) and isinstance(rows, list):
        return columns, rows
    return None, []


def _records(columns: list[Any], row: list[Any]) -> Iterator[Fields]:
    """Yield the records of a row: one, or one for each number of its columns."""
    whole = dict(zip(map(plain_field, map(str, columns)), row, strict=False))
    plain: Fields = {}
    numbered: dict[str, Fields] = {}
    for column, value in whole.items():
        found = _NUMBERED.match(column)
        if not found:
            plain[column] = value
        else:
            numbered.setdefault(found["number"], {})[found["field"]] = value
    if numbered and not read_sample(plain):
        yield from (plain | fields for fields in numbered.values())
    else:
        yield whole


def _table_at(path: Path) -> tuple[str, int | None]:
    """Return the name of a table, with the folders below `table`, and W&B's step."""
    _, inside, below = path.as_posix().rpartition("/table/")
    place = below if inside else path.name
    found = _NAME.fullmatch(place)
    if not found:
        return place.partition(".")[0], None
    return found["key"], integer(found["step"])


def _rows_before(path: Path, key: str, step: int | None) -> list[Any]:
    """Return the rows of the table of the same name before one: a growing one is written whole."""
    before: dict[int, Path] = {}
    for one in path.parent.glob("*.table.json"):
        other, at = _table_at(one)
        if other == key and at is not None and step is not None and at < step:
            before[at] = one
    with suppress(OSError, ValueError):
        if before:
            with opened(before[max(before)]) as file:
                return _parts(file.read(LARGEST))[1]
    return []


def _is_of_records(_path: Path, head: bytes) -> bool:
    """Return whether the first object is a sample, of no tutorial's."""
    first = first_object(head)
    return first is not None and "scope" not in first and _tells(first)


def _is_document(path: Path, head: bytes) -> bool:
    """Return whether a document has a list whose first record is a sample."""
    document = path.suffix.lower() == ".json" and not is_a_line(head)
    return document and any(map(_tells, first_records(head, 1)))


def _tells(record: Fields) -> bool:
    """Return whether a record is a sample with a score, or with an answer at a step. Texts without
    either are what a training is fed with.
    """
    sample = RewardSum().sample(plain_record(record), None)
    if not sample or sample.score is not None:
        return sample is not None
    return bool(sample.response) and sample.step is not None


class SamplesDocument(WholeReader):
    """Reads a document with samples: its list, or the first list in it."""

    largest = LARGEST

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._decoder = SampleDecoder(path)

    @property
    def note(self) -> str | None:
        """Say that it is an evaluation, and how rewards were added."""
        return self._decoder.note

    def parse(self, data: bytes) -> Iterator[Sample]:
        """Yield the samples of a document."""
        lists = (records for _, records in record_lists(loads(data)))
        records = next((one for one in lists if any(map(_tells, one[:1]))), [])
        yield from filter(None, map(self._decoder.sample, records))


class SampleDecoder(JsonDecoder):
    """Decodes one sample a line."""

    def __init__(self, path: Path) -> None:
        self._rewards = RewardSum(path=path)
        self._count = 0
        """Samples without a step."""
        self._scores: list[float] = []
        """Those of them that have one."""

    @property
    def note(self) -> str | None:
        """Say that it is an evaluation with its mean, and how rewards were added."""
        if not self._count:
            return self._rewards.note
        said = f"an evaluation of {counted(self._count, 'sample')}"
        if self._scores:
            said += f", mean score {sum(self._scores) / len(self._scores):.4g}"
        return joined_notes(f"{said}: they state no step", self._rewards.note)

    def read(self, record: Fields) -> Iterable[Item]:
        """Return the sample of one object."""
        sample = self.sample(record)
        if not sample:
            raise ValueError("no prompt and response")
        return (sample,)

    def sample(self, record: Fields) -> Sample | None:
        """Return the sample of a record; one without a step is an evaluation's."""
        found = self._rewards.sample(plain_record(record), None)
        if not found or found.step is not None:
            return found
        self._count += 1
        if found.score is not None and found.score == found.score:
            self._scores.append(found.score)
        return found._replace(step=0, validation=True)


generations = FileFormat(
    "EasyR1 generations",
    7,
    lambda _, head: head.startswith(b"[prompt] ") and b"\n[output] " in head,
    lambda _: LineReader(ConsoleDecoder()),
)
"""Its `generations.log`, the samples of its validations as it prints them, without their steps
(verl/utils/logger/gen_logger.py:52-57).
"""
sample_documents = FileFormat(SAMPLES, 7, _is_document, SamplesDocument)
sample_records = FileFormat(
    SAMPLES, 7, _is_of_records, lambda path: LineReader(SampleDecoder(path))
)
completions = FileFormat(
    "completions", 7, _has_columns, lambda path: LineReader(CompletionsDecoder(path))
)
parquet = FileFormat(
    "TRL completions",
    7,
    lambda path, head: (
        table_step(path.name) is not None and _MAGIC.startswith(head[:4])
    ),
    ParquetReader,
)
"""Known by a name of TRL's and a beginning of Parquet's: no data set."""
wandb_tables = FileFormat("W&B table", 4, _is_of_samples, TableReader)
"""The figures of all samples (7) go before those of the few that trainers show (4)."""

"""Blocks of metrics: a line states the step, then comes what belongs to it, in one of many shapes.

Tables of any width and lines, `name: value` with or without bullets, YAML by indentation, dicts and
JSON objects over one line or many, `a 1 | b 2`. How a trainer states the step is data, see
`verl_tui.trainers`; the shape of what follows is recognised.
"""

from __future__ import annotations

import re
from base64 import b64decode
from struct import unpack
from typing import TYPE_CHECKING, Any

from verl_tui.patterns import pattern
from verl_tui.sources.fields.jsonl import flatten, loads
from verl_tui.sources.fields.rewards import RewardSum
from verl_tui.sources.fields.row_batcher import MetricRow
from verl_tui.sources.formats.console.dicts import read_dict
from verl_tui.sources.formats.console.events import any_of
from verl_tui.sources.formats.console.prefixes import parted
from verl_tui.text import strip_ansi
from verl_tui.trainers import trainers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from verl_tui.records import Sample
    from verl_tui.trainers import Form

FORMS = tuple(form for one in trainers() for form in one.forms)
WORDS = tuple(form.word.decode() for form in FORMS)
"""Every line that states a step contains one of these."""
_MAY_BEGIN = any_of(WORDS)
_BEFORE = 8
"""Lines that may stand between the step and its metrics, such as a title."""
_LONGEST = 2000
"""Lines without a metric after which a block is given up."""
_LARGEST = 256 * 1024
"""Bytes after which an object over many lines is given up."""
_WRITTEN = (
    r"(?P<value>[-+]?(?:\d[\d,]{0,20}(?:\.\d{0,20})?|\.\d{1,20})(?:[eE][-+]?\d{1,3})?"
    r"|nan|-?inf)"
)
_VALUE = (
    rf"['\"]?{_WRITTEN}['\"]?"
    r"(?: ?[A-Za-z%][\w/%.]{0,20})?(?: ?\([^()]{0,40}\))?,?"
)
"""A number, its unit, and a remark in parentheses."""
_NUMBER = pattern(_VALUE)
_NAME = r"(?P<name>[A-Za-z][^:=|│┃]{0,200}?)"
_STATED = pattern(rf"(?:[•*–▪◦-] )?['\"]?{_NAME}['\"]?\s{{0,40}}[:=]\s{{0,40}}{_VALUE}")
"""`name: value` as a line of its own."""
_LISTED = pattern(
    r"[\s,;(\[]{0,20}(?P<name>[A-Za-z][\w/.@-]{0,100})(?:\s{0,20}[:=]\s{0,20}|\s)"
    rf"{_WRITTEN}(?:%|[a-z]{{1,3}})?(?=[\s,;)\]]|$)"
)
"""One of several in a line: `loss=0.1, kl 0.2`."""
_FIELD = pattern(rf"{_NAME}(?:\s{{0,40}}[:=]\s{{0,40}}|\s{{1,40}}){_VALUE}")
"""`name value` between two of others."""
_HEADING = pattern(
    r"['\"]?([\w/.-]{1,100})['\"]?:( !!python/object/apply:numpy.{1,40}\.scalar)?"
)
_FLOAT64 = pattern(r"[A-Za-z0-9+/]{11}=")
_REDUCER = pattern(r"@(?:sum|mean|max|min)$")
"""What ROLL writes behind a name: how figures of its workers were made one."""
_EVALUATION = pattern(r"eval")
_OBJECTS = (b"{'", b'{"', b'[{"')
_BORDERS = pattern(r"[│┃║|]")
_NOTHING = re.match(b"", b"")


class BlockReader:
    """Reads the blocks of one console."""

    def __init__(self, guessed: Form | None = None) -> None:
        """Read nothing yet; `guessed` says how a trainer that nobody has described states steps."""
        self.guessed = guessed
        self.trainer: str | None = None
        """Whose blocks they are, None before the first."""
        self.unread = 0
        """Objects that could not be read, and lists in those that could."""
        self.behind = b""
        """What another process printed behind the last object."""
        self._rewards = RewardSum()
        self._reached: int | None = None
        """The step of the last row."""
        self._epochs = 0
        """Epochs before this one, where a trainer counts steps anew in each."""
        self._rollout: int | None = None
        """The last step that a line stated as that of a rollout."""
        self._close()

    def _close(self) -> None:
        self._form: Form | None = None
        self._step: int | None = None
        self._is_update = False
        """True if several blocks of one step are averaged."""
        self._values: dict[str, float] = {}
        self._samples: list[Sample] = []
        self._object = b""
        """The beginning of an object that goes on."""
        self._headings: list[tuple[int, str]] = []
        """The names above the next line, with their indentation."""
        self._section = ""
        """What a table's first column says of all metrics in its row; open-instruct's says `other`
        where there is nothing to say.
        """
        self._scalar = ""
        """The metric whose value follows in NumPy's own bytes."""
        self._lines = 0
        """Lines without a metric since the block began, or within an object all lines."""

    @property
    def begun(self) -> bool:
        """True if the next line may belong to a block, whatever it says."""
        return self._form is not None

    def feed(self, part: bytes) -> list[MetricRow | Sample] | None:
        """Take a line; return what it completes, None if it belongs to no block."""
        found = self._begins(part)
        if found is not None:
            rows = self.held()
            self._close()
            self._form, match = found
            self.trainer = self._form.trainer
            self._note_step(match.groupdict())
            behind = part[match.end() :]
            if behind.strip() and self._takes(behind) and not self._object:
                rows += self.held()
                if behind.startswith(_OBJECTS):
                    self._close()
            return rows
        if self._form is None:
            return None
        lead = self._form.row.match(part) if self._form.row is not None else _NOTHING
        taken = lead is not None and self._takes(part[lead.end() :])
        return [] if taken else self._ended_by(part)

    def _note_step(self, stated: Mapping[str, bytes | None]) -> None:
        """Note the step, or the epoch, that a line states."""
        if epoch := stated.get("epoch"):
            self._epochs = int(epoch) - 1
        if step := stated.get("step"):
            self._step = int(step) + self._epochs * int(stated.get("each") or 0)
        if stated.get("rollout"):
            self._rollout = self._step
        self._is_update = bool(stated.get("update"))
        if self._is_update and self._rollout is not None:
            self._step = self._rollout

    def held(self) -> list[MetricRow | Sample]:
        """Return what was read so far, the metrics as a row."""
        held: list[MetricRow | Sample] = [*self._samples]
        values, self._samples, self._values = self._values, [], {}
        if self._form is not None and self._form.key:
            # Evaluations have none, and belong to the step before; nothing else does, such as the
            # beginning of a block at a log's end.
            stated = values.get(self._form.key)
            if stated is None and all(map(_EVALUATION.match, values)):
                stated = self._reached
            self._step = int(stated) if stated is not None else None
        if values and self._step is not None:
            self._reached = self._step
            named = {_REDUCER.sub("", name): value for name, value in values.items()}
            held.append(MetricRow.of(self._step, named, mean=self._is_update))
        return held

    def drop(self, step: int) -> None:
        """Forget the open block if it is of a step that a step line has stated, too."""
        if step == self._step:
            self._close()

    def _begins(self, part: bytes) -> tuple[Form, re.Match[bytes]] | None:
        """Return which trainer states a step in a line, and where."""
        forms: Sequence[Form] = (self.guessed,) if self.guessed is not None else ()
        if not forms and _MAY_BEGIN.search(part) is not None:
            forms = FORMS
        for form in forms:
            if form.word in part and (found := form.step.search(part)) is not None:
                return form, found
        return None

    def _takes(self, part: bytes) -> bool:
        """Take the metrics of a line; return whether it has any."""
        if self._object or part.lstrip().startswith(_OBJECTS):
            return self._takes_object(part)
        text = part.decode("utf-8", "replace")
        found = {} if self._scalar else dict(self._pairs(text))
        if not found:
            return self._takes_yaml(text)
        above = self._above(text) if len(found) == 1 else ""
        self._values |= {above + name: value for name, value in found.items()}
        return True

    def _pairs(self, text: str) -> Iterator[tuple[str, float]]:
        """Yield the metrics of a line: cells of a table, fields, or one `name: value`."""
        cells = [cell.strip() for cell in _BORDERS.split(text)]
        if len(cells) == 1:
            found = _STATED.fullmatch(cells[0])
            yield from _listed(cells[0]) if found is None else [_pair(found)]
            return
        name = ""
        for cell in cells:
            if number := _NUMBER.fullmatch(cell):
                if name:
                    yield name, _pair(number)[1]
                name = ""
            elif (found := _FIELD.fullmatch(cell)) is not None:
                section, apart, own = found["name"].rpartition("  ")
                if apart:
                    self._section = f"{section.strip()}/".replace("other/", "")
                yield self._section + own.strip(), _pair(found)[1]
            else:
                name = cell

    def _takes_object(self, part: bytes) -> bool:
        written, self._object = (self._object + part).strip(), b""
        whole, _, behind = (
            read_dict(written) if written.startswith(b"{'") else ({}, 0, b"")
        )
        if whole:
            self.behind = behind
            numbers = {
                name: value for name, value in whole.items() if value is not None
            }
            self._values |= numbers
            return bool(numbers)
        if not written.endswith((b"}", b"}]")) and len(written) <= _LARGEST:
            self._object = written + b" "
            return True
        found = _from_json(written)
        self.unread += found is None
        if isinstance(found, list):
            samples = (self._rewards.sample(one, self._step) for one in found)
            self._samples += [one for one in samples if one is not None]
        else:
            self._values |= found or {}
        return bool(found)

    def _takes_yaml(self, text: str) -> bool:
        """Take a name above others, or a float64 of NumPy, whose number stands in the last line."""
        within, written = self._scalar, text.strip()
        found = _HEADING.fullmatch(written)
        if within and _FLOAT64.fullmatch(written):
            self._values[within] = unpack("<d", b64decode(written))[0]
            self._scalar = ""
        elif found is not None and not within:
            above = self._above(text)
            if found[2]:
                self._scalar = above + found[1]
            else:
                self._headings.append((_indentation(text), found[1]))
        return found is not None or bool(within)

    def _above(self, text: str) -> str:
        """Return the names under which a line stands by its indentation, each with a slash."""
        while self._headings and self._headings[-1][0] >= _indentation(text):
            self._headings.pop()
        return "".join(f"{name}/" for _, name in self._headings)

    def _ended_by(self, part: bytes) -> list[MetricRow | Sample] | None:
        """Take a line without metrics; return what the block holds where it ends here."""
        text = part.decode("utf-8", "replace").strip()
        if text and not any(map(str.isalnum, text)):
            return []  # it only draws, as the border between two rows of a table
        self._lines += 1
        if self._form is not None and self._form.row is not None:
            if self._lines > _LONGEST:
                self._close()
            return self.held() or None
        rows = None
        if self._values or self._lines > _BEFORE:
            rows = self.held() or None
            self._close()
        return rows


def _listed(text: str) -> Iterator[tuple[str, float]]:
    """Yield the metrics of a line that holds several and nothing else."""
    found = []
    at = 0
    while (one := _LISTED.match(text, at)) is not None:
        found.append(_pair(one))
        at = one.end()
    if len(found) > 1 and not any(map(str.isalnum, text[at:])):
        yield from found


def _pair(found: re.Match[str]) -> tuple[str, float]:
    """Return the name and the number that were found, where there is a name."""
    name = found.groupdict().get("name", "")
    return name.strip(), float(found["value"].replace(",", ""))


def _indentation(text: str) -> int:
    return len(text) - len(text.lstrip())


def _from_json(written: bytes) -> Mapping[str, float] | list[dict[str, Any]] | None:
    """Return the numbers of an object, or the objects of a list; None if it is none."""
    try:
        found = loads(written)
    except (ValueError, RecursionError):
        return None
    if isinstance(found, list):
        return [one for one in found if isinstance(one, dict)]
    metrics = found.get("metrics")
    flat = flatten(metrics if isinstance(metrics, dict) else found)
    return {
        key: float(one) for key, one in flat.items() if isinstance(one, int | float)
    }


def finds(text: bytes) -> bool:
    """Return whether a text that a console may begin with has a block with metrics."""
    if not any(form.word in text for form in FORMS):
        return False
    reader = BlockReader()
    lines = (parted(strip_ansi(line)).text for line in text.splitlines())
    return any(map(reader.feed, lines)) or bool(reader.held())

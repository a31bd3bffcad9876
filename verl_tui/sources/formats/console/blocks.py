"""Blocks of metrics: a line states the step, then comes what belongs to it, in one of many shapes.

Tables of any width and lines, `name: value` with or without bullets, YAML by indentation, dicts and
JSON objects over one line or many, `a 1 | b 2`. How a trainer states the step is data, see
`verl_tui.trainers`; the shape of what follows is recognised.
"""

from __future__ import annotations

from base64 import b64decode
from struct import unpack
from typing import TYPE_CHECKING

from verl_tui.patterns import pattern
from verl_tui.records import Progress
from verl_tui.sources.fields.jsonl import flatten, loads, numbers_in
from verl_tui.sources.fields.row_batcher import Item, MetricRow
from verl_tui.sources.fields.sample import RewardSum
from verl_tui.sources.formats.console.dicts import read_dict
from verl_tui.sources.formats.console.line_parts import any_of, parted
from verl_tui.text import decoded, strip_ansi
from verl_tui.trainers import Form, trainers

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator

    from verl_tui.records import Sample

FORMS = tuple(form for one in trainers() for form in one.console)
WORDS = tuple(form.word.decode() for form in FORMS)
"""Every line that states a step contains one of these."""
MAY_BEGIN = any_of(WORDS)
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
    r"(?: ?(?:\+/?-|±) ?[\d.]{1,20})?(?: ?[A-Za-z%][\w/%.]{0,20})?(?: ?\([^()]{0,40}\))?[,:]?"
)
"""A number, its spread and unit, and a remark in parentheses."""
_NUMBER = pattern(_VALUE)
_FIELD = pattern(
    r"(?:[•*–▪◦-] )?['\"]?(?P<name>[A-Za-z][^:=|│┃]{0,200}?)['\"]?"
    rf"(?:\s{{0,40}}(?P<sign>[:=])\s{{0,40}}|\s{{1,40}}){_VALUE}"
)
"""A name and its value, between two of others also without a sign."""
_LISTED = pattern(
    r"[\s,;(\[]{0,20}(?P<name>[A-Za-z][\w/.@-]{0,100})(?:\s{0,20}[:=]\s{0,20}|\s)"
    rf"{_WRITTEN}(?:%|[a-z]{{1,3}})?(?=[\s,;)\]]|$)"
)
"""One of several in a line: `loss=0.1, kl 0.2`."""
_HEADING = pattern(
    r"['\"]?([\w/.-]{1,100})['\"]?:( !!python/object/apply:numpy.{1,40}\.scalar)?"
)
_FLOAT64 = pattern(r"[A-Za-z0-9+/]{11}=")
_REDUCER = pattern(r"@(?:sum|mean|max|min)$")
"""What ROLL writes after a name: how figures of its workers were made one."""
_OBJECTS = (b"{'", b'{"', b'[{"')
_BORDERS = pattern(r"[│┃║|]")


class BlockReader:
    """Reads the blocks of one console."""

    def __init__(self, guessed: Form | None = None) -> None:
        """Read nothing yet; `guessed` says how a trainer that nobody has described states steps."""
        self.guessed = guessed
        self.trainer = ""
        """Whose blocks they are."""
        self.unread = 0
        """Objects that could not be read, and lists in those that could."""
        self.behind = b""
        """What another process printed after the last object."""
        self._rewards = RewardSum()
        self._reached: int | None = None
        """The step of the last row."""
        self._epochs, self._passes = 0, 1
        """Epochs before this one, and all, where a trainer counts steps from 1 in each."""
        self._total = 0
        """Steps of the training, 0 where no line states them."""
        self._rollout: int | None = None
        """The last step that a line stated as that of a rollout."""
        self._close()

    def _close(self) -> None:
        self.form: Form | None = None
        """How its step is stated; None where no line may belong to a block, whatever it says."""
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
        """What a table's first column says of all metrics in its row."""
        self._scalar = ""
        """The metric whose value follows in NumPy's own bytes."""
        self._lines = 0
        """Lines without a metric since the block began."""

    def feed(self, part: bytes) -> list[Item] | None:
        """Take a line; return what it completes, None if it belongs to no block."""
        forms = FORMS if MAY_BEGIN.search(part) else ()
        for form in (self.guessed,) if self.guessed else forms:
            if form.word in part and (found := form.step.search(part)):
                return self._begin(form, found)
        if not self.form:
            return None
        lead = self.form.row.match(part)
        if lead and self._read_metrics(part[lead.end() :]):
            return []
        return self._ended_by(part, self.form)

    def _ended_by(self, part: bytes, form: Form) -> list[Item] | None:
        """Take a line without metrics; return what the block holds where it ends here."""
        if part and not any(map(str.isalnum, decoded(part))):
            return []  # it only draws, as the border between two rows of a table
        self._lines += 1
        is_open = bool(form.row.pattern)
        most = _LONGEST if is_open else 0 if self._values else _BEFORE
        rows = self.held() if is_open or self._lines > most else []
        if self._lines > most:
            self._close()
        return rows or None

    def _begin(self, form: Form, found: re.Match[bytes]) -> list[Item]:
        """Begin a block at the line that states its step, or the epoch."""
        rows = self.held()
        self._close()
        self.form, self.trainer = form, form.trainer
        self._note_step(found.groupdict())
        behind = found.string[found.end() :].lstrip()
        is_object = behind.startswith(_OBJECTS)
        if not is_object:  # commas may stand between metrics, too
            behind = b"|" + behind.replace(b", ", b"|")
        if self._read_metrics(behind) and not self._object:
            rows += self.held()
            if is_object:
                self._close()
        return rows

    def _note_step(self, stated: dict[str, bytes | None]) -> None:
        """Note the step, or the epoch, that a line states."""
        total = int(stated.get("total") or 0)
        if epoch := stated.get("epoch"):
            self._epochs, self._passes = int(epoch) - 1, total
        if step := stated.get("step"):
            self._step = int(step) + self._epochs * total
            # Of several epochs the last one may be cut short.
            self._total = total * (self._passes == 1)
        if stated.get("rollout"):
            self._rollout = self._step
        self._is_update = bool(stated.get("update"))
        if self._is_update and self._rollout is not None:
            self._step = self._rollout

    def held(self) -> list[Item]:
        """Return what was read so far, the metrics as a row."""
        held: list[Item] = [*self._samples]
        values, self._samples, self._values = self._values, [], {}
        if self.form and self.form.key:
            # Evaluations have none, and belong to the step before; nothing else does, such as the
            # beginning of a block at a log's end.
            is_evaluation = all(name.startswith("eval") for name in values)
            stated = values.get(self.form.key, self._reached if is_evaluation else None)
            self._step = int(stated) if stated is not None else None
        if values and self._step is not None:
            self._reached = self._step
            named = {_REDUCER.sub("", name): value for name, value in values.items()}
            held.append(MetricRow.of(self._step, named, mean=self._is_update))
            if self._total:
                held.append(Progress(None, self._total))
        return held

    def drop(self, step: int) -> None:
        """Forget the open block if it is of a step that a step line has stated, too."""
        if step == self._step:
            self._close()

    def _read_metrics(self, part: bytes) -> bool:
        """Read the metrics of a line; return whether it has any."""
        if self._object or part.lstrip().startswith(_OBJECTS):
            return self._read_object(part)
        text = decoded(part)
        found = {} if self._scalar else dict(self._pairs(text))
        if not found:
            return self._read_yaml(text)
        above = self._above(text) if len(found) == 1 else ""
        self._values |= {above + name: value for name, value in found.items()}
        return True

    def _pairs(self, text: str) -> Iterator[tuple[str, float]]:
        """Yield the metrics of a line: cells of a table, fields, or one `name: value`."""
        cells = _BORDERS.split(text)
        name = ""
        for cell in map(str.strip, cells):
            found = _FIELD.fullmatch(cell)
            if number := _NUMBER.fullmatch(cell):
                if name:
                    yield name, _value(number)
                name = ""
            elif not found or (len(cells) == 1 and not found["sign"]):
                name = cell
            else:
                section, apart, own = found["name"].rpartition("  ")
                if apart and len(cells) > 1:
                    self._section = f"{section.strip()}/".replace("other/", "")
                yield self._section + own.strip(), _value(found)
        yield from _listed(name)

    def _read_object(self, part: bytes) -> bool:
        written, self._object = (self._object + part).strip(), b""
        if written.startswith(b"{'"):
            whole, _, behind = read_dict(written)
            if whole:
                self.behind = behind
                numbers = {key: one for key, one in whole.items() if one is not None}
                self._values |= numbers
                return bool(numbers)
        if not written.endswith((b"}", b"}]")) and len(written) <= _LARGEST:
            self._object = written + b" "
            return True
        return self._read_json(written)

    def _read_json(self, written: bytes) -> bool:
        try:
            found = loads(written)
        except (ValueError, RecursionError):
            self.unread += 1
            return False
        if isinstance(found, list):
            objects = (one for one in found if isinstance(one, dict))
            read = (self._rewards.sample(one, self._step) for one in objects)
            self._samples += filter(None, read)
            return bool(found)
        below = found.get("metrics")  # where all of them may be
        metrics = numbers_in(flatten(below if isinstance(below, dict) else found))
        self._values |= metrics
        return bool(metrics)

    def _read_yaml(self, text: str) -> bool:
        """Read a name above others, or a float64 of NumPy, whose number stands in the last line."""
        within, written = self._scalar, text.strip()
        if within:
            if _FLOAT64.fullmatch(written):
                self._values[within] = unpack("<d", b64decode(written))[0]
                self._scalar = ""
            return True
        found = _HEADING.fullmatch(written)
        if not found:
            return False
        above = self._above(text)
        if found[2]:
            self._scalar = above + found[1]
        else:
            self._headings.append((_indentation(text), found[1]))
        return True

    def _above(self, text: str) -> str:
        """Return the names under which a line stands by its indentation, each with a slash."""
        while self._headings and self._headings[-1][0] >= _indentation(text):
            self._headings.pop()
        return "".join(f"{name}/" for _, name in self._headings)


def _listed(text: str) -> Iterator[tuple[str, float]]:
    """Yield the metrics of a line that holds several and nothing else."""
    found = []
    at = 0
    while one := _LISTED.match(text, at):
        found.append((one["name"], _value(one)))
        at = one.end()
    if len(found) > 1 and not any(map(str.isalnum, text[at:])):
        yield from found


def _value(found: re.Match[str]) -> float:
    return float(found["value"].replace(",", ""))


def _indentation(text: str) -> int:
    return len(text) - len(text.lstrip())


def finds(text: bytes) -> bool:
    """Return whether a text that a console may begin with has a block with metrics."""
    if not MAY_BEGIN.search(text):
        return False
    reader = BlockReader()
    return any(map(reader.feed, plain_lines(text))) or bool(reader.held())


def plain_lines(text: bytes) -> Iterator[bytes]:
    """Yield the lines of a text without colours, and without what was put before them."""
    return (parted(strip_ansi(line)).text for line in text.splitlines())

"""verl's console log: `step:N - key:value - …` among everything else a training prints; other
trainers' consoles too.

Read is what carries meaning wherever it stands: step lines glued to progress bars, behind Ray's
prefixes and colours, in every number format since v0.1 (verl/utils/logger/aggregate_logger.py). The
rest is noise, not an error. What others print is read by `verl_tui.sources.formats.console.dicts`.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import orjson

from verl_tui.records import EventKind, Progress, Pulse
from verl_tui.sources.fields.row_batcher import MetricRow, joined
from verl_tui.sources.formats.console import dicts as console_dicts
from verl_tui.sources.formats.console import engine_addresses as console_engines
from verl_tui.sources.formats.console import events as console_events
from verl_tui.sources.formats.console import sample_blocks as console_blocks
from verl_tui.sources.formats.console import settings_reader as console_settings
from verl_tui.sources.formats.console import wandb_runs as console_wandb
from verl_tui.sources.formats.console.completion_tables import TableBlock
from verl_tui.sources.formats.console.dicts import DictReader, elapsed, hinted
from verl_tui.sources.formats.console.engine_addresses import EngineReader
from verl_tui.sources.formats.console.events import EventReader
from verl_tui.sources.formats.console.sample_blocks import SampleBlock
from verl_tui.sources.formats.console.settings_reader import SettingsReader
from verl_tui.sources.formats.console.word_search import any_of
from verl_tui.sources.formats.lines import LineReader
from verl_tui.sources.formats.trainer_state import FROM_ZERO, FROM_ZERO_NOTE
from verl_tui.text import one_line, safe, strip_ansi
from verl_tui.times import parse_time

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from verl_tui.records import Record

name = "verl console"
rank = 3
anchor = True

STEP = re.compile(rb"(?<![\w:])step:(\d{1,15}) - (.*)$", re.DOTALL)
_PIECE = re.compile(
    r"^(?P<key>.+?):(?:np\.\w+\(|tensor\()?(?P<value>[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|\.\d+|nan|inf)|True|False)\)?$"
)
REPEATED = re.compile(rb"\s*\[repeated \d+x across cluster\].*$")
PREFIX = re.compile(rb"^\s?(?:\((?:[^()\s]+ )?(?:pid=[^()]*|raylet[^()]*)\)|\[rank\d+\]:) ?")
"""Ray's `(TaskRunner pid=12, ip=10.0.0.2) `, torchrun's `[rank0]: `."""
_BAR = re.compile(
    rb"(Training Progress|(?:Epoch |Episode \[)(\d{1,9})/(\d{1,9})\]?):"
    rb"\s*\d{1,3}%\|[^|]{0,1000}\|\s{0,40}(\d{1,9})/(\d{1,9}) \["
)
_WHOLE_BAR = re.compile(
    rb"\d{1,3}%\|[^|]{0,1000}\|\s{0,40}[^\s/]{1,30}/\S{1,30} \[[^\]\r\n]{0,1000}\]"
)
"""A bar with what tqdm says behind it; bounded, as a line of millions of bars may lack every
end.
"""
_CLEARED = 10
"""Spaces at least that clear a bar."""
_LAST = {EventKind.FINISHED, EventKind.EXITED, EventKind.STOPPED, EventKind.FATAL}
_ENDS = {*_LAST, EventKind.TRACEBACK}
_STAMP = re.compile(rb"20\d\d-\d\d-\d\d[ T]\d\d:\d\d:\d\d")
_COUNTERS = re.compile(
    rb"[.,\d]*\]?:? ?(?P<said>(?:[a-z_]{3,20}: \d{1,12}, ){1,8}[a-z_]{3,20}: \d{1,12})\s*$"
)
"""What verl's trainer of 0.9 counts once a minute while it waits (`ppo/v1/replay_buffer.py`)."""
_NEAR = 90
"""Bytes at the beginning of a line among which its time stands."""
_TENS = len("2026-11-22 11:31:2")
_TOTAL = re.compile(rb"Total (?:training steps:|optimization steps =) ([\d,]{1,15})(?!\d)")
"""verl's trainers and the Trainer of transformers."""
_PER_EPOCH = re.compile(rb"Size of train dataloader: (\d{1,15})(?!\d)")
_BEGUN = re.compile(rb"^epoch \d+, step (\d{1,15})\s*$")
_SURE = 5
"""Pieces that make a step line certain even in the middle of a model's answer; models do imitate
step lines.
"""
_KNOWN = (b"step:", b"(TaskRunner", b"(main_task", b"(WorkerDict", b"Training Progress", b"verl.", b"actor_rollout_ref",
          b"Started a local Ray instance", b"Total training steps", b"validation generation end")  # fmt: skip
_WORTH_A_LOOK = any_of(
    (*console_events.WORDS, *console_settings.WORDS, *console_blocks.WORDS, *console_dicts.WORDS,
     *console_engines.WORDS, "%|", "Total training", "Total optimization", "Size of train", "epoch ")
)  # fmt: skip
"""Finds the lines that say anything, but for those of samples and tables, and for times: most are
noise.
"""
_ENOUGH = 3
"""Records by which a text is a console whatever it is called; documents quote one."""


def matches(path: Path, head: bytes) -> bool:
    """Tell whether the beginning of a text file looks like a training's console."""
    return (any(mark in head for mark in _KNOWN) or hinted(head)) and b"\0" not in head[:1024]


def is_sure(head: bytes) -> bool:
    """Tell whether a text holds so many records that it is a console, whatever it is called."""
    found = 0
    for line in head.split(b"\n"):
        step = STEP.search(line) if b"step:" in line else None
        found += line.count(b" - ") >= _SURE if step is not None else b"{'" in line and hinted(line)
    return found >= _ENOUGH


def reader(path: Path) -> LineReader:
    """Return a reader for one file."""
    return LineReader(ConsoleDecoder())


class ConsoleDecoder:
    """Decodes a console log line by line."""

    def __init__(self) -> None:
        self._schemas: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._events = EventReader()
        self._engines = EngineReader()
        self._settings = SettingsReader()
        self._sample = SampleBlock()
        self._table = TableBlock()
        self._dicts = DictReader()
        self._reported: dict[str, None] = {}
        self._step: int | None = None
        self._from_zero = False
        """Whether steps are counted from 0 where other files of the run count from 1."""
        self._told = b""
        """The time last told, to ten seconds: lines come by the thousand."""
        self._number = 0
        self._prefix = b""
        self._blank = False
        """Whether a bar seems to have been cleared."""

    @property
    def note(self) -> str | None:
        """Return what is to be said of steps that are estimated or shifted, and of rewards that
        were added up.
        """
        counted = self._dicts.counted
        said = f"the steps of {counted:,} records are estimated: the console states none, they were counted"
        return joined(
            said if counted else None, FROM_ZERO_NOTE if self._from_zero else None, self._table.note
        )

    def restart(self) -> Sequence[MetricRow | Record]:
        """Forget everything but the key names."""
        schemas = self._schemas
        ConsoleDecoder.__init__(self)
        self._schemas = schemas
        return ()

    def last(self, line: bytes, number: int) -> Sequence[MetricRow | Record] | None:
        """Return the records of a line without an end; a step line only where no key is missing."""
        line = strip_ansi(line)
        found = STEP.search(line)
        if found is not None:
            row = self._row(found, sure=False)
            if row is None or row.keys not in self._schemas.values():
                return None
        elif b"{'" in line and not line.rstrip().endswith(b"}"):
            return None
        return self.decode(line, number)

    @property
    def program(self) -> str | None:
        """Return whose console it is, once that shows: verl's has step lines."""
        return self._dicts.program.name if not self._schemas else None

    @property
    def engines(self) -> tuple[str, ...]:
        """Return where the engines can be asked that it names."""
        return self._engines.addresses

    @property
    def reported(self) -> tuple[str, ...]:
        """Return the ids of the runs at W&B that it says it reports to, in their order."""
        return tuple(self._reported)

    def early(self, line: bytes) -> int:
        """Return how many bytes of a line that has no end yet can be decoded: those up to its last
        bar.
        """
        if self._sample.begun or self._table.begun:
            return 0
        at = line.rfind(b"%|")
        found = (
            _WHOLE_BAR.match(line, max(0, len(line[:at].rstrip(b"0123456789"))))
            if at >= 0
            else None
        )
        return found.end() if found is not None else 0

    def held(self) -> Sequence[MetricRow | Record]:
        """Return what only waits for lines that may never come."""
        out: list[MetricRow | Record] = []
        self._take(out, self._dicts.settle())
        out.extend(self._sample.held())
        out.extend(self._table.held())
        return out

    def decode(self, line: bytes, number: int) -> Sequence[MetricRow | Record]:
        """Return the records of one line, or of a part of it that begins behind a bar."""
        out: list[MetricRow | Record] = []
        line = strip_ansi(line)
        if b"\r" in line or self._blank or number == self._number:
            self._between_returns(out, line, number)
            return out
        found = PREFIX.match(line)
        self._number, self._prefix = number, found.group() if found is not None else b""
        part = line[found.end() :] if found is not None else line
        if part or self._sample.begun:
            self._part(out, self._prefix, part, number)
        return out

    def _between_returns(self, out: list[MetricRow | Record], line: bytes, number: int) -> None:
        """Read the parts of a line between its carriage returns: each took the place of the one
        before.
        """
        behind = number == self._number
        prefix = self._prefix if behind else b""
        for written in line.split(b"\r"):
            found = PREFIX.match(written) if not behind else None
            if found is not None:
                prefix = found.group()
            part = written[found.end() :] if found is not None else written
            # Behind a bar are the last signs of a longer one.
            if part.strip() if behind else self._is_said(out, part):
                self._part(out, prefix, part, number)
            behind = False
        self._number, self._prefix = number, prefix

    def _is_said(self, out: list[MetricRow | Record], part: bytes) -> bool:
        """Tell whether something is said between two carriage returns; note where bars are
        cleared.
        """
        if part.isspace():
            self._blank = len(part) >= _CLEARED
            return False
        if self._blank:
            self._blank = False
            # A bar that follows at once was not cleared: it takes the place of another one that has
            # ended.
            if b"%|" not in part:
                self._take(out, self._dicts.cleared())
        return bool(part)

    def _part(self, out: list[MetricRow | Record], prefix: bytes, part: bytes, number: int) -> None:
        """Read what stands between two carriage returns; `prefix` names the Ray actor that printed
        it.
        """
        inside = self._sample.holds(prefix)
        if (
            not inside
            and b"%|" in part
            and not (part := self._cut(out, prefix, part, number)).strip()
        ):
            return
        if (
            b"step:" in part
            and (found := STEP.search(part))
            and self._step_line(out, found, inside=inside)
        ):
            return
        out.extend(self._sample.feed(prefix, part, self._step))
        if inside or self._sample.holds(prefix):
            return
        if b"{'" in part and (said := self._dicts.read(part, number)) is not None:
            self._take(out, said)
        else:
            self._line(out, prefix, part, number)

    def _line(self, out: list[MetricRow | Record], prefix: bytes, part: bytes, number: int) -> None:
        """Read what is neither metrics nor part of a sample."""
        self._dicts.program.line(part, number)
        if self._dicts.watching:
            self._take(out, self._dicts.other())
        if self._table.holds(part):
            out.extend(self._table.feed(part))
            return
        if self._settings.is_open or _WORTH_A_LOOK.search(part):
            held = self._settings.holds(prefix, part)
            out.extend(self._settings.read(prefix, part, number))
            if held:
                return
            self._sample.notice(part)
            self._bar(out, part)
            self._engines.read(prefix, part)
            if (
                part.startswith(b"wandb: ")
                and (found := console_wandb.reports_to(part)) is not None
            ):
                self._reported[found] = None
            self._happened(out, prefix, part, number)
        self._pulse(out, part)

    def _happened(
        self, out: list[MetricRow | Record], prefix: bytes, part: bytes, number: int
    ) -> None:
        """Read the events that a line tells of."""
        for event in self._events.read(prefix, part, number):
            if event.kind is EventKind.STARTED:
                self._settings.begin(number)
            elif event.kind in _ENDS:
                self._take(
                    out, self._dicts.settle()
                )  # it was printed before, and is to be told before
            if event.kind in _LAST:
                self._engines.forget()
            out.append(event)

    def _step_line(
        self, out: list[MetricRow | Record], found: re.Match[bytes], *, inside: bool
    ) -> bool:
        """Read a step line, and the bar before it; false where it only looks like one."""
        row = self._row(found, sure=inside)
        if row is None:
            return False
        self._trained(out, row.step)
        if inside:
            self._sample.leave()
        self._bar(out, found.string[: found.start()])
        out.append(row)
        return True

    def _pulse(self, out: list[MetricRow | Record], part: bytes) -> None:
        """Read the time at the beginning of a line, and the counters of a heartbeat behind it."""
        found = _STAMP.search(part, 0, _NEAR) if b"20" in part[:_NEAR] else None
        if found is None:
            return
        counters = _COUNTERS.match(part, found.end())
        tens = found.group()[:_TENS]
        if counters is None and tens == self._told:
            return
        self._told = tens
        time = parse_time(found.group().decode().replace("T", " "))
        out.append(
            Pulse(time, one_line(counters["said"].decode(), 120) if counters is not None else "")
        )

    def _cut(self, out: list[MetricRow | Record], prefix: bytes, part: bytes, number: int) -> bytes:
        """Read the bars that something stands behind, or nothing; return what is left of the
        line.
        """
        at = 0
        while (found := _WHOLE_BAR.search(part, at)) is not None:
            before = part[at : found.start()].rstrip()
            if before and not before.endswith(b":"):
                out.extend(self._events.read(prefix, before, number))
            self._bar(out, part[at : found.end()])
            at = found.end()
        return part[at:]

    def _take(self, out: list[MetricRow | Record], said: Sequence[MetricRow | Record]) -> None:
        """Take what a dict of metrics said."""
        for item in said:
            if (
                isinstance(item, MetricRow)
                and FROM_ZERO.issuperset(item.keys)
                and len(item.keys) == len(FROM_ZERO)
            ):
                item, self._from_zero = replace(item, step=item.step + 1), True  # noqa: PLW2901
            step = item.step if isinstance(item, MetricRow | Progress) else None
            # What a buffer kept back may come after an end, and does not undo it; bars are always
            # of now.
            late = (
                isinstance(item, MetricRow)
                and step is not None
                and self._step is not None
                and step < self._step
            )
            if step not in (None, self._step) and not late:
                self._trained(out, step)
            out.append(item)

    def _trained(self, out: list[MetricRow | Record], step: int) -> None:
        """Note a step."""
        out.extend(self._sample.held())
        self._step = step
        self._sample.trained()
        self._events.step()
        out.extend(self._settings.end())

    def _row(self, found: re.Match[bytes], *, sure: bool) -> MetricRow | None:
        """Return the row of a step line, None where it only looks like one.

        Args:
            found: The match of the step and the rest of the line.
            sure: Whether to accept it only with many pieces, since a model may have written it.
        """
        step, rest = int(found.group(1)), found.group(2)
        if b"[repeated " in rest:
            rest = REPEATED.sub(b"", rest)
        numbers = _quickly(rest)
        if numbers is None:
            numbers = _piece_by_piece(rest)
        if not numbers or (sure and len(numbers) < _SURE):
            return None
        keys = tuple(numbers)
        known = self._schemas.get(keys)
        if known is None:
            known = self._schemas[keys] = tuple(safe(key, 300) for key in keys)
        return MetricRow(step, known, tuple(numbers.values()))

    def _bar(self, out: list[MetricRow | Record], part: bytes) -> None:
        """Read a progress bar, or another line that tells how far the run is."""
        if b"%|" in part:
            for bar in _BAR.finditer(part):
                at, total = int(bar.group(4)), int(bar.group(5))
                if bar.group(2) is None:
                    out.append(Progress(at, total, elapsed(part, bar.end())))
                else:
                    # verl's supervised fine-tuning and OpenRLHF start a new bar each epoch, and its
                    # time anew.
                    epoch, epochs = int(bar.group(2)), int(bar.group(3))
                    out.append(Progress((epoch - 1) * total + at, epochs * total))
            self._take(out, self._dicts.bar(part))
        elif b"ing" in part and self._dicts.words(part):
            pass
        elif b"Total " in part and (found := _TOTAL.search(part)):
            out.append(Progress(total=int(found.group(1).replace(b",", b"") or 0) or None))
        elif b"train dataloader" in part and (found := _PER_EPOCH.search(part)):
            out.append(Progress(per_epoch=int(found.group(1))))
        elif self._step is None and (found := _BEGUN.match(part)):
            # Names the step that begins; where step lines follow they say it better.
            out.append(Progress(step=int(found.group(1))))


def _quickly(rest: bytes) -> dict[str, float] | None:
    """Return the numbers of a step line by way of JSON, None where it is not as simple as that."""
    if b'"' in rest or b"\\" in rest or b"(" in rest:
        return None
    try:
        numbers = orjson.loads(
            b'{"' + rest.strip().replace(b":", b'":').replace(b" - ", b',"') + b"}"
        )
    except orjson.JSONDecodeError:
        return None
    return numbers if all(type(value) in (int, float) for value in numbers.values()) else None


def _piece_by_piece(rest: bytes) -> dict[str, float] | None:
    """Return the numbers of a step line; None where fewer than half of its pieces are numbers with
    a key.
    """
    pieces = rest.decode("utf-8", "replace").split(" - ")
    numbers: dict[str, float] = {}
    for piece in pieces:
        found = _PIECE.match(piece.strip())
        if found is not None:
            numbers[found["key"]] = _VALUES.get(found["value"]) or float(
                found["value"].replace("False", "0")
            )
    return numbers if 2 * len(numbers) >= len(pieces) else None


_VALUES = {"True": 1.0}

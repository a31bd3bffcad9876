"""Decodes consoles: verl's step lines among everything else that a training prints.

Lines are read wherever they stand: glued to progress bars, behind Ray's prefixes and colours, in
every number format since v0.1. The rest is noise, not an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.records import Event, EventKind, Progress
from verl_tui.sources.fields.row_batcher import MetricRow, joined_notes
from verl_tui.sources.formats.console import noise
from verl_tui.sources.formats.console.bars import (
    WHOLE_BAR,
    complete_bars,
    has_bar,
    named_bars,
)
from verl_tui.sources.formats.console.blocks import BlockReader
from verl_tui.sources.formats.console.dicts import DictReader
from verl_tui.sources.formats.console.engines import EngineReader
from verl_tui.sources.formats.console.errors import ErrorReader
from verl_tui.sources.formats.console.prefixes import LineParts, parted, printed
from verl_tui.sources.formats.console.printed_tables import PrintedTables
from verl_tui.sources.formats.console.samples import SampleReader
from verl_tui.sources.formats.console.settings import SettingsReader
from verl_tui.sources.formats.console.stated import stated
from verl_tui.sources.formats.console.step_lines import (
    STEP,
    StepLineReader,
    cut_note,
    is_cut,
    unread_note,
    without_last,
)
from verl_tui.sources.formats.console.timestamps import TimestampReader
from verl_tui.sources.formats.console.trainer_detector import VERL
from verl_tui.sources.formats.console.unknown import NOTE, UnknownTrainer
from verl_tui.text import strip_ansi

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from verl_tui.records import Record

_CLEARED = 10
"""Fewest spaces that clear a bar."""
_MOST_BEHIND = 16
"""Metrics on one line that are read: two processes may print at once, a broken file anything."""
_LAST = {EventKind.FINISHED, EventKind.EXITED, EventKind.STOPPED, EventKind.FATAL}
_ENDS = {*_LAST, EventKind.TRACEBACK}


class ConsoleDecoder:
    """Decodes a console log line by line."""

    def __init__(self) -> None:
        self._step_lines = StepLineReader()
        self._errors = ErrorReader()
        self._engines = EngineReader()
        self._settings = SettingsReader()
        self._sample = SampleReader()
        self._table = PrintedTables()
        self._blocks = BlockReader()
        self._dicts = DictReader()
        self._noise = noise.Noise()
        self._unknown = UnknownTrainer()
        self._timestamps = TimestampReader()
        self._out: list[MetricRow | Record] = []
        """What the lines say that are being read."""
        self._step: int | None = None
        self._number = 0
        """That of the line that is read."""
        self._is_cut = False
        """True if it is as long as W&B lets lines become."""
        self._cut = 0
        """Step lines that were cut."""
        self._unread = 0
        """Values of step lines that could not be read."""
        self._added = self._prefix = b""
        """What stood before the last line, and Ray's own prefix."""
        self._blank = False
        """True if a bar seems to have been cleared."""

    @property
    def note(self) -> str | None:
        """Say which steps were estimated or shifted, and how rewards were summed."""
        return joined_notes(
            self._dicts.note,
            self._table.note,
            cut_note(self._cut),
            unread_note(self._unread + self._dicts.unread + self._blocks.unread),
            NOTE if self._blocks.guessed is not None else None,
            self.unread_form or None,
        )

    @property
    def counts_steps(self) -> bool:
        """True if steps depend on the lines before."""
        return bool(self._dicts.counted)

    @property
    def counts_most(self) -> bool:
        """True if most steps were counted."""
        return self._dicts.counts_most

    @property
    def unread_form(self) -> str:
        """Say which lines look like metrics that cannot be read, where no step is known."""
        return self._unknown.words if self._step is None else ""

    @property
    def program(self) -> str | None:
        """The console's name after the trainer that writes it, None while nothing shows it."""
        return self._dicts.program.name

    @property
    def engines(self) -> tuple[str, ...]:
        """Metrics addresses of the engines that the console names."""
        return self._engines.addresses

    def restart(self) -> Sequence[MetricRow | Record]:
        """Forget everything."""
        type(self).__init__(self)
        return ()

    def last(self, line: bytes, number: int) -> Iterable[MetricRow | Record] | None:
        """Return the records of a line without an end; a step line only if it has all the keys of
        one before, as far as there was any.
        """
        line = _plain(line)
        found = STEP.search(line)
        if found is not None:
            known = set(self._step_lines.schemas.values())
            row = self._step_lines.row(found, sure=False)
            if row is None or (known and row.keys not in known):
                return None
        elif b"{'" in line and not line.rstrip().endswith(b"}"):
            return None
        return self.decode(line, number)

    def early(self, line: bytes) -> int:
        """Return how many bytes of an unfinished line can be decoded: those up to its last bar."""
        if self._sample.begun or self._table.begun:
            return 0
        return complete_bars(line)

    def held(self) -> Iterable[MetricRow | Record]:
        """Return the records that only wait for lines that may never come."""
        self._dicts.steps.settle()
        self._add(self._dicts.placed())
        self._out += self._sample.held(self._step)
        self._out += self._table.held()
        self._add(self._blocks.held())
        return self._taken()

    def decode_all(self, text: bytes, number: int) -> Iterable[MetricRow | Record]:
        """Return the records of complete lines."""
        at = 0
        while at < len(text):
            idle = self._is_idle(number)
            if idle and not self._sample.is_busy:
                passed = self._noise.end(text, at, self._timestamps.last)
                number += text.count(b"\n", at, passed)
                at = passed
            end = text.find(b"\n", at)
            if end < 0:
                break
            line = text[at:end]
            at = end + 1
            self._take(line, number, idle=idle)
            number += 1
        self._repeat()
        return self._taken()

    def decode(self, line: bytes, number: int) -> Iterable[MetricRow | Record]:
        """Return the records of one line, or of the part of it behind a bar."""
        self._take(line, number, idle=self._is_idle(number))
        self._repeat()
        return self._taken()

    def _taken(self) -> Sequence[MetricRow | Record]:
        out, self._out = self._out, []
        return out

    def _take(self, line: bytes, number: int, *, idle: bool) -> None:
        """Read a line as far as it changes anything; note trouble that may be repeated."""
        is_busy = self._sample.is_busy
        if is_busy and self._adds_to_sample(line, number, idle=idle):
            return
        idle = idle and not is_busy
        if idle and self._passes_over(line, number):
            return
        self._repeat()
        before = len(self._out)
        self._read_line(line, number)
        waits = self._sample.is_busy or not self._is_idle(number + 1)
        if idle and not waits:
            self._noise.note(line, self._out[before:])

    def _passes_over(self, line: bytes, number: int) -> bool:
        """Count a line that changes nothing, or read its time only; return whether it is one."""
        if self._noise.counts(line, number):
            return True
        if self._noise.says_nothing(line):
            self._out += self._timestamps.read(line)
            return True
        return False

    def _adds_to_sample(self, line: bytes, number: int, *, idle: bool) -> bool:
        """Take a line that is nothing but a sample's; return whether it is one."""
        is_part = self._blank or number == self._number
        if is_part or b"step:" in line or b"\r" in line:
            return False
        _, prefix, part = self._parted(_plain(line))
        if not self._sample.holds(prefix) and (not idle or noise.TELLING.search(line)):
            return False
        self._out += self._sample.feed(prefix, part, self._step)
        return True

    def _repeat(self) -> None:
        """Read the newest line of each kind of trouble that was counted, for all of them."""
        for lines in self._noise.counted():
            before = len(self._out)
            self._read_line(lines.newest, lines.number)
            self._out[before:] = [
                one._replace(times=one.times * lines.times)
                if isinstance(one, Event)
                else one
                for one in self._out[before:]
            ]

    def _is_idle(self, number: int) -> bool:
        """Return True if a line that says nothing by itself changes nothing but a sample."""
        return not (
            self._blank
            or number == self._number
            or self._table.begun
            or self._blocks.begun
            or self._settings.is_open
            or self._errors.framed
            or self._dicts.steps.cleared
            or (self._step is None and self._unknown.watches)
            or self._dicts.program.looks_at(number)
        )

    def _read_line(self, line: bytes, number: int) -> None:
        """Read the parts of a line between its carriage returns: each overwrote the one before."""
        self._is_cut = is_cut(line)
        line = _plain(line)
        behind = number == self._number
        self._number = number
        if not self._sample.begun:
            self._out += self._timestamps.read(line)
        first, *later = line.split(b"\r")
        if behind:
            # Behind a bar are the last characters of a longer one.
            has_text = bool(first.strip())
        else:
            overwritten = bool(later) or self._blank
            self._added, self._prefix, first = self._parted(first)
            waits = bool(first) or self._sample.is_busy
            has_text = self._overwrites(first) if overwritten else waits
        if has_text:
            self._read_part(self._prefix, first)
        for part in later:
            _, prefix, text = printed(part)
            self._prefix = prefix or self._prefix
            if self._overwrites(text):
                self._read_part(self._prefix, text)

    def _parted(self, line: bytes) -> LineParts:
        # A sample that began with nothing added has nothing added to its lines.
        is_bare = self._sample.begun and not self._added
        return printed(line) if is_bare else parted(line)

    def _overwrites(self, part: bytes) -> bool:
        """Return True for text between two carriage returns; note where bars are cleared."""
        if part.isspace():
            self._blank = len(part) >= _CLEARED
            return False
        if self._blank:
            self._blank = False
            # A bar right behind it was not cleared: it replaces another one that has ended.
            if not has_bar(part):
                self._dicts.steps.clearing()
        return bool(part)

    def _read_part(self, prefix: bytes, part: bytes) -> None:
        """Read a text that the Ray actor `prefix` printed, and what others printed behind it."""
        for _ in range(_MOST_BEHIND):
            part = self._read_first(prefix, part)
            self._add(self._dicts.placed())
            if not part.strip():
                return
            _, prefix, part = printed(part.lstrip())
        self._unread += 1

    def _read_first(self, prefix: bytes, part: bytes) -> bytes:
        """Read a text up to the end of the first metrics in it; return what stands behind them."""
        inside = self._sample.holds(prefix)
        if not inside and has_bar(part):
            part = self._read_bars(prefix, part)
            if not part.strip():
                return b""
        if b"step:" in part and self._read_step_line(part, inside=inside):
            return self._step_lines.behind
        self._out += self._sample.feed(prefix, part, self._step)
        if inside or self._sample.holds(prefix):
            return b""
        records = self._dicts.read(part, self._number) if b"{'" in part else None
        if records is not None:
            self._add(records)
            return self._dicts.behind
        self._read_other(prefix, part)
        return self._blocks.behind

    def _read_other(self, prefix: bytes, part: bytes) -> None:
        """Read a line that is neither metrics nor part of a sample."""
        self._blocks.behind = b""
        self._dicts.program.line(prefix, part, self._number)
        self._dicts.steps.other()
        samples = self._table.feed(part, self._step)
        if samples is not None:
            self._out += samples
            return
        if self._reads_block(part):
            return
        if self._step is None and (found := self._unknown.read(part, self._number)):
            self._blocks = BlockReader(found)
            for line in self._unknown.lines:
                self._add(self._blocks.feed(line) or ())
        if self._settings.is_open or noise.MAY_SAY.search(part):
            self._read_words(prefix, part)
        elif self._errors.framed:
            self._read_events(prefix, part)

    def _read_words(self, prefix: bytes, part: bytes) -> None:
        """Read a line that may say something in words."""
        said = stated(part)
        within_settings = self._settings.holds(prefix, part)
        self._out += self._settings.read(prefix, part, self._number)
        if within_settings:
            self._dicts.steps.words(said)
            return
        self._sample.notice(said)
        self._read_progress(part, said)
        self._engines.read(prefix, part)
        self._read_events(prefix, part)

    def _reads_block(self, part: bytes) -> bool:
        """Take a line that may belong to a block of metrics; return whether it does."""
        rows = self._blocks.feed(part)
        if rows:
            self._dicts.program.metrics(f"{self._blocks.trainer} console")
            self._add(rows)
        return rows is not None

    def _read_events(self, prefix: bytes, part: bytes) -> None:
        for event in self._errors.read(prefix, part, self._number, self._added):
            if event.kind is EventKind.STARTED:
                self._settings.begin(self._number)
            elif event.kind in _ENDS:
                # Waiting dicts were printed before the end, so they come before it.
                self._dicts.steps.settle()
                self._add(self._dicts.placed())
            if event.kind in _LAST:
                self._engines.forget()
            self._out.append(event)

    def _read_step_line(self, part: bytes, *, inside: bool) -> bool:
        """Read a step line and what stands around it; return False if it only looks like one."""
        whole = without_last(part) if self._is_cut and b" - " in part else part
        found = self._step_lines.find(whole)
        row = self._step_lines.row(found, sure=inside) if found is not None else None
        if found is None or row is None:
            return False
        self._cut += self._is_cut
        self._unread += self._step_lines.unread
        self._reach(row.step)
        self._dicts.program.metrics(VERL)
        self._blocks.drop(row.step)
        if inside:
            self._sample.leave()
        if before := part[: found.start()]:
            self._read_progress(before, stated(before))
        self._out.append(row)
        return True

    def _read_bars(self, prefix: bytes, part: bytes) -> bytes:
        """Read the complete bars of a line; return the text behind the last one."""
        at = 0
        while (found := WHOLE_BAR.search(part, at)) is not None:
            before = part[at : found.start()].rstrip()
            if b"step:" in before or b"{'" in before:
                self._read_part(prefix, before)
            elif before and not before.endswith(b":"):
                self._out += self._errors.read(
                    prefix, before, self._number, self._added
                )
            self._read_progress(part[at : found.end()], {})
            at = found.end()
        return part[at:]

    def _read_progress(self, part: bytes, said: Mapping[str, int]) -> None:
        """Read a progress bar, or what another line states in words of the training's steps."""
        if has_bar(part):
            self._out += named_bars(part)
            self._add(self._dicts.bar(part))
            return
        self._dicts.steps.words(said)
        total, batches = said.get("total"), said.get("batches")
        # Step lines state the step better than the line that only announces it.
        begun = said.get("begun") if self._step is None else None
        if total or batches or begun is not None:
            self._out.append(Progress(begun, total or None, per_epoch=batches))

    def _add(self, records: Iterable[MetricRow | Record]) -> None:
        """Add the records of metrics, or of a bar that placed some."""
        for record in records:
            # A buffer flushed after an end may bring old rows, which do not undo the end.
            if isinstance(record, MetricRow):
                if self._step is None or record.step > self._step:
                    self._reach(record.step)
            elif isinstance(record, Progress) and record.step not in (None, self._step):
                self._reach(record.step)
            self._out.append(record)

    def _reach(self, step: int | None) -> None:
        """Note that training has reached a step."""
        self._out += self._sample.held(self._step)
        self._step = step
        self._sample.trained()
        self._errors.step()
        self._noise.step()
        self._out += self._settings.end()


def _plain(line: bytes) -> bytes:
    """Return a line without colours, and without the zeros that a crash leaves before it: there may
    be gigabytes.
    """
    line = strip_ansi(line)
    return line.lstrip(b"\0") if line.startswith(b"\0") else line

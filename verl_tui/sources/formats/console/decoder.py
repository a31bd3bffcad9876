"""Decodes consoles: verl's step lines among everything else that a training prints.

Lines are read wherever they stand: glued to progress bars, behind Ray's prefixes and colours, in
every number format since v0.1. The rest is noise, not an error. The dicts that other trainers print
are read by `verl_tui.sources.formats.console.dicts`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.records import Event, EventKind, Progress
from verl_tui.sources.fields.row_batcher import MetricRow, joined_notes
from verl_tui.sources.formats.console import errors as console_errors
from verl_tui.sources.formats.console import progress_lines, silent_lines
from verl_tui.sources.formats.console.blocks import BlockReader
from verl_tui.sources.formats.console.dicts import DictReader
from verl_tui.sources.formats.console.engine_addresses import EngineReader
from verl_tui.sources.formats.console.errors import ErrorReader
from verl_tui.sources.formats.console.guesses import NOTE, StepGuess
from verl_tui.sources.formats.console.leads import (
    LeadReader,
    LineWithLead,
    printed,
    without_hole,
)
from verl_tui.sources.formats.console.printed_tables import PrintedTables
from verl_tui.sources.formats.console.progress_lines import (
    WHOLE_BAR,
    has_bar,
    named_bars,
)
from verl_tui.sources.formats.console.samples import SampleReader
from verl_tui.sources.formats.console.settings import SettingsReader
from verl_tui.sources.formats.console.silent_lines import Noise, Repeated
from verl_tui.sources.formats.console.stated import stated
from verl_tui.sources.formats.console.step_lines import (
    KEPT_BY_WANDB,
    STEP,
    StepLineReader,
    cut_note,
    is_cut,
    unread_note,
    without_last,
)
from verl_tui.sources.formats.console.timestamps import TimestampReader
from verl_tui.sources.formats.console.trainer_detector import VERL
from verl_tui.sources.formats.console.unknown_lines import UnknownLines
from verl_tui.sources.formats.console.word_search import any_of
from verl_tui.sources.formats.trainer_state import FROM_ZERO, FROM_ZERO_NOTE
from verl_tui.text import strip_ansi

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from verl_tui.records import Record

_CLEARED = 10
"""Fewest spaces that clear a bar."""
_MOST_BEHIND = 16
"""Metrics on one line that are read: two processes may print at once, a broken file anything."""
_LAST = {EventKind.FINISHED, EventKind.EXITED, EventKind.STOPPED, EventKind.FATAL}
_ENDS = {*_LAST, EventKind.TRACEBACK}
_RELEVANT = any_of((*console_errors.WORDS, *silent_lines.WORDS))
"""Finds the lines worth parsing, except those of samples and tables, and times: most are noise."""


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
        self._guess = StepGuess()
        self._dicts = DictReader()
        self._noise = Noise()
        self._repeated = Repeated()
        self._unknown = UnknownLines()
        self._timestamps = TimestampReader()
        self._leads = LeadReader()
        self._out: list[MetricRow | Record] = []
        """What the lines say that are being read."""
        self._step: int | None = None
        self._from_zero = False
        """True where the console counts steps from 0 and other files of the run from 1."""
        self._number = 0
        """That of the line that is read."""
        self._is_cut = False
        """True if it is as long as W&B lets lines become."""
        self._cut = 0
        """Step lines that were cut."""
        self._unread = 0
        """Values of step lines that could not be read."""
        self._lead = self._prefix = b""
        """The prefixes of the last line: the one added after printing, and Ray's own."""
        self._blank = False
        """True if a bar seems to have been cleared."""

    @property
    def note(self) -> str | None:
        """Say which steps were estimated or shifted, and how rewards were summed."""
        return joined_notes(
            self._dicts.note,
            FROM_ZERO_NOTE if self._from_zero else None,
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
        """Forget everything but the key names."""
        step_lines = self._step_lines
        ConsoleDecoder.__init__(self)
        self._step_lines = step_lines
        return ()

    def last(self, line: bytes, number: int) -> Sequence[MetricRow | Record] | None:
        """Return the records of a line without an end; a step line only if it has all the keys of
        one before, as far as there was any.
        """
        line = without_hole(strip_ansi(line))
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
        return progress_lines.complete_bars(line)

    def held(self) -> Sequence[MetricRow | Record]:
        """Return the records that only wait for lines that may never come."""
        self._dicts.steps.settle()
        self._add(self._dicts.placed())
        self._out += self._sample.held(self._step)
        self._out += self._table.held()
        self._add(self._blocks.held())
        return self._taken()

    def caught_up(self) -> Sequence[MetricRow | Record]:
        """Return the records that wait for the training's end, which is not there yet."""
        self._dicts.steps.caught_up()
        self._add(self._dicts.placed())
        return self._taken()

    def decode_all(self, text: bytes, number: int) -> Sequence[MetricRow | Record]:
        """Return the records of complete lines; those within a sample are taken at once."""
        at = 0
        idle = self._is_idle(number)
        while at < len(text):
            if idle:
                passed = self._noise.end(text, at, self._timestamps.last)
                number += text.count(b"\n", at, passed)
                at = passed
            end = text.find(b"\n", at)
            if end < 0:
                break
            line = text[at:end]
            at = end + 1
            number += 1
            if idle and self._passes_over(line, number - 1):
                continue  # it is idle still
            before = self._read(line, number - 1)
            if self._sample.holds(self._prefix) and not (self._blank or self._lead):
                end = self._sample.take(text, at, line)
                number += text.count(b"\n", at, end)
                at = end
            idle = self._goes_idle(line, number, before, idle=idle)
        self._repeat()
        return self._taken()

    def decode(self, line: bytes, number: int) -> Sequence[MetricRow | Record]:
        """Return the records of one line, or of the part of it behind a bar."""
        idle = self._is_idle(number)
        if not (idle and self._passes_over(line, number)):
            before = self._read(line, number)
            self._goes_idle(line, number + 1, before, idle=idle)
        self._repeat()
        return self._taken()

    def _taken(self) -> Sequence[MetricRow | Record]:
        out, self._out = self._out, []
        return out

    def _passes_over(self, line: bytes, number: int) -> bool:
        """Count a line that changes nothing, or read its time only; return whether it is one."""
        if self._repeated.counts(line, number):
            return True
        dated = self._noise.date(line)
        if dated and not self._timestamps.repeats(line):
            if self._leads.are_known and self._noise.has_one_time(line):
                parts: tuple[bytes, ...] = (line,)
            else:
                lead, _, part = self._parted(without_hole(strip_ansi(line)))
                parts = lead, part
            for one in parts:
                self._out += self._timestamps.read(one)
        return dated is not None

    def _read(self, line: bytes, number: int) -> int:
        """Read a line; return how many records there were before."""
        self._repeat()
        before = len(self._out)
        self._read_line(line, number)
        return before

    def _goes_idle(self, line: bytes, number: int, before: int, *, idle: bool) -> bool:
        """Return whether no reader waits for more behind a line; note trouble that may be repeated.

        Args:
            line: The line that was read.
            number: The number of the next one.
            before: How many records there were before it.
            idle: Whether no reader waited for it.
        """
        is_idle = self._is_idle(number)
        if idle and is_idle:
            self._repeated.note(line, self._out[before:])
        return is_idle

    def _repeat(self) -> None:
        """Read the newest line of each kind of trouble that was counted, for all of them."""
        for lines in self._repeated.taken():
            before = len(self._out)
            self._read_line(lines.newest, lines.number)
            self._out[before:] = [
                one._replace(times=one.times * lines.times)
                if isinstance(one, Event)
                else one
                for one in self._out[before:]
            ]

    def _is_idle(self, number: int) -> bool:
        """Return True if a line that says nothing by itself changes nothing."""
        return not (
            self._blank
            or number == self._number
            or self._sample.is_busy
            or any((self._table.begun, self._blocks.begun))
            or self._settings.is_open
            or self._errors.framed
            or self._dicts.steps.cleared
            or (self._step is None and self._unknown.watches)
            or self._dicts.program.looks_at(number)
        )

    def _read_line(self, line: bytes, number: int) -> None:
        self._is_cut = len(line) >= KEPT_BY_WANDB and is_cut(line)
        line = without_hole(strip_ansi(line))
        behind = number == self._number
        self._number = number
        if b"\r" in line or self._blank or behind:
            self._read_overwritten(line, behind=behind)
            return
        self._lead, self._prefix, part = self._parted(line)
        if self._lead:
            self._out += self._timestamps.read(self._lead)
        if part or self._sample.begun or self._sample.listens:
            self._read_part(self._prefix, part)

    def _parted(self, line: bytes) -> LineWithLead:
        # A sample that began without a lead has none: what looks like one is the model's.
        if self._sample.begun and not self._lead:
            return printed(line)
        return self._leads.read(line)

    def _read_overwritten(self, line: bytes, *, behind: bool) -> None:
        """Read the parts of a line between its carriage returns: each overwrote the one before.

        Args:
            line: The line, or what stands behind a part of it that was read.
            behind: Whether it is that.
        """
        prefix = self._prefix if behind else b""
        for i, written in enumerate(line.split(b"\r")):
            part = written
            if not behind:
                lead, own, part = self._parted(written) if i == 0 else printed(written)
                self._lead = lead or self._lead
                prefix = own or prefix
            # Behind a bar are the last characters of a longer one.
            if part.strip() if behind else self._has_text(part):
                self._read_part(prefix, part)
            behind = False
        self._prefix = prefix

    def _has_text(self, part: bytes) -> bool:
        """Return True for text between two carriage returns; note where bars are cleared."""
        if part.isspace():
            self._blank = len(part) >= _CLEARED
            return False
        if self._blank:
            self._blank = False
            # A bar right behind it was not cleared: it replaces another one that has ended.
            if not has_bar(part):
                self._dicts.steps.clearing()
                self._add(self._dicts.placed())
        return bool(part)

    def _read_part(self, prefix: bytes, part: bytes) -> None:
        """Read a text that the Ray actor `prefix` printed, and what others printed behind it."""
        for _ in range(_MOST_BEHIND):
            part = self._read_first(prefix, part)
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
        if records is None:
            self._read_other(prefix, part)
            return self._blocks.behind
        self._add(records)
        return self._dicts.behind

    def _read_other(self, prefix: bytes, part: bytes) -> None:
        """Read a line that is neither metrics nor part of a sample."""
        self._blocks.behind = b""
        self._dicts.program.line(prefix, part, self._number)
        if self._dicts.steps.cleared:
            self._dicts.steps.other()
            self._add(self._dicts.placed())
        samples = self._table.feed(part, self._step)
        if samples is not None:
            self._out += samples
            return
        if self._reads_block(part):
            return
        if self._step is None:
            self._unknown.read(part, self._number)
            self._guess_form(part)
        if self._settings.is_open or _RELEVANT.search(part):
            said = stated(part)
            within_settings = self._settings.holds(prefix, part)
            self._out += self._settings.read(prefix, part, self._number)
            if within_settings:
                self._dicts.steps.words(said)
                self._add(self._dicts.placed())
                return
            self._sample.notice(said)
            self._read_progress(part, said)
            self._engines.read(prefix, part)
            self._read_events(prefix, part)
        elif self._errors.framed:
            self._read_events(prefix, part)
        self._out += self._timestamps.read(part)

    def _guess_form(self, part: bytes) -> None:
        """Look for the steps of a trainer that nobody has described."""
        found = self._guess.read(part)
        if found is not None:
            form, rows = found
            self._blocks = BlockReader(form)
            self._blocks.feed(part)
            self._add(rows)

    def _reads_block(self, part: bytes) -> bool:
        """Take a line that may belong to a block of metrics; return whether it does."""
        rows = self._blocks.feed(part)
        if rows:
            self._dicts.program.metrics(f"{self._blocks.trainer} console")
            self._add(rows)
        return rows is not None

    def _read_events(self, prefix: bytes, part: bytes) -> None:
        for event in self._errors.read(prefix, part, self._number, self._lead):
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
        found = self._step_lines.find(
            without_last(part) if self._is_cut and b" - " in part else part
        )
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
                self._out += self._errors.read(prefix, before, self._number, self._lead)
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
        self._add(self._dicts.placed())
        total, batches = said.get("total"), said.get("batches")
        # Step lines state the step better than the line that only announces it.
        begun = said.get("begun") if self._step is None else None
        if total or batches or begun is not None:
            self._out.append(Progress(begun, total or None, per_epoch=batches))

    def _add(self, records: Sequence[MetricRow | Record]) -> None:
        """Add the records of a dict of metrics, or of a bar that placed one."""
        for record in records:
            if isinstance(record, MetricRow):
                row = self._counted_from_one(record)
                # A buffer flushed after an end may bring old rows, which do not undo the end.
                if self._step is None or row.step > self._step:
                    self._reach(row.step)
                self._out.append(row)
                continue
            step = record.step if isinstance(record, Progress) else None
            if step is not None and step != self._step:
                self._reach(step)
            self._out.append(record)

    def _counted_from_one(self, row: MetricRow) -> MetricRow:
        """Return a row with its step counted from 1; LLaMA-Factory's PPO counts from 0."""
        if len(row.keys) != len(FROM_ZERO) or not FROM_ZERO.issuperset(row.keys):
            return row
        self._from_zero = True
        return row._replace(step=row.step + 1)

    def _reach(self, step: int) -> None:
        """Note that training has reached a step."""
        self._out += self._sample.held(self._step)
        self._step = step
        self._sample.trained()
        self._errors.step()
        self._repeated.step()
        self._out += self._settings.end()

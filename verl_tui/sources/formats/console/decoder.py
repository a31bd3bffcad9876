"""Decodes consoles: verl's step lines among everything else that a training prints.

Lines are read wherever they stand: glued to progress bars, behind Ray's prefixes and colours, in
every number format since v0.1. The rest is noise, not an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from verl_tui.records import ENDS, Event, EventKind, Progress, Pulse
from verl_tui.sources.fields.jsonl import unreadable
from verl_tui.sources.fields.row_batcher import Item, MetricRow, joined_notes
from verl_tui.sources.formats.console.blocks import MAY_BEGIN, BlockReader
from verl_tui.sources.formats.console.dicts import VERL, DictReader
from verl_tui.sources.formats.console.errors import ErrorReader
from verl_tui.sources.formats.console.kept import KeptLines, PrintedLine
from verl_tui.sources.formats.console.line_parts import (
    WHOLE_BAR,
    complete_bars,
    counters_behind,
    has_bar,
    named_bars,
    parted,
    stamp_in,
    stated,
)
from verl_tui.sources.formats.console.noise import Noise
from verl_tui.sources.formats.console.samples import PrintedTables, SampleReader
from verl_tui.sources.formats.console.settings import SettingsReader
from verl_tui.sources.formats.console.step_lines import StepLineReader, uncut
from verl_tui.sources.formats.console.unknown import NOTE, UnknownTrainer
from verl_tui.sources.formats.lines import Decoder
from verl_tui.text import strip_ansi
from verl_tui.times import parse_time
from verl_tui.words import counted

_CLEARED = 10
"""Fewest spaces that clear a bar."""
_MOST_BEHIND = 16
"""Metrics on one line that are read: two processes may print at once, a broken file anything."""
_TENS = len("2026-11-22 11:31:2")
"""What of a timestamp has changed when it is passed on: lines come by the thousand."""
_EACH = 10.0
"""Seconds between two times of a collector that are passed on: lines come by the thousand."""


class ConsoleDecoder(Decoder):
    """Decodes a console log line by line."""

    parted = True

    def __init__(self) -> None:
        self._kept = KeptLines()
        self._step_lines = StepLineReader()
        self._errors = ErrorReader()
        self._settings = SettingsReader()
        self._sample = SampleReader()
        self._table = PrintedTables()
        self._blocks = BlockReader()
        self._dicts = DictReader()
        self._noise = Noise()
        self._unknown = UnknownTrainer()
        self._tens = b""
        """The last timestamp of a line that was passed on, to ten seconds."""
        self._out: list[Item] = []
        """What the lines say that are being read."""
        self._step: int | None = None
        self._number = 0
        """That of the line that is read."""
        self._cut = 0
        """Step lines that were cut."""
        self._unread = 0
        """Values of step lines that could not be read."""
        self._added = self._prefix = b""
        """What stood before the last line, and Ray's own prefix."""
        self._is_noise = False
        """True if the last line changed nothing."""
        self._blank = False
        """True if a bar seems to have been cleared."""
        self._passed_on = 0.0
        """The last time of a collector that was passed on."""

    @property
    def note(self) -> str | None:
        """Say which steps were estimated or shifted, how rewards were summed, and what was put
        together.
        """
        count = self._unread + self._dicts.unread + self._blocks.unread
        cut = counted(self._cut, "step line was", "step lines were")
        unread = counted(count, "printed value is", "printed values are")
        return joined_notes(
            self._dicts.note,
            self._table.rewards.note,
            f"{cut} cut where W&B kept it: its end is missing" if self._cut else None,
            f"{unread} not read: no number, or glued to text" if count else None,
            NOTE if self._blocks.guessed else None,
            self.unread_form,
            self._kept.note,
        )

    @property
    def counts_steps(self) -> bool:
        """True if steps depend on the lines before."""
        return bool(self._dicts.counted)

    @property
    def counts_most(self) -> bool:
        """True if most steps were counted."""
        return 2 * self._dicts.counted > self._dicts.rows

    @property
    def unread_form(self) -> str:
        """Say which lines look like metrics that cannot be read, where no step is known."""
        return self._unknown.words if self._step is None else ""

    @property
    def program(self) -> str | None:
        """The console's name after the trainer that writes it, None while nothing shows it."""
        return self._dicts.trainer.name

    # -- lines -------------------------------------------------------------------------------------

    def last(self, line: bytes, number: int) -> Iterable[Item] | None:
        """Return the records of a line without an end: of an object only if it is whole, of a step
        line only if it has all the keys of one before, as far as there was any.
        """
        if self._kept.is_cut(line):
            return None
        is_whole = self._kept.wrapped or self._step_lines.is_whole(strip_ansi(line))
        return self.decode(line, number) if is_whole else None

    def early(self, line: bytes) -> int:
        """Return how many bytes of an unfinished line can be decoded: those up to its last bar."""
        is_inside = self._sample.begun or self._table.lines
        return 0 if is_inside or self._kept.may_be_row(line) else complete_bars(line)

    def held(self) -> Iterable[Item]:
        """Return the records that only wait for lines that may never come."""
        self._read_lines(self._kept.held())
        self._add(self._dicts.settled())
        self._out += self._sample.held()
        self._out += self._table.held()
        self._add(self._blocks.held())
        return self._drained()

    def decode_all(self, text: bytes, start: int = 0) -> Iterable[Item]:
        """Return the records of complete lines; those within a sample are taken at once."""
        at, number = start, self.lines + 1
        while (end := text.find(b"\n", at)) >= 0:
            line = text[at:end]
            self._read(line, number)
            at = self._skipped(text, end + 1, line)
            number += text.count(b"\n", end, at)
        self.lines = number - 1
        return self._drained()

    def decode(self, line: bytes, number: int) -> Iterable[Item]:
        """Return the records of one line, or of the part of it behind a bar."""
        self._read(line, number)
        return self._drained()

    def _drained(self) -> Sequence[Item]:
        self._repeat()
        out, self._out = self._out, []
        return out

    def _skipped(self, text: bytes, at: int, line: bytes) -> int:
        """Return where lines end, from a place on, that say as little as the one before, or are
        taken as those of its sample.
        """
        if not self._kept.is_plain:
            return at
        if self._is_noise:
            return self._noise.end(text, at, self._tens)
        if self._blank or self._added or not self._sample.holds(self._prefix):
            return at
        return self._sample.read_on(text, at, line)

    def _read(self, line: bytes, number: int) -> None:
        if self._kept.is_plain:
            self._read_unless_noise(line, number)
        elif lines := self._kept.lines(line, number):
            self._read_lines(lines)
        else:
            reason = "no object with a line of the console"
            self._out.append(unreadable(line, number, reason))

    def _read_lines(self, lines: Iterable[PrintedLine]) -> None:
        """Read lines as they were printed; what they say is of the time at which they were."""
        for text, number, time in lines:
            before = len(self._out)
            self._read_unless_noise(text, number)
            if time is None:
                continue
            self._repeat()
            self._out[before:] = [
                one._replace(time=time) if isinstance(one, MetricRow) else one
                for one in self._out[before:]
            ]
            if not self._passed_on <= time < self._passed_on + _EACH:
                self._passed_on = time
                self._out.append(Pulse(time, ""))

    def _read_unless_noise(self, line: bytes, number: int) -> None:
        """Read a line as far as it changes anything; note trouble that may be repeated."""
        idle = self._is_idle(number)
        self._is_noise = idle and self._noise.passes(line, number)
        if self._is_noise:
            self._read_time(line)
            return
        self._repeat()
        before = len(self._out)
        self._read_line(line, number)
        if idle and len(self._out) > before and self._is_idle(number + 1):
            self._noise.note(line, *self._out[before:])

    def _repeat(self) -> None:
        """Read the newest line of each kind of trouble that was counted, for all of them."""
        for line, number, times in self._noise.counted():
            before = len(self._out)
            self._read_line(line, number)
            self._out[before:] = [
                one._replace(times=one.times * times) if isinstance(one, Event) else one
                for one in self._out[before:]
            ]

    def _is_idle(self, number: int) -> bool:
        """Return True if a line that says nothing by itself changes nothing: no reader waits, none
        looks at all lines, and it is no rest of one.
        """
        return not (
            self._blank
            or number == self._number
            or self._sample.lines
            or self._table.lines
            or self._blocks.form
            or self._blocks.guessed
            or self._settings.lines
            or self._errors.framed
            or self._dicts.steps.cleared
            or self._is_searched(number)
        )

    def _is_searched(self, number: int) -> bool:
        """Return True if a line without any known word may tell something."""
        watches = self._step is None and self._unknown.watches
        return watches or self._dicts.trainer.searches(number)

    def _read_line(self, line: bytes, number: int) -> None:
        """Read the parts of a line between its carriage returns: each overwrote the one before."""
        whole = uncut(line)
        self._cut += len(whole) < len(line)
        line = strip_ansi(whole).lstrip(b"\0")  # a crash leaves gigabytes of zeros
        behind = number == self._number
        self._number = number
        if not self._sample.begun:
            self._read_time(line)
        for at, part in enumerate(line.removesuffix(b"\r").split(b"\r")):
            if at or behind:
                _, prefix, text = parted(part, added=False)
                self._prefix = prefix or self._prefix
            else:
                # A sample that began with nothing added has nothing added to its lines.
                is_bare = self._sample.begun and not self._added
                self._added, self._prefix, text = parted(part, added=not is_bare)
            self._note_cleared(text)
            if text.strip() or (not at and self._sample.lines):
                self._read_part(text)

    def _read_time(self, line: bytes) -> None:
        """Pass on the time at the beginning of a line, with the counters of a heartbeat behind
        it.
        """
        stamp = stamp_in(line)
        if not stamp:
            return
        counters, tens = counters_behind(stamp), stamp[0][:_TENS]
        if counters or tens != self._tens:
            self._tens = tens
            self._out.append(Pulse(parse_time(stamp[0].decode()), counters))

    def _note_cleared(self, text: bytes) -> None:
        """Note where bars are cleared between two carriage returns."""
        was_blank = self._blank
        self._blank = text.isspace() and len(text) >= _CLEARED
        # A bar right after it was not cleared: it replaces another one that has ended.
        if was_blank and not (text.isspace() or has_bar(text)):
            self._dicts.steps.clearing()

    # -- what a line says --------------------------------------------------------------------------

    def _read_part(self, part: bytes) -> None:
        """Read a text, and what other processes printed after it."""
        for _ in range(_MOST_BEHIND):
            part = self._read_first(part)
            self._add(self._dicts.placed())
            if not part.strip():
                return
            _, self._prefix, part = parted(part.lstrip(), added=False)
        self._unread += 1

    def _read_first(self, part: bytes) -> bytes:
        """Read a text up to the end of the first metrics in it; return what stands behind them."""
        inside = self._sample.holds(self._prefix)
        if not inside and has_bar(part):
            part = self._read_bars(part)
            if not part.strip():
                return b""
        if b"step:" in part and self._read_step_line(part, inside=inside):
            return self._step_lines.behind
        self._out += self._sample.feed(self._prefix, part)
        if inside or self._sample.holds(self._prefix):
            return b""
        records = self._dicts.read(part, self._number) if b"{'" in part else None
        if records is not None:
            self._add(records)
            return self._dicts.behind
        return self._read_other(part)

    def _read_other(self, part: bytes) -> bytes:
        """Read what is neither one line of metrics nor a sample; return what stands behind."""
        self._blocks.behind = b""
        self._dicts.trainer.see_line(self._prefix + part, self._number)
        samples = self._table.feed(part, self._step)
        found = samples if samples is not None else self._read_block(part)
        if found is None:
            self._read_words(part)
            return b""
        self._add(found)
        return self._blocks.behind

    def _read_bars(self, part: bytes) -> bytes:
        """Read the complete bars of a line; return the text after the last one."""
        at = 0
        while found := WHOLE_BAR.search(part, at):
            before = part[at : found.start()].rstrip()
            if b"step:" in before or b"{'" in before or MAY_BEGIN.search(before):
                self._read_part(before)
            elif before and not before.endswith(b":"):
                self._read_events(before)
            self._read_progress(part[at : found.end()])
            at = found.end()
        return part[at:]

    def _read_progress(self, part: bytes) -> None:
        """Read a progress bar, or what a line says before a step line."""
        if has_bar(part):
            self._out += named_bars(part)
            self._add(self._dicts.bar(part))

    def _read_step_line(self, part: bytes, *, inside: bool) -> bool:
        """Read a step line and what stands around it; return False if it only looks like one."""
        row = self._step_lines.read(part, sure=inside)
        if not row:
            return False
        self._unread += self._step_lines.unread
        self._reach(row.step)
        self._dicts.trainer.see_metrics(VERL)
        self._blocks.drop(row.step)
        if inside:
            self._sample.leave()
        self._read_progress(self._step_lines.before)
        self._out.append(row)
        return True

    def _read_block(self, part: bytes) -> Sequence[Item] | None:
        """Return what a line completes that belongs to a block of metrics, None if it does not."""
        rows = self._blocks.feed(part)
        if rows is None and self._step is None:
            form = self._unknown.read(part, self._number)
            if not form:
                return None
            self._blocks = BlockReader(form)
            fed = (self._blocks.feed(line) or () for line in self._unknown.lines)
            rows = [row for found in fed for row in found]
        if rows:
            self._dicts.trainer.see_metrics(self._blocks.trainer)
        return rows

    def _read_words(self, part: bytes) -> None:
        """Read a line that may say something in words."""
        said = stated(part)
        within_settings = self._settings.holds(self._prefix, part)
        self._out += self._settings.read(self._prefix, part, self._number)
        if said:
            self._dicts.steps.words(said)
        if within_settings:
            return
        if said:
            self._sample.notice(said)
        self._read_progress(part)
        total, batches = said.get("total"), said.get("batches")
        # Step lines state the step better than the line that only announces it.
        begun = said.get("begun") if self._step is None else None
        if total or batches or begun is not None:
            self._out.append(Progress(begun, total or None, per_epoch=batches))
        self._read_events(part)

    def _read_events(self, part: bytes) -> None:
        line = self._prefix + part
        for event in self._errors.read(line, self._number, self._added):
            if event.kind is EventKind.STARTED:
                self._settings.begin(self._number)
            elif event.kind in ENDS:
                # Waiting dicts were printed before the end.
                self._add(self._dicts.settled())
            self._out.append(event)

    def _add(self, records: Iterable[Item]) -> None:
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
        self._step = step
        self._out += self._sample.trained(step)
        self._errors.step()
        self._noise.step()
        self._out += self._settings.end()

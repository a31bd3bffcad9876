"""Events on a console: starts, checkpoints, normal ends, tracebacks and what killed the run.

A line that looks like a crash often is none: optional imports fail at the start, clean-up fails
after a normal end, raylets report dead workers, models write `Traceback`. So a line only gives its
kind; the lines behind it decide whether it ended the run (`verl_tui.runs.run`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.patterns import pattern
from verl_tui.records import Event, EventKind
from verl_tui.secrets import hide
from verl_tui.sources.formats.console import failed_phase
from verl_tui.sources.formats.console.failed_phase import PhaseReader
from verl_tui.sources.formats.console.word_search import any_of
from verl_tui.text import one_line

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator


_TROUBLE = (
    "Error", "Exception", "Traceback", "not finite", "timed out", "aborted", "Aborted", "Watchdog",
    "Interrupt", "raysubmit_", "worker died", "slurmstepd", "illegal memory", "Killed", "Exit",
    "shutting down", "got signal", "exception was the direct cause", "another exception occurred",
    "SIG", "Terminated", "core dumped", "Segmentation fault", "Bus error", "CANCELLED",
    ".py: error: ", "Fatal Python error", "Component failed", "CUDA OOM", "Could not override",
    "' is not in struct", "Cannot find primary", "memory pressure", "GB / ", "command not found",
    "can't open file", "No module named", "exitcode", "exit code", "exit status", "return code =",
)  # fmt: skip
WORDS = (
    *_TROUBLE,
    "validation metrics", "global_step", "global step to", "checkpoint", "Ray instance",
    "from scratch", "queue termination", "Pdb)", "ipdb>", "generation end", "test_gen_batch meta",
    "Running ", "wandb: ", "in-flight prompts", "forced group exceeds", "Capturing",
    "ready to fit", "instance expiration", *failed_phase.WORDS,
)  # fmt: skip
"""Every line that states an event contains one of these."""
_MAY_FAIL, _RELEVANT = any_of(_TROUBLE), any_of(WORDS)
_MARKS: tuple[tuple[re.Pattern[bytes], EventKind], ...] = (
    (pattern(rb"^[('\"]*Final validation metrics:"), EventKind.FINISHED),
    (
        pattern(
            rb"^\[FullyAsyncTrainer\] Training stopped by queue termination signal"
        ),
        EventKind.FINISHED,
    ),
    (pattern(rb"^Job 'raysubmit_\w+' succeeded"), EventKind.FINISHED),
    # Printed at the end of every process that logged to W&B, of one that failed too.
    (
        pattern(rb"^wandb: (?:Find logs at: |Synced \d|\W*View run .* at: )"),
        EventKind.EXITED,
    ),
    (
        pattern(
            rb"(?:Resuming from .{1,1000}, s|^S)etting global step to (?P<step>\d{1,15})(?!\d)"
        ),
        EventKind.RESUMED,
    ),
    (
        pattern(rb"^Training from scratch|Started a local Ray instance"),
        EventKind.STARTED,
    ),
    (
        pattern(
            rb"(?:local_global_step_folder|Saving checkpoint to):? +"
            rb"(?P<text>\S*global_step_(?P<step>\d{1,15})(?!\d)\S*)"
        ),
        EventKind.CHECKPOINT,
    ),
    (
        pattern(
            rb"Saving model checkpoint to (?P<text>\S*checkpoint-(?P<step>\d{1,15})(?!\d))"
        ),
        EventKind.CHECKPOINT,
    ),
    (
        pattern(
            rb"grad_norm is not finite|Global reward scoring timed out"
            rb"|Unexpected error during scoring|All samples are aborted, returning"
            rb"|A worker died or was killed|\[torch_memory\] CUDA OOM on device"
            rb"|Re-issued \d+ in-flight prompts|forced group exceeds max_token_len"
        ),
        EventKind.WARNING,
    ),
    (
        pattern(
            rb"^\(Pdb\)|^ipdb>|^test_gen_batch meta info|^validation generation end"
            rb"|^\*\*\*\*\* Running \w+|^Capturing [Cc][Uu][Dd][Aa] graph"
            rb"|all initialize finished, ready to fit|instance expiration approaching"
        ),
        EventKind.STAGE,
    ),
    (
        # Ray's memory monitor; the exception that it raises in the driver is more than a warning.
        pattern(
            rb"^(?!ray\.exceptions\.).*"
            rb"(?:killed due to memory pressure|was [\d.]{1,12}GB / [\d.]{1,12}GB \()"
        ),
        EventKind.WARNING,
    ),
)
_LOGGING = pattern(rb"^(?:INFO|WARNING|DEBUG):[\d :,.-]+:")
"""The prefix of Python's logging; not that of errors, which are not the driver's end."""
_GENERIC, _RAY, _CAUSE = 1, 2, 3
"""How much a fatal line says about the cause: an error, an error that Ray reports, the error."""
_SHELL = rb"^(?:\S+: line \d+:\s+\d+ |srun: error: \S+: tasks? \S+: )?"
"""The prefix of bash and Slurm before the way a process ended."""
_CODES = rb"(?:-1|-2|-15|129|130|143)\b"
"""Exit codes of what SIGHUP, SIGINT and SIGTERM end: Python's, a shell's."""
_STOPPED = pattern(
    rb"\*\*\* SIG(?:TERM|INT|HUP|QUIT|USR1|USR2) received|^slurmstepd: error: .*CANCELLED"
    rb"|Received (?:\d+|Signals\.SIG\w+) death signal|SignalException: Process \d+ got signal"
    rb"|Main process received SIG\w+, exiting|died with <Signals\.SIG(?:HUP|INT|TERM)\b"
    rb"|failed \(exitcode: "
    + _CODES
    + rb"|exits with return code = "
    + _CODES
    + rb"|^subprocess\.CalledProcessError: .*returned non-zero exit status "
    + _CODES
    + rb"|^srun: error: .*Exited with exit code "
    + _CODES
    + rb"|^Job entrypoint command failed with exit code "
    + _CODES
    + rb"|^KeyboardInterrupt\b|"
    + _SHELL
    + rb"(?:Terminated\b|(?:Interrupt|Hangup)(?:\s*$|\s{4,}))"
)
"""An end that came from outside: a signal, a scheduler, the user."""
_RAY_REPORT = pattern(
    rb"^ray\.exceptions\."
    rb"(?:RayTaskError|\w+: The actor died because of an error raised in its creation task)"
)
"""Ray's head of an exception raised elsewhere, which is the last line of the block."""
_RAY_BLOCK = pattern(rb"^\W{0,8}Error:? +ray::")
_FATAL: tuple[tuple[re.Pattern[bytes], int], ...] = (
    (pattern(rb"^Error executing job with overrides"), _GENERIC),
    (pattern(rb"^Job 'raysubmit_\w+' failed"), _GENERIC),
    (pattern(rb"^\[ASYNC MAIN\] Component failed with error"), _GENERIC),
    (pattern(rb"^slurmstepd: error:"), _CAUSE),
    (
        pattern(
            _SHELL
            + rb"(?:Killed|Segmentation fault|Aborted|Bus error)"
            + rb"(?: \(core dumped\))?(?:\s*$|\s{4,})"
        ),
        _CAUSE,
    ),
    (
        pattern(
            rb"\*\*\* SIG(?:SEGV|ABRT|BUS|FPE|ILL|KILL) received|^Fatal Python error:"
        ),
        _CAUSE,
    ),
    (
        pattern(rb"^(?:torch\.|torch\.cuda\.)OutOfMemoryError: CUDA out of memory"),
        _CAUSE,
    ),
    (pattern(rb"Watchdog caught collective operation timeout"), _CAUSE),
    (
        pattern(
            rb"^\S+\.py: error: |^Could not override '|^Key '.*' is not in struct"
            rb"|^Cannot find primary config"
        ),
        _CAUSE,
    ),
    (
        pattern(
            rb"^\S*python[\d.]*: (?:can't open file '|No module named \S)"
            rb"|(?:python[\d.]*|torchrun|accelerate|deepspeed|ray|swift|llamafactory-cli|srun)"
            rb": command not found\s*$"
        ),
        _CAUSE,
    ),
    (_RAY_REPORT, _RAY),
    (_RAY_BLOCK, _RAY),
    (pattern(rb"^ray\.exceptions\.\w+"), _CAUSE),
)
_HARD = pattern(
    rb"Watchdog caught collective operation timeout|CUDA error: an illegal memory access"
)
"""Errors that kill a worker for good; the others hang, so nothing more may be printed."""
_DEADLY = (_STOPPED, _HARD, *(form for form, _ in _FATAL))
_EXCEPTION = pattern(
    rb"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*"
    rb"(?:Error|Exception|Interrupt|Exit|Died|Timeout|Failure|NotFound)\b(?::|\(|\s*$)"
)
_BARE = pattern(
    rb"^(?!(?:DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL)\b)"
    rb"(?:(?:[A-Za-z_<][\w>]{0,80}\.){1,20}[A-Za-z_]\w{0,80}|[A-Z]\w{0,80})(?::\s|\s*$)"
)
"""An exception of any name, as which only its place behind a traceback's frames shows it:
`bdb.BdbQuit`.
"""
_FRAME = pattern(rb'^\s+File "')
_TRACEBACK = b"Traceback (most recent call last):"
_BLOCK = pattern(r"^(?:(?:✗|✘|✖|❌|×) *|\[ERROR\] +)Error:? ".encode())
"""The head that command lines print instead of a traceback's."""
_CHAINED = (
    b"The above exception was the direct cause",
    b"During handling of the above exception, another",
)
"""Between the tracebacks of a chain; its last exception is the one that was not caught."""
_WORKER = pattern(rb"^\s?\((?:(?P<actor>[^()\s]+) )?pid=|^\s?\[(?P<rank>rank\d+)\]:")


def may_fail(data: bytes) -> bool:
    """Return True if some bytes may hold a line of trouble; a quick test, since most do not."""
    return _MAY_FAIL.search(data) is not None


def line_kind(part: bytes) -> EventKind | None:
    """Return the kind of event that a line by itself states, None for most.

    For showing a log; an `EventReader` decides whether the line ended the run.
    """
    if not _RELEVANT.search(part):
        return None
    part = _LOGGING.sub(b"", part)
    if _opens(part) or part.startswith(_CHAINED) or _EXCEPTION.match(part):
        return EventKind.TRACEBACK
    if any(form.search(part) for form in _DEADLY):
        return EventKind.FATAL
    return next((kind for form, kind in _MARKS if form.search(part)), None)


class EventReader:
    """Reads the events of one console; remembers an open traceback and the cause known so far."""

    def __init__(self) -> None:
        self._known = 0
        self._died = False
        """True behind an exception of the driver until a step: signals only follow from it."""
        self._open: bytes | None = None
        """Actor whose traceback is being printed."""
        self._ignored: bytes | None = None
        """Actor that announced a traceback to be ignored."""
        self.framed = False
        """True while the open traceback's frames are printed: any line behind them may name its
        exception.
        """
        self._chained = False
        """True if the open traceback continues a chain."""
        self._phase = PhaseReader()

    @property
    def is_open(self) -> bool:
        """True while a traceback is printed."""
        return self._open is not None

    def step(self) -> None:
        """Note that a step was printed: nothing before it ended the run."""
        self._known = 0
        self._died = self.framed = False
        self._open = None

    def read(self, prefix: bytes, part: bytes, number: int) -> Iterator[Event]:
        """Yield the events that a line states.

        Args:
            prefix: Names the Ray actor that printed it, empty for the driver.
            part: The line without the prefix.
            number: Its number.
        """
        is_last = self._is_behind_frames(prefix, part)
        if not (is_last or _RELEVANT.search(part)):
            return
        part = _LOGGING.sub(b"", part)
        if part.startswith(b"Exception ignored in"):
            self._ignored = prefix
            return
        if part.startswith(_CHAINED):
            self._open = prefix
            self._chained = True
            return
        if _opens(part) and not (not prefix and _RAY_BLOCK.match(part)):
            yield from self._opened(prefix, part, number)
            return
        for form, kind in _MARKS:
            if found := form.search(part):
                groups = found.groupdict()
                yield _event(
                    kind, groups.get("text") or part, number, groups.get("step")
                )
                return
        self._phase.read(part, of_open=self._open == prefix)
        yield from self._failure(prefix, part, number, is_last=is_last)

    def _is_behind_frames(self, prefix: bytes, part: bytes) -> bool:
        """Return whether a line stands right behind the frames of the open traceback, and may name
        its exception.
        """
        if self._open != prefix:
            return False
        if part[:1].isspace():
            self.framed = self.framed or _FRAME.match(part) is not None
            return False
        is_behind = self.framed
        self.framed = False
        return is_behind and _BARE.match(part) is not None

    def _opened(self, prefix: bytes, part: bytes, number: int) -> Iterator[Event]:
        if self._ignored == prefix:
            self._ignored = None
            return
        self._open = prefix
        if not self._chained:
            self._phase.begin()
        if not _actor(prefix):
            # A worker's traceback is reported by its last line: there may be hundreds.
            yield _event(EventKind.TRACEBACK, part, number)

    def _failure(
        self, prefix: bytes, part: bytes, number: int, *, is_last: bool
    ) -> Iterator[Event]:
        if (not prefix or _actor(prefix).startswith("rank")) and _STOPPED.search(part):
            yield from self._stopped(part, number)
            return
        if prefix and _HARD.search(part):
            yield _event(EventKind.TRACEBACK, part, number)
            return
        # A worker's error may have been caught; the driver's own is final.
        known = 0 if prefix else _cause(part)
        if known:
            yield from self._fatal(known, part, number)
        elif is_last or (self._open == prefix and _EXCEPTION.match(part)):
            yield from self._exception(prefix, part, number)

    def _fatal(self, known: int, part: bytes, number: int) -> Iterator[Event]:
        """Yield a fatal line of the driver, unless an earlier one said as much about the cause."""
        if known == _RAY and self._open != b"":
            self._open = b""
            self._phase.begin()
            self._phase.read(part)
        if known > self._known:
            self._known = known
            yield self._last(EventKind.FATAL, part, number)

    def _exception(self, prefix: bytes, part: bytes, number: int) -> Iterator[Event]:
        """Yield the last line of a traceback; Ray's head of one is not."""
        if _RAY_REPORT.match(part):
            return
        chained = self._chained
        self._chained = False
        # A rank's excepthook only sees what was not caught.
        self._died = self._died or not prefix or _actor(prefix).startswith("rank")
        if not prefix and self._known and (self._known < _CAUSE or chained):
            self._known = _CAUSE
            yield self._last(EventKind.FATAL, part, number)
        else:
            yield self._last(EventKind.TRACEBACK, part, number, actor=_actor(prefix))
        self._open = None

    def _stopped(self, part: bytes, number: int) -> Iterator[Event]:
        """Yield an end from outside, once, unless it only follows from an error."""
        if not _EXCEPTION.match(part):
            self._open = None
        if not self._died and self._known < _CAUSE:
            self._known = _CAUSE
            yield self._last(EventKind.STOPPED, part, number)
        self._open = None

    def _last(
        self, kind: EventKind, part: bytes, number: int, *, actor: str = ""
    ) -> Event:
        """Return the event of the last line of a traceback, or of one that stands in none."""
        phase = self._phase.phase if self._open is not None else None
        return _event(kind, part, number, actor=actor)._replace(phase=phase)


def _cause(part: bytes) -> int:
    """Return how much a line of the driver says about a fatal error's cause, 0 if it is none."""
    return next((known for form, known in _FATAL if form.search(part)), 0)


def _opens(part: bytes) -> bool:
    """Return True if a line opens a traceback, maybe behind text printed without a line end."""
    return (
        part.startswith(_TRACEBACK)
        or part.rstrip().endswith(_TRACEBACK)
        or _BLOCK.match(part) is not None
    )


def _actor(prefix: bytes) -> str:
    """Return the process that printed a line: a Ray actor's class, `rank 3`, "" for the driver."""
    found = _WORKER.match(prefix)
    if found is None:
        return ""
    if found["rank"]:
        return f"rank {found['rank'][4:].decode()}"
    return one_line((found["actor"] or b"worker").decode("utf-8", "replace"), 60)


def _event(
    kind: EventKind,
    text: bytes,
    number: int,
    step: bytes | None = None,
    *,
    actor: str = "",
) -> Event:
    shown = one_line(hide(text[:2000].decode("utf-8", "replace")), 400)
    return Event(kind, shown, number, int(step) if step else None, actor)

"""A log of what verl-tui itself does, written with `--debug-log FILE`: what is read in which
batches, how long searches, judgements and frames take, and errors with their tracebacks.

Without the option, a note costs only the test of a variable. Secrets, homes and names are masked,
since such a log is made to be given away; it ends when it has become large.
"""

from __future__ import annotations

import os
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from verl_tui.given_files import why
from verl_tui.text import safe

if TYPE_CHECKING:
    from verl_tui.secrets import Mask

MOST = 16 * 2**20
"""Bytes after which no more is written."""
_MODE = 0o600


class DebugLog:
    """An open file; any thread may write."""

    def __init__(self, descriptor: int, mask: Mask) -> None:
        self.problem: str | None = None
        """Why it ends too early, None where it does not."""
        self._descriptor = descriptor
        self._mask = mask
        self._left = MOST
        self._began = time.monotonic()
        self._lock = threading.Lock()

    def write(self, text: str) -> None:
        """Write a line, or several; nothing once the log is full or the disk is."""
        text = safe(text)
        with self._lock:
            if self._left <= 0:
                return
            self._mask.learn(text)
            took = time.monotonic() - self._began
            thread = threading.current_thread().name
            line = f"{took:10.3f} {thread:<10} {self._mask.text(text)}\n"
            data = line.encode("utf-8", "replace")
            self._left -= len(data)
            if self._left <= 0:
                data = b"no more is written: this log has its full size\n"
            try:
                while data:
                    data = data[os.write(self._descriptor, data) :]
            except OSError as error:
                self._left = 0
                self.problem = why(error)

    def close(self) -> None:
        """Write no more."""
        with self._lock:
            self._left = 0
            os.close(self._descriptor)


_log: DebugLog | None = None


def note(what: str, **figures: object) -> None:
    """Write what was done, with figures: `batch path=/x/train.log records=48`."""
    if _log:
        _log.write(
            " ".join([what, *(f"{name}={value}" for name, value in figures.items())])
        )


def note_error(what: str, error: BaseException) -> None:
    """Write an error with its traceback."""
    if _log:
        _log.write(f"{what}: {''.join(traceback.format_exception(error)).rstrip()}")


@contextmanager
def timed(what: str, **figures: object) -> Iterator[None]:
    """Write how many milliseconds something took."""
    if not _log:
        yield
        return
    began = time.perf_counter()
    try:
        yield
    finally:
        note(what, ms=f"{(time.perf_counter() - began) * 1000:.1f}", **figures)


@contextmanager
def recording(path: Path, mask: Mask) -> Iterator[DebugLog]:
    """Write all notes into a new file that only its owner may read, and give the log.

    Args:
        path: The file.
        mask: Hides secrets, homes and names.

    Raises:
        FileExistsError: Something of that name exists, even if only a dangling link.
        OSError: It cannot be made.
    """
    global _log  # noqa: PLW0603 - one process, one log, and notes come from everywhere
    opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, _MODE)
    log = _log = DebugLog(opened, mask)
    threads = threading.excepthook
    threading.excepthook = _thread_ended
    try:
        yield log
    except BaseException as error:
        note_error("ended by", error)
        raise
    finally:
        threading.excepthook = threads
        _log = None
        log.close()


def _thread_ended(args: threading.ExceptHookArgs) -> None:
    if args.exc_value:
        note_error("thread ended by", args.exc_value)
    threading.__excepthook__(args)

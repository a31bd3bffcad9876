"""What commands write: messages on standard error, files, pages; and their exit codes."""

from __future__ import annotations

import errno
import io
import os
import select
import sys
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, TextIO

from verl_tui import debug_log
from verl_tui.commands.arguments import CommandError
from verl_tui.given_files import NO_LINK, is_link, is_taken
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

EXIT_NOTHING = 3
"""Nothing readable, or no terminal to draw on."""
EXIT_OWN_ERROR = 70
"""An error of verl-tui's own."""
EXIT_OUTPUT = 73
"""An output file that cannot be written, or a port that cannot be had."""
EXIT_INTERRUPTED = 130
EXIT_PIPE = 141
"""The reader of the output has gone: the code of a program that SIGPIPE kills."""
_LAST_STREAM = 2
"""The number of standard error, the last of the standard streams."""
_UNWRITTEN = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""Errors of a write: a full disk, a file that is too large, a terminal that is gone."""


def complete_streams() -> None:
    """Put the null device in the place of standard streams that were closed before the start.

    Files that are opened later would get their numbers, and what is meant for the stream would go
    into them.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= _LAST_STREAM:
        pass
    os.close(number)
    for number, (name, mode) in enumerate(
        (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))
    ):
        if getattr(sys, name) is None:  # as Python has a stream that was closed
            stream = os.fdopen(number, mode, encoding="utf-8", closefd=False)
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)


def print_message(sentence: str) -> None:
    """Write a sentence to standard error, with the program's name; it may quote a file or a path.

    Where that cannot be written, such as to a full disk, the command goes on in silence.
    """
    print_note(f"verl-tui: {sentence}")


def print_note(sentence: str) -> None:
    """Write a sentence to standard error as it is."""
    try:
        print(one_line(sentence, 1000), file=sys.stderr, flush=True)
    except OSError:
        _close(sys.stderr)


def print_messages(sentences: Iterable[str]) -> None:
    """Write sentences to standard error, a line each."""
    for sentence in sentences:
        print_message(sentence)


def plain_output() -> TextIO:
    """Return standard output, which writes UTF-8 and ends lines as they are from now on."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", newline="")
    return sys.stdout


def check_target(path: Path | str, *, replaces: bool = False) -> None:
    """Refuse a file that must not be written, before anything is read.

    Args:
        path: What the user named.
        replaces: Whether the command replaces a file that is there.

    Raises:
        CommandError: It is there, or is a link: through that another file would be overwritten.
    """
    into_folder = os.path.isdir(path)  # noqa: PTH112 - pathlib raises where it is unreadable
    if replaces and is_link(path) and not into_folder:
        raise CommandError(f"{path}: {NO_LINK}", EXIT_OUTPUT)
    if not replaces and is_taken(path):
        sentence = f"{path}: exists already, and is not overwritten"
        raise CommandError(sentence, EXIT_OUTPUT)


@contextmanager
def writing(wanted: object, code: int = EXIT_OUTPUT) -> Iterator[None]:
    """Turn the error that something cannot be written into a sentence with the reason.

    Raises:
        CommandError: It cannot be written.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise CommandError(unwritten(error, wanted), code) from error


def unwritten(error: OSError, wanted: object) -> str:
    """Return why a file cannot be written."""
    return f"{error.filename or wanted}: {(error.strerror or str(error)).lower()}"


def colour() -> bool:
    """Return whether standard output is a terminal on which colours are wanted."""
    return (
        sys.stdout.isatty()
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM") != "dumb"
    )


def is_unwritten(error: OSError) -> bool:
    """Return whether an error says that a standard stream cannot be written."""
    return error.filename is None and error.errno in _UNWRITTEN


def unread() -> bool:
    """Raise an error if the reader of standard output has gone: what writes seldom would be late to
    learn it. Return False.

    Raises:
        BrokenPipeError: It has.
    """
    watched = select.poll()
    with suppress(OSError, ValueError):  # what stands in for it in a test has no number
        watched.register(sys.stdout, 0)
    if watched.poll(0):
        raise BrokenPipeError
    return False


def close_stdout() -> None:
    """Redirect standard output to nowhere, so that Python's flush at exit does not fail again."""
    _close(sys.stdout)


def _close(stream: TextIO) -> None:
    with suppress(OSError, ValueError):  # what stands in for it in a test has no number
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextmanager
def debugging(path: Path | None, words: Sequence[str]) -> Iterator[None]:
    """Log what is done meanwhile into a new file, if one is named.

    Args:
        path: The file, None for none.
        words: The words of the command line, which are written down first.

    Raises:
        CommandError: The file exists or cannot be made.
    """
    if path is None:
        yield
        return
    import platform

    from verl_tui import __version__
    from verl_tui.secrets import own_mask

    check_target(path)
    with ExitStack() as stack:
        with writing(path):
            log = stack.enter_context(debug_log.recording(path, own_mask()))
        try:
            python, system = platform.python_version(), platform.system()
            debug_log.note(f"verl-tui {__version__}, Python {python}, {system}")
            debug_log.note(f"command line: {' '.join(words)}")
            yield
            debug_log.note("done")
        finally:
            if log.problem is not None:
                print_message(f"{path}: {log.problem}: the debug log ends early")

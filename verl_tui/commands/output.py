"""What commands say besides their answer, and how they end."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

from verl_tui.commands.arguments import CommandError
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

EXIT_NOTHING = 3
"""Nothing readable, or no terminal to draw on."""
EXIT_OUTPUT = 73
"""An output file that cannot be written, or a port that cannot be had."""
EXIT_INTERRUPTED = 130
EXIT_PIPE = 141
"""Whoever read the output has gone: what the shell reports of a program that dies of it."""


_PATIENCE = 0.3
"""Seconds that nobody needs a word for what goes on."""
_PACE = 0.1
"""Seconds between two words on it."""


def complain(sentence: str) -> None:
    """Write a sentence to standard error; it may quote what stands in a file or a path."""
    print(f"verl-tui: {one_line(sentence, 1000)}", file=sys.stderr)


def tell(sentences: Iterable[str]) -> None:
    """Write sentences to standard error, a line each."""
    for sentence in sentences:
        complain(sentence)


@contextmanager
def reading(clock: Callable[[], float] = monotonic) -> Iterator[Callable[[int, int], None]]:
    """Say on the terminal how much has been read, where that takes a while; the line is gone
    afterwards.

    Yields:
        What takes the bytes that have been read, and how many there are.
    """
    shown, due, where = False, clock() + _PATIENCE, sys.stderr

    def tell(done: int, size: int) -> None:
        nonlocal shown, due
        if clock() < due or not where.isatty():
            return
        shown, due = True, clock() + _PACE
        where.write(
            f"\r\x1b[Kverl-tui: reading, {done / max(1, size):.0%} of {size / 1e6:,.0f} MB; ctrl+c "
            "leaves"
        )
        where.flush()

    try:
        yield tell
    finally:
        if shown:
            where.write("\r\x1b[K")
            where.flush()


def unwritten(error: OSError, wanted: object) -> CommandError:
    """Return that a file cannot be written, and why."""
    return CommandError(
        f"{error.filename or wanted}: {(error.strerror or str(error)).lower()}", EXIT_OUTPUT
    )


def colour() -> bool:
    """Tell whether standard output shows colours, and is meant to."""
    return (
        sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    )


def close_stdout() -> None:
    """Point standard output nowhere, so that Python's own flush at exit does not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

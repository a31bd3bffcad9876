"""Files that users name: whatever lies there, reading it never blocks for ever."""

from __future__ import annotations

import errno
import os
import select
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

PATIENCE = 10.0
"""Seconds to wait for a process at the other end of a pipe."""

NO_LINK = "is a link, and nothing is written through one"


class UsageError(Exception):
    """What the user asks for cannot be done; the text is one sentence, `code` the exit code."""

    code = 64


def is_there(path: Path | str) -> bool:
    """Return whether something can be seen at a path; pathlib raises where a name is too long."""
    return os.path.exists(path)  # noqa: PTH110


def is_taken(path: Path | str) -> bool:
    """Return whether something has this name, even if only a dangling link."""
    return os.path.lexists(path)


def is_link(path: Path | str) -> bool:
    """Return whether a path is a link; pathlib raises where it cannot be looked at."""
    return os.path.islink(path)  # noqa: PTH114


def is_ordinary(path: Path | str) -> bool:
    """Return whether a path leads to a file with bytes of its own: no directory, device, pipe."""
    return os.path.isfile(path)  # noqa: PTH113


def read_given(path: Path, most: int) -> bytes:
    """Return the content of a file, or so many bytes of it; of a pipe, all that is written until
    its end.

    Raises:
        OSError: It cannot be read, or it is a pipe into which nobody writes.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return file.read(most) or b""
        found = b""
        while len(found) < most:
            if not select.select([file], [], [], PATIENCE)[0]:
                raise OSError(errno.ETIMEDOUT, "nobody writes into it")
            part = file.read(most - len(found))
            if not part:
                break
            found += part
        return found


def writable(path: Path) -> int:
    """Return a descriptor for writing to something other than a regular file.

    Raises:
        OSError: It cannot be written to, or it is a pipe that nobody reads.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        if error.errno == errno.ENXIO and stat.S_ISFIFO(path.stat().st_mode):
            raise OSError(errno.ENXIO, "nobody reads this pipe", str(path)) from None
        raise
    os.set_blocking(descriptor, True)
    return descriptor

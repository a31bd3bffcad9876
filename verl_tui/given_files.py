"""Files that users name: whatever lies there, reading it never blocks for ever; what is written is
written whole or not at all, so that readers see the old content, then the new. Nothing is written
through a link.
"""

from __future__ import annotations

import errno
import os
import select
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

PATIENCE = 10.0
"""Seconds to wait for a process at the other end of a pipe."""

NO_LINK = "is a link, and nothing is written through one"


class UsageError(Exception):
    """What the user asks for cannot be done; the text is one sentence, `code` the exit code."""

    code = 64


class NothingError(UsageError):
    """There is nothing readable, nothing to answer from, or no terminal to draw on."""

    code = 3


class OutputError(UsageError):
    """A file cannot be written, or a port cannot be had."""

    code = 73


# pathlib raises where a name is too long, or where a path cannot be looked at.
is_there = os.path.exists
"""Return whether something can be seen at a path."""
is_taken = os.path.lexists
"""Return whether something has this name, even if only a dangling link."""
is_link = os.path.islink
"""Return whether a path is a link."""
is_ordinary = os.path.isfile
"""Return whether a path leads to a file with bytes of its own: no directory, device, pipe."""


def why(error: OSError) -> str:
    """Return in a few words why a file cannot be read or written, without its name."""
    return (error.strerror or "").lower() or str(error)


def read_given(path: Path, most: int) -> bytes:
    """Return the content of a file, or so many bytes of it; of a pipe, all that is written until
    its end.

    Raises:
        OSError: It cannot be read, or it is a pipe into which nobody writes.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
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
        descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    except OSError as error:
        if error.errno == errno.ENXIO and stat.S_ISFIFO(path.stat().st_mode):
            raise OSError(errno.ENXIO, "nobody reads this pipe", str(path)) from None
        raise
    os.set_blocking(descriptor, True)
    return descriptor


_SHOWN = 60
"""Characters of the target's name that the temporary file's name contains."""


@contextmanager
def replacing(
    path: Path, *, ours: bool = False, new: bool = False, rights: int | None = None
) -> Iterator[TextIO]:
    """Open a file that takes the place of the target once it is complete.

    Until then it lies beside the target under a name that nobody can foresee: in a directory that
    others may write to, a link in its place would lead elsewhere.

    Args:
        path: The target; a device or a pipe is written to.
        ours: Whether a link there is replaced itself, as its name is one of ours or the user wants
            to have replaced what is there; else it is refused.
        new: Whether whatever is there is refused.
        rights: Its permissions, if not those that this process gives to new files.

    Raises:
        OSError: It cannot be written; its `filename` is the target's. Or it is a pipe that nobody
            reads.
    """
    import tempfile  # everybody needs this module, and hardly anybody that one

    if is_link(path) and not (ours or new):
        raise OSError(errno.ELOOP, NO_LINK, str(path))
    if not new and _is_device(path):
        with os.fdopen(writable(path), "w", encoding="utf-8", newline="") as file:
            yield file
        return
    temporary = None
    try:
        handle, name = tempfile.mkstemp(
            prefix=f".{path.name[:_SHOWN]}.", dir=path.parent
        )
        temporary = Path(name)
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            yield file
        temporary.chmod(usual_rights() if rights is None else rights)
        if new:
            path.open("xb").close()  # not by a link: some file systems have none
        temporary.replace(path)
    except OSError as error:
        # the user does not know the other one
        error.filename = str(path)
        error.filename2 = None
        raise
    finally:
        if temporary is not None:
            with suppress(OSError):
                temporary.unlink()


def _is_device(path: Path) -> bool:
    """Return whether something other than a file is there: a device, a pipe."""
    return not is_link(path) and is_there(path) and not path.is_file()


def usual_rights() -> int:
    """Return the permissions that this process gives to new files."""
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask

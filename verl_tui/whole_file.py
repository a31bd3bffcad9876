"""Files that are written whole or not at all: readers see the old content, then the new. Nothing is
written through a link.
"""

from __future__ import annotations

import errno
import os
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from verl_tui.given_files import NO_LINK, is_link, is_there, writable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TextIO


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

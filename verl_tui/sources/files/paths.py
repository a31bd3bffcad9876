"""Tell what a path is; unreadable places count as missing, where pathlib raises up to
Python 3.13.
"""

from __future__ import annotations

import os
from pathlib import Path

from verl_tui.patterns import pattern

_CHECKPOINT = pattern(r"^(?:global_step_|policy-step-|checkpoint-|step_?)(\d{1,15})$")
HOMES = ("checkpoints", "ckpts", "ckpt", "checkpoint")
"""Folders below a run in which checkpoints lie; the run's own folder is looked at too."""


def checkpoint_step(name: str) -> int | None:
    """Return the step in a directory's name if it is a checkpoint, else None."""
    found = _CHECKPOINT.match(name)
    return int(found[1]) if found else None


def one_spelling(path: str) -> Path:
    """Return a path as it is written wherever the same is named: absolute, without `.` and `..`.

    A link to a directory stays: what lies in it is named through it. A link to a file is followed,
    since the run's other files lie beside the target; unless that has another ending, by which
    formats are recognised.

    Raises:
        OSError: The current directory is gone.
    """
    absolute = Path(path).absolute()
    parts = absolute.parts
    if ".." in parts:  # behind a link it leads to another place than the text says
        stop = len(parts) - parts[::-1].index("..")
        absolute = Path(os.path.realpath(Path(*parts[:stop])), *parts[stop:])
    real = Path(os.path.realpath(absolute))
    followed = os.path.islink(absolute) and is_file(real)  # noqa: PTH114 - pathlib's may raise
    if followed and real.suffix == absolute.suffix:
        return real
    return absolute


_ESCAPED = str.maketrans({"%": "%25", "/": "%2F", "\0": "%00"})


def is_folder(path: Path | os.DirEntry[str]) -> bool:
    """Return whether a directory can be seen at a path."""
    try:
        return path.is_dir()
    except OSError:
        return False


def is_file(path: Path | os.DirEntry[str]) -> bool:
    """Return whether a file can be seen at a path."""
    try:
        return path.is_file()
    except OSError:
        return False


def why(error: OSError) -> str:
    """Return in a few words why a file cannot be read, without its name."""
    return os.strerror(error.errno).lower() if error.errno else str(error)


def status_at(path: Path) -> os.stat_result | None:
    """Return the status of what lies at a path, None where nothing can be seen."""
    try:
        return path.stat()
    except OSError:
        return None


def file_size(path: Path) -> int:
    """Return the bytes of a file, 0 where it cannot be seen."""
    return getattr(status_at(path), "st_size", 0)


def file_and_part(path: Path) -> tuple[Path, str | None]:
    """Return the file in which a run lies, and the part of it that is the run; the path itself
    where it names no part.
    """
    above = path.parent
    if above.name and is_file(above):
        return (above, path.name)
    return (path, None)


def escaped(name: str) -> str:
    """Return a name as the last part of a path."""
    return name.translate(_ESCAPED)


def unescaped(part: str) -> str:
    """Return the name that the last part of a path stands for."""
    return part.replace("%2F", "/").replace("%25", "%").replace("%00", "")

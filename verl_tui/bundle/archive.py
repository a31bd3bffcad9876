"""The archive: the same files give the same bytes, and no existing file is touched."""

from __future__ import annotations

import io
import json
import os
import zipfile
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from verl_tui.secrets import Mask

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The first time that a zip file can state."""
_MODE = 0o600


class BundledFile(NamedTuple):
    """A file of a bundle."""

    name: str
    """Its path in the archive."""
    about: str
    """A few words for the list of contents."""
    content: Any
    """A text; else mappings, lists, texts and numbers, which become JSON; bytes once masked."""


def masked_files(
    pieces: Sequence[BundledFile], mask: Mask, words: Iterable[str] = ()
) -> list[BundledFile]:
    """Return the files with everything hidden that gives access or names people.

    Args:
        pieces: The files as they were gathered.
        mask: Hides; learns the names of users and hosts from all files first.
        words: Names of metrics and settings, which are nobody's.
    """
    mask.spare(words)
    for piece in pieces:
        mask.learn(_as_text(piece.content))
    found = []
    for name, about, content in pieces:
        hide = mask.text if isinstance(content, str) else mask.data
        data = _as_text(hide(content)).encode("utf-8", "replace")
        found.append(BundledFile(mask.text(name), about, data))
    return found


def _as_text(content: Any) -> str:
    """Return a text as it is, data as JSON, which knows neither NaN nor infinity."""
    if isinstance(content, str):
        return content
    return json.dumps(content, indent=2, ensure_ascii=False, default=str) + "\n"


def zipped(files: Iterable[BundledFile]) -> bytes:
    """Return the files as a zip archive, in the order given and without times."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            info = zipfile.ZipInfo(file.name, _EPOCH)
            info.create_system = 3  # Unix, whose file modes follow
            info.external_attr = (0o100000 | _MODE) << 16
            archive.writestr(info, file.content, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def write_private(path: Path, data: bytes) -> None:
    """Write a file that only its owner may read.

    Raises:
        FileExistsError: Something of that name exists, even if only a dangling link.
        OSError: It cannot be written; then nothing is left of it.
    """
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(data)
    except OSError:
        path.unlink()
        raise

"""Select the entries of a directory that may belong to a run, by their names and links, before any
is opened.
"""

from __future__ import annotations

import os
import re
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from verl_tui.patterns import pattern
from verl_tui.sources.files.compressed import SUFFIX
from verl_tui.sources.files.paths import checkpoint_step
from verl_tui.sources.files.rotated import base
from verl_tui.sources.formats import mlflow_files
from verl_tui.sources.formats.tensorboard import reader as tensorboard

if TYPE_CHECKING:
    from collections.abc import Iterable

HYDRA = ".hydra"
_EXPORTED = pattern(
    r"verl-tui-.+(?:-samples?(?:-\d+)*\.jsonl|\.csv|\.txt)|events\.out\.tfevents\..+\.verl-tui"
)
"""Files that verl-tui exported: read only if the user names them."""
_BOOKKEEPING = pattern(
    r"(?s)(?:[^/]*/)?(?:wandb/debug.*\.log|files/wandb-(?:summary|metadata)\.json)"
    r"|session_[^/]*/logs/(?:raylet|gcs_server|monitor|log_monitor|dashboard|runtime_env|agent"
    r"|ray_client|debug_state|io-worker|python-core|old|export|events?).*"
)
_WANDB_RUN = pattern(r"^(?:offline-)?run-\d{8}_\d{6}-(.+)$")
_WANDB_LOG = pattern(r"run-(.+)\.wandb")
_IN_WANDB_RUN = {"files", "logs"}
"""Directories beside the log of a W&B run."""
_SKIPPED = {"lost+found", "node_modules", "__pycache__", "site-packages"}
_LOGS = frozenset({
    ".jsonl", ".log", ".out", ".err", ".txt", ".json", ".csv", ".wandb", ".parquet", ".db",
    ".prom", ".swanlab", "",
})  # fmt: skip
_REPORTED = {".log", ".out", ".err", ".jsonl", ".wandb"}
"""Suffixes of files that are reported if their format is unknown: hardly any but logs have them."""
_PACKED = {".bz2", ".xz", ".zst", ".lz4"}
"""Suffixes of compressed files that are not read, but reported if they were logs."""
_OTHERS = frozenset({
    ".py", ".pyc", ".pyi", ".pyx", ".ipynb", ".sh", ".bash", ".zsh", ".fish", ".c", ".cc",
    ".cpp", ".cu", ".cuh", ".h", ".hpp", ".rs", ".go", ".js", ".mjs", ".ts", ".tsx", ".css",
    ".scss", ".html", ".htm", ".java", ".rb", ".pl", ".lua", ".sql", ".r", ".so", ".a",
    ".o", ".dll", ".exe", ".whl", ".egg", ".zip", ".tar", ".tgz", ".bz2", ".xz", ".zst",
    ".7z", ".rar", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".bmp", ".ico", ".tif",
    ".tiff", ".pdf", ".mp4", ".mp3", ".wav", ".avi", ".safetensors", ".pt", ".pth", ".bin",
    ".ckpt", ".onnx", ".gguf", ".npz", ".npy", ".pkl", ".pickle", ".h5", ".hdf5", ".arrow",
    ".feather", ".lmdb", ".tfrecord", ".distcp", ".model", ".metadata", ".lock", ".toml",
    ".ini", ".cfg", ".yaml", ".yml", ".xml", ".j2", ".jinja", ".tmpl", ".pid", ".prof",
    ".bib", ".tex", ".docx", ".xlsx", ".pptx", ".ttf", ".woff", ".woff2", ".map", ".patch",
    ".diff", ".swp", ".tsv",
})  # fmt: skip
"""Suffixes of code, weights, pictures and other files that are never logs."""
_WRITTEN = pattern(
    r"(?:readme|license|licence|notice|authors|contributing|changelog|changes|copying|manifest"
    r"|makefile|dockerfile|todo"
    r"|requirements|install|version|gemfile|procfile|vocab|merges|index|setup)\b.*",
    re.IGNORECASE,
)
"""Names of what people write, and of what comes with code and models."""


class NameClass(Enum):
    """Classes of file names."""

    LOG = "log"
    """A name that logs have."""
    ODD = "odd"
    """A name that any file may have."""
    OTHER = "other"
    """A name that no log has."""


@lru_cache(maxsize=2**15)  # again every few seconds, with each scan
def classify_name(name: str) -> NameClass:
    """Return the class of a file's name."""
    if tensorboard.NAMED in name or name == mlflow_files.META:
        return NameClass.LOG
    suffix = suffix_of(name)
    if suffix in _OTHERS:
        return NameClass.OTHER
    hidden = name.startswith(".") or _WRITTEN.fullmatch(name) is not None
    return NameClass.ODD if hidden or suffix not in _LOGS else NameClass.LOG


def is_worth_reporting(name: str) -> bool:
    """True if hardly anything but a log has such a name."""
    return tensorboard.NAMED in name or suffix_of(name) in _REPORTED


@lru_cache(maxsize=2**15)
def suffix_of(name: str) -> str:
    """Return a file's suffix without that of a rotation or a compression."""
    stem, packed = os.path.splitext(name)  # noqa: PTH122 - quick
    if packed.lower() in _PACKED and suffix_of(stem) in _REPORTED:
        name = stem
    name = base(name) or name.lower().removesuffix(SUFFIX)
    return os.path.splitext(name)[1].lower()  # noqa: PTH122 - quick


def list_entries(directory: Path) -> list[os.DirEntry[str]]:
    """Return the entries of a directory by name, links last: a run gets its own name, not `latest`.

    Raises:
        OSError: It cannot be read.
    """
    with os.scandir(directory) as entries:
        logs = [entry for entry in entries if not _EXPORTED.fullmatch(entry.name)]
    return sorted(logs, key=lambda entry: (entry.is_symlink(), entry.name))


def leads_within(link: os.DirEntry[str], top: Path) -> bool:
    """True if a link leads to a place inside or above `top`, or to a checkpoint."""
    if not link.is_symlink():
        return False
    target, whole = Path(os.path.realpath(link.path)), Path(os.path.realpath(top))
    if whole in target.parents:
        below = target.relative_to(whole).parts
        return not any(part.startswith(".") for part in below)
    return target in (whole, *whole.parents) or checkpoint_step(target.name) is not None


def is_skipped(name: str, wandb: str) -> bool:
    """True if a directory, of the W&B run of an id, is not entered because of its name."""
    if name.startswith("."):
        return name != HYDRA
    own = bool(wandb) and name == "logs"
    return own or name in _SKIPPED or checkpoint_step(name) is not None


def is_bookkeeping(path: Path) -> bool:
    """True for what W&B and Ray write of themselves beside logs."""
    return _BOOKKEEPING.fullmatch("/".join(path.parts[-3:])) is not None


def wandb_id(directory: Path, names: Iterable[str] = ()) -> str:
    """Return the id of the W&B run whose directory a path is or lies in, or which has, under
    another name, these entries; empty outside of any.
    """
    logs = map(_WANDB_LOG.fullmatch, () if _IN_WANDB_RUN.isdisjoint(names) else names)
    of_parts = map(_WANDB_RUN.match, reversed(directory.parts))
    found = next(filter(None, (*of_parts, *logs)), None)
    return found[1] if found else ""

"""Select the entries of a directory that may belong to a run, by their names and links, before any
is opened.
"""

from __future__ import annotations

import os
import re
from enum import Enum
from functools import lru_cache
from operator import attrgetter, methodcaller
from pathlib import Path
from typing import TYPE_CHECKING

from verl_tui.patterns import pattern
from verl_tui.sources.files.checkpoint_names import checkpoint_step
from verl_tui.sources.files.compressed import SUFFIX
from verl_tui.sources.files.paths import is_folder
from verl_tui.sources.files.rotated import base
from verl_tui.sources.folders.setting_files import NAMES as SETTINGS
from verl_tui.sources.formats import mlflow_files
from verl_tui.sources.formats.tensorboard import reader as tensorboard

if TYPE_CHECKING:
    from collections.abc import Iterable

_OURS = "verl-tui"
_EXPORTED = pattern(
    r"verl-tui-.+(?:-samples?(?:-\d+)*\.jsonl|\.csv|\.txt)|events\.out\.tfevents\..+\.verl-tui"
)
"""Files that verl-tui exported: read only if the user names them."""
_OWN_OF_WANDB = pattern(
    r"(?s)wandb/debug.*\.log|files/wandb-(?:summary|metadata)\.json"
)
_WANDB_LOG = ".wandb"
_IN_WANDB_RUN = {"files", "logs"}
"""Directories beside the log of a W&B run."""
_SKIPPED = {"lost+found", "node_modules", "__pycache__", "site-packages"}
_CACHED_NAMES = 2**15
"""Names are classified again every few seconds, with each scan."""


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


@lru_cache(maxsize=_CACHED_NAMES)
def classify_name(name: str) -> NameClass:
    """Return the class of a file's name."""
    if tensorboard.NAMED in name:
        return NameClass.LOG
    suffix = suffix_of(name)
    if name == mlflow_files.META:
        return NameClass.LOG
    if suffix in _OTHERS:
        return NameClass.OTHER
    if suffix not in _LOGS or _WRITTEN.fullmatch(name):
        return NameClass.ODD
    if name.startswith("."):
        return NameClass.ODD
    return NameClass.LOG


@lru_cache(maxsize=_CACHED_NAMES)
def is_worth_reporting(name: str) -> bool:
    """True if hardly anything but a log has such a name."""
    return tensorboard.NAMED in name or suffix_of(name) in _REPORTED


@lru_cache(maxsize=_CACHED_NAMES)
def suffix_of(name: str) -> str:
    """Return a file's suffix without that of a rotation or a compression."""
    stem, packed = os.path.splitext(name)  # noqa: PTH122 - quick
    if packed.lower() in _PACKED and suffix_of(stem) in _REPORTED:
        name = stem
    name = base(name) or name.lower().removesuffix(SUFFIX)
    return os.path.splitext(name)[1].lower()  # noqa: PTH122 - quick


def entries_of(directory: Path) -> list[os.DirEntry[str]]:
    """Return the entries of a directory, none where it cannot be read."""
    try:
        return list_entries(directory)
    except OSError:
        return []


def list_entries(directory: Path) -> list[os.DirEntry[str]]:
    """Return the entries of a directory by name, links last; raise OSError if it is unreadable."""
    with os.scandir(directory) as entries:
        logs = [
            entry
            for entry in entries
            if _OURS not in entry.name or not _EXPORTED.fullmatch(entry.name)
        ]
    logs.sort(key=attrgetter("name"))
    # Links last: a run gets its own name, not `latest`.
    logs.sort(key=methodcaller("is_symlink"))
    return logs


def is_relevant(entry: os.DirEntry[str]) -> bool:
    """True if an entry may belong to a run, by its name alone: making a path costs more."""
    return (
        entry.name in SETTINGS
        or classify_name(entry.name) is not NameClass.OTHER
        or is_folder(entry)
    )


def mlflow_run(entries: Iterable[os.DirEntry[str]]) -> Path | None:
    """Return the file that stands for a run in MLflow's store, None in any other directory."""
    paths = {entry.name: Path(entry.path) for entry in entries}
    return paths.get(mlflow_files.META) if "metrics" in paths else None


def leads_within(link: os.DirEntry[str], top: Path) -> bool:
    """True if a link leads to a place inside or above `top`, or to a checkpoint."""
    if not link.is_symlink():
        return False
    try:
        target = Path(link.path).resolve()
    except (OSError, RuntimeError):
        return False
    whole = top.resolve()
    within = whole in target.parents and not any(
        part.startswith(".") for part in target.relative_to(whole).parts
    )
    return (
        within
        or target in (whole, *whole.parents)
        or checkpoint_step(target.name) is not None
    )


def is_skipped(name: str) -> bool:
    """True if a directory is not entered because of its name."""
    return name.startswith(".") or name in _SKIPPED or checkpoint_step(name) is not None


def is_bookkeeping(path: Path) -> bool:
    """True for W&B's own bookkeeping: `wandb/debug.log`, `files/wandb-summary.json`."""
    return _OWN_OF_WANDB.fullmatch(f"{path.parent.name}/{path.name}") is not None


def kept_by_wandb(entries: Iterable[os.DirEntry[str]]) -> str:
    """Return the id of the W&B run whose directory, of whatever name, holds some entries; empty
    where it is none.
    """
    names = {entry.name for entry in entries}
    logs = [
        name[len("run-") : -len(_WANDB_LOG)]
        for name in names
        if name.startswith("run-") and name.endswith(_WANDB_LOG)
    ]
    return min(logs, default="") if names & _IN_WANDB_RUN else ""
